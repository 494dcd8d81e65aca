"""torchvision's datasets of image files, as sources: class folders, ImageNet, Food101, Flowers102, OxfordIIITPet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from headrace.sources.dataset import BlobDataset
from headrace.sources.image_files import ImageFiles
from headrace.sources.recognised.followed import Followed
from headrace.sources.unchanged import NotNative, attribute, is_torchvision

_DATASETS = "torchvision.datasets"


class _Files(Followed, ImageFiles):
    def __init__(self, dataset: Any, lists: Sequence[str], paths: Sequence[Any], labels: Sequence[Any]) -> None:
        Followed.__init__(self, dataset, lists, len(paths), len(labels))
        ImageFiles.__init__(self, paths, labels)


class _Pets(_Files):
    @property
    def owner(self) -> Any:
        return self.dataset.transforms or _NoTransforms


class _NoTransforms:
    transform = target_transform = None


def recognise_folder(dataset: Any) -> BlobDataset | None:
    """Returns the source of a DatasetFolder or a subclass (ImageFolder, ImageNet); None for any other dataset."""
    if not is_torchvision(dataset, "folder", "DatasetFolder"):
        return None
    _check_loader(dataset)
    samples = attribute(dataset, "samples", list)
    return _Files(dataset, ["samples"], [path for path, _ in samples], [label for _, label in samples])


def recognise_listed(dataset: Any) -> BlobDataset | None:
    """Returns the source of a Food101 or Flowers102; None for any other dataset."""
    for name in ("Food101", "Flowers102"):
        if is_torchvision(dataset, name.lower(), name):
            _check_loader(dataset)
            files, labels = attribute(dataset, "_image_files", list), attribute(dataset, "_labels", list)
            return _Files(dataset, ["_image_files", "_labels"], files, labels)
    return None


def recognise_pets(dataset: Any) -> BlobDataset | None:
    """Returns the source of an OxfordIIITPet whose targets are single numbers; None for any other dataset."""
    if not is_torchvision(dataset, "oxford_iiit_pet", "OxfordIIITPet"):
        return None
    wanted = attribute(dataset, "_target_types", list)
    labels = {("category",): "_labels", ("binary-category",): "_bin_labels"}.get(tuple(wanted))
    if labels is None:
        raise NotNative(f"OxfordIIITPet(target_types={wanted}) does not return one number as target; use 'category'")
    standard = sys.modules[f"{_DATASETS}.vision"].StandardTransform
    if dataset.transforms is not None and type(dataset.transforms) is not standard:
        raise NotNative("OxfordIIITPet(transforms=) may look at image and target together; give it transform instead")
    return _Pets(dataset, ["_images", labels], attribute(dataset, "_images", list), attribute(dataset, labels, list))


def _check_loader(dataset: Any) -> None:
    module = sys.modules[f"{_DATASETS}.folder"]
    loader = getattr(dataset, "loader", module.default_loader)  # before torchvision 0.22 some datasets have no loader
    if loader is not module.default_loader and loader is not module.pil_loader:
        raise NotNative(
            f"{type(dataset).__qualname__}(loader={loader!r}) opens files its own way; headrace reads them as "
            "torchvision's default loader does: leave loader out"
        )
    if loader is module.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
        raise NotNative('headrace opens images as Pillow does; call torchvision.set_image_backend("PIL")')

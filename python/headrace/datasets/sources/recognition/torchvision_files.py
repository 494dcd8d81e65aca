"""torchvision's datasets of image files, as sources: class folders, ImageNet, Food101, Flowers102, OxfordIIITPet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from headrace._base.originals.originality import is_own
from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.held_values import Held, same
from headrace.datasets.sources.image_files import ImageFiles
from headrace.datasets.sources.labels import whole_numbers
from headrace.datasets.sources.override_checks import NotNative, Overridden, attribute, is_torchvision
from headrace.datasets.sources.recognition.wrapped_dataset import Followed

_DATASETS = "torchvision.datasets"


class _Files(Followed, ImageFiles):
    """Files and labels in two lists of a dataset, or in one list of pairs.

    Args:
        lists: names of the dataset's attributes.
        before: the source of the same dataset before it changed; None: there is none.
    """

    def __init__(self, dataset: object, original: type, lists: Sequence[str], before: object) -> None:
        given = [attribute(dataset, name, list) for name in lists]
        held = {name: Held(one, of_pairs=len(given) == 1) for name, one in zip(lists, given, strict=True)}
        self._files, self._raw = self._files_and_labels([one.then for one in held.values()])
        Followed.__init__(self, dataset, original, held, len(self._files), len(self._raw))
        numbers = whole_numbers(self._raw, alone=True)
        if isinstance(before, _Files) and same(before._files, self._files):
            vars(self).update({name: value for name, value in vars(before).items() if name not in vars(self)})
        else:
            ImageFiles.__init__(self, self._files)
        self._labels, self._plain = (self._raw if numbers is None else numbers), numbers is not None

    @staticmethod
    def _files_and_labels(lists: list[list[Any]]) -> tuple[list[str], list[object]]:
        """Returns the files and the labels. Raises NotNative if they are not what torchvision uses."""
        if len(lists) == 2:
            return lists[0], lists[1]
        try:
            return [path for path, _ in lists[0]], [label for _, label in lists[0]]
        except (TypeError, ValueError):
            raise NotNative("a sample of the dataset is not a pair of a path and a label; give it pairs") from None

    def label(self, index: int) -> object:
        return self._raw[index]

    def __repr__(self) -> str:
        return f"{len(self)} files"  # explain() adds the class of the dataset


class _Pets(_Files):
    def __init__(self, dataset: Any, original: type, lists: Sequence[str], before: object) -> None:
        super().__init__(dataset, original, lists, before)
        self._wanted = list(dataset._target_types)

    def _makes_same_samples(self) -> bool:
        same = self.dataset._target_types == self._wanted and _are_standard(self.dataset.transforms)
        return same and super()._makes_same_samples()

    @property
    def owner(self) -> object:
        return self.dataset.transforms or _NoTransforms


class _NoTransforms:
    transform = target_transform = None


def recognise_folder(dataset: object, before: object) -> BlobDataset | None:
    """Returns the source of a DatasetFolder or a subclass (ImageFolder, ImageNet); None for any other dataset."""
    if not is_torchvision(dataset, "folder", "DatasetFolder"):
        return None
    _check_loader(dataset)
    return _make_source(_Files, dataset, sys.modules[f"{_DATASETS}.folder"].DatasetFolder, ["samples"], before)


def recognise_listed(dataset: object, before: object) -> BlobDataset | None:
    """Returns the source of a Food101 or Flowers102; None for any other dataset."""
    for name in ("Food101", "Flowers102"):
        if is_torchvision(dataset, name.lower(), name):
            _check_loader(dataset)
            original = getattr(sys.modules[f"{_DATASETS}.{name.lower()}"], name)
            return _make_source(_Files, dataset, original, ["_image_files", "_labels"], before)
    return None


def recognise_pets(dataset: Any, before: object) -> BlobDataset | None:
    """Returns the source of an OxfordIIITPet whose targets are single numbers; None for any other dataset."""
    if not is_torchvision(dataset, "oxford_iiit_pet", "OxfordIIITPet"):
        return None
    wanted = attribute(dataset, "_target_types", list)
    labels = {("category",): "_labels", ("binary-category",): "_bin_labels"}.get(tuple(wanted))
    if labels is None:
        raise NotNative(f"OxfordIIITPet(target_types={wanted}) does not return one number as target; use 'category'")
    if not _are_standard(dataset.transforms):
        raise NotNative("OxfordIIITPet(transforms=) may look at image and target together; give it transform instead")
    original = sys.modules[f"{_DATASETS}.oxford_iiit_pet"].OxfordIIITPet
    return _make_source(_Pets, dataset, original, ["_images", labels], before)


def _are_standard(transforms: object) -> bool:
    """Whether they call transform and target_transform alone."""
    return transforms is None or type(transforms) is sys.modules[f"{_DATASETS}.vision"].StandardTransform


def _make_source(
    kind: type[_Files], dataset: object, original: type, lists: Sequence[str], before: object
) -> BlobDataset:
    try:
        return kind(dataset, original, lists, before)
    except (TypeError, ValueError) as error:  # a path that is none, or URLs among files
        raise error if isinstance(error, NotNative) else NotNative(f"{type(dataset).__qualname__}: {error}") from error


def _check_loader(dataset: object) -> None:
    module = sys.modules[f"{_DATASETS}.folder"]
    loader = getattr(dataset, "loader", module.default_loader)  # before torchvision 0.22 some datasets have no loader
    name = getattr(loader, "__name__", "")
    if name not in ("default_loader", "pil_loader") or not is_own(loader, module, name):
        raise Overridden(
            f"{type(dataset).__qualname__}(loader={loader!r}) opens files its own way; headrace reads them as "
            "torchvision's default loader does: leave loader out"
        )
    if name == "default_loader" and sys.modules["torchvision"].get_image_backend() != "PIL":
        raise NotNative('headrace opens images as Pillow does; call torchvision.set_image_backend("PIL")')

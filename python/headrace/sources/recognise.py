"""Finds the blobs behind a dataset: ours, or one of torchvision's that does the same."""

from __future__ import annotations

import sys
from typing import Any

from headrace.sources.dataset import BlobDataset
from headrace.sources.image_files import ImageFiles

KNOWN = "headrace.ImageFolder, ImageFiles, Blobs, and torchvision.datasets.ImageFolder"


def as_source(dataset: Any) -> BlobDataset:
    """The dataset itself if it is ours, else one of ours with the same samples, transform and targets.

    torchvision is looked up among the modules already imported: headrace never imports it.

    Raises:
        TypeError: the dataset is neither; the message names it and the known ones.
    """
    if isinstance(dataset, BlobDataset):
        if type(dataset).__getitem__ is not BlobDataset.__getitem__:
            raise TypeError(
                f"{type(dataset).__name__} overrides __getitem__, which the native path would not call; "
                "put that work into transform or target_transform"
            )
        return dataset
    folder = sys.modules.get("torchvision.datasets.folder")
    if folder is not None and type(dataset) is folder.ImageFolder:
        return _of_torchvision(dataset, folder)
    raise TypeError(f"headrace.DataLoader does not know {type(dataset).__qualname__}; it reads {KNOWN}")


def _of_torchvision(dataset: Any, folder: Any) -> ImageFiles:
    if dataset.loader is not folder.default_loader and dataset.loader is not folder.pil_loader:
        raise TypeError(
            f"ImageFolder(loader={dataset.loader!r}) opens files its own way; headrace reads them as torchvision's "
            "default loader does: leave loader out"
        )
    torchvision = sys.modules["torchvision"]
    if dataset.loader is folder.default_loader and torchvision.get_image_backend() != "PIL":
        raise TypeError('torchvision.set_image_backend is not "PIL", whose pixels headrace delivers')
    return ImageFiles(
        (path for path, _ in dataset.samples),
        [label for _, label in dataset.samples],
        dataset.transform,
        dataset.target_transform,
    )

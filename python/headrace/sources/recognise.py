"""Finds the blobs behind a dataset: ours, or one of torchvision's that does the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from headrace.sources.dataset import BlobDataset
from headrace.sources.image_files import ImageFiles

KNOWN = "headrace.ImageFolder, ImageFiles, Blobs, and torchvision.datasets.ImageFolder"

# What the native path does instead of calling a method, and the method that would have to change with it.
_PAIRS = (("read", "blob_table"), ("target", "targets_of"))


class NotNative(TypeError):
    """The native path cannot read the dataset; the message says why, and what would let it."""


def as_source(dataset: Any) -> BlobDataset:
    """The dataset itself if it is ours, else one of ours with the same samples, transform and targets.

    torchvision is looked up among the modules already imported: headrace never imports it.

    Raises:
        NotNative: the dataset is neither, or a subclass that changes what the native path would not call.
    """
    if isinstance(dataset, BlobDataset):
        _refuse_changes(type(dataset))
        return dataset
    folder = sys.modules.get("torchvision.datasets.folder")
    if folder is not None and isinstance(dataset, folder.ImageFolder):
        for method in ("__getitem__", "__getitems__"):
            if getattr(type(dataset), method, None) is not getattr(folder.ImageFolder, method, None):
                _refuse(type(dataset), method, "put that work into transform or target_transform")
        return _TorchvisionFolder(dataset, folder)
    raise NotNative(f"headrace does not know {type(dataset).__qualname__}; it reads {KNOWN}")


def _refuse(cls: type, method: str, remedy: str) -> None:
    raise NotNative(f"{cls.__qualname__} overrides {method}, which the native path would not call; {remedy}")


def _refuse_changes(cls: type) -> None:
    for method in ("__getitem__", "__getitems__"):
        if getattr(cls, method, None) is not getattr(BlobDataset, method, None):
            _refuse(cls, method, "put that work into transform or target_transform")
    for method, twin in _PAIRS:
        home = {name: next(i for i, base in enumerate(cls.__mro__) if name in vars(base)) for name in (method, twin)}
        if home[method] < home[twin]:
            _refuse(cls, method, f"override {twin} with it")


class _TorchvisionFolder(ImageFiles):
    """The files of a torchvision ImageFolder; its transforms are looked up there, so that they can be changed there."""

    transform: Any = property(lambda self: self.folder.transform, lambda self, value: None)
    target_transform: Any = property(lambda self: self.folder.target_transform, lambda self, value: None)

    def __init__(self, folder: Any, module: Any) -> None:
        _check_loader(folder.loader, module)
        self.folder = folder
        super().__init__((path for path, _ in folder.samples), [label for _, label in folder.samples])


def _check_loader(loader: Callable[[str], Any], module: Any) -> None:
    if loader is not module.default_loader and loader is not module.pil_loader:
        raise NotNative(
            f"ImageFolder(loader={loader!r}) opens files its own way; headrace reads them as torchvision's "
            "default loader does: leave loader out"
        )
    if loader is module.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
        raise NotNative('torchvision.set_image_backend is not "PIL", whose pixels headrace delivers')

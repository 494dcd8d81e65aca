"""torchvision's datasets that hold one array, as sources: CIFAR10, CIFAR100, MNIST, FashionMNIST, KMNIST."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace.datasets.sources.arrays import ImageArray
from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.held_values import Held, address_of
from headrace.datasets.sources.labels import whole_numbers
from headrace.datasets.sources.override_checks import NotNative, attribute, is_torchvision
from headrace.datasets.sources.recognition.wrapped_dataset import Followed

#: (module in torchvision.datasets, class whose ``__getitem__`` applies, array type, array axes, types of `targets`).
_FAMILIES = (
    ("cifar", "CIFAR10", np.ndarray, 4, (list, np.ndarray)),
    ("mnist", "MNIST", torch.Tensor, 3, (torch.Tensor, list, np.ndarray)),
)


class _Array(Followed, ImageArray):
    def __init__(
        self, dataset: object, original: type, images: npt.NDArray[np.uint8] | torch.Tensor, labels: Any
    ) -> None:
        held = Held(labels)
        Followed.__init__(self, dataset, original, {"targets": held}, len(images), len(labels))
        self._raw: Any = _as_ints(dataset, labels) if original.__name__ == "MNIST" else held.then
        numbers = whole_numbers(self._raw, alone=True)
        ImageArray.__init__(self, images, None)
        self._labels, self._plain = (self._raw if numbers is None else numbers), numbers is not None
        self._placed = address_of(images)

    def label(self, index: int) -> object:
        return self._raw[index]

    def is_current(self) -> bool:
        return self._has_its_pixels() and super().is_current()

    def holds(self, indices: Sequence[int]) -> bool:
        return self._has_its_pixels() and super().holds(indices)

    def _has_its_pixels(self) -> bool:
        """Whether the dataset's pixels are the array that this source reads; their values may change."""
        images = getattr(self.dataset, "data", None)
        return images is self._images and address_of(images) == self._placed


def recognise_array(dataset: object, before: object) -> BlobDataset | None:
    """Returns the source of a CIFAR or MNIST dataset, or of a subclass that keeps its ``__getitem__``; else None.

    The source refers to the dataset's array and copies no pixels.

    Raises:
        NotNative: the class or an attribute was overridden, or the array or its labels have another shape or dtype than
            torchvision's.
    """
    for module, name, kind, axes, labels in _FAMILIES:
        if is_torchvision(dataset, module, name):
            images = attribute(dataset, "data", kind)
            if images.ndim != axes or images.dtype not in (np.uint8, torch.uint8):
                shape = tuple(images.shape)
                raise NotNative(
                    f"{type(dataset).__qualname__}.data is {images.dtype} {shape}, not uint8 with {axes} axes"
                )
            original = getattr(sys.modules[f"torchvision.datasets.{module}"], name)
            try:
                return _Array(dataset, original, images, attribute(dataset, "targets", labels))
            except (TypeError, ValueError) as error:  # of ImageArray: pixels on a device, or of another shape
                raise NotNative(f"{type(dataset).__qualname__}.data: {error}") from error
    return None


def _as_ints(dataset: object, labels: Any) -> list[int]:
    """Returns ``int(label)`` of each label, as MNIST makes them. Raises NotNative where that fails for one."""
    try:
        values = labels.tolist() if isinstance(labels, (np.ndarray, torch.Tensor)) else labels
        return [int(one) for one in values]
    except Exception as error:
        raise NotNative(f"a label of {type(dataset).__qualname__} makes no int: {error}") from error

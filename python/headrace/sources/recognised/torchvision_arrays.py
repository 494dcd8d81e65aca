"""torchvision's datasets that hold one array, as sources: CIFAR10, CIFAR100, MNIST, FashionMNIST, KMNIST."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace.sources.arrays import Arrays
from headrace.sources.dataset import BlobDataset
from headrace.sources.recognised.followed import Followed
from headrace.sources.unchanged import attribute, is_torchvision

#: (module in torchvision.datasets, class whose ``__getitem__`` applies, array type, array axes, types of `targets`).
_FAMILIES = (
    ("cifar", "CIFAR10", np.ndarray, 4, (list, np.ndarray)),
    ("mnist", "MNIST", torch.Tensor, 3, (torch.Tensor, list, np.ndarray)),
)


class _Array(Followed, Arrays):
    def __init__(self, dataset: Any, images: Any, labels: Any) -> None:
        Followed.__init__(self, dataset, ["data", "targets"], len(images), len(labels))
        # MNIST converts each label to an int; sources do the same for labels in a numpy array.
        Arrays.__init__(self, images, labels.numpy() if isinstance(labels, torch.Tensor) else labels)


def recognise_array(dataset: Any) -> BlobDataset | None:
    """Returns the source of a CIFAR or MNIST dataset, or of a subclass that keeps its ``__getitem__``; else None.

    The source refers to the dataset's array and copies no pixels.

    Raises:
        NotNative: the class or an attribute was overridden.
        ValueError: the array or its labels have another shape or dtype than torchvision's.
    """
    for module, name, kind, axes, labels in _FAMILIES:
        if is_torchvision(dataset, module, name):
            images = attribute(dataset, "data", kind)
            if images.ndim != axes or images.dtype not in (np.uint8, torch.uint8):
                shape = tuple(images.shape)
                raise ValueError(
                    f"{type(dataset).__qualname__}.data is {images.dtype} {shape}, not uint8 with {axes} axes"
                )
            return _Array(dataset, images, attribute(dataset, "targets", labels))
    return None

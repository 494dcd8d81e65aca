"""torchvision's datasets that are one array: CIFAR10, CIFAR100, MNIST, FashionMNIST, KMNIST."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace.sources.arrays import Arrays
from headrace.sources.dataset import BlobDataset
from headrace.sources.recognised.followed import Followed
from headrace.sources.unchanged import attribute, is_torchvision

#: The module of torchvision.datasets, the class that makes the samples, the array's type and axes, the labels' types.
_FAMILIES = (
    ("cifar", "CIFAR10", np.ndarray, 4, (list, np.ndarray)),
    ("mnist", "MNIST", torch.Tensor, 3, (torch.Tensor, list, np.ndarray)),
)


class _Array(Followed, Arrays):
    def __init__(self, dataset: Any, images: Any, labels: Any) -> None:
        Followed.__init__(self, dataset, ["data", "targets"], len(images), len(labels))
        # MNIST turns each label into an int, and so do sources with numpy's.
        Arrays.__init__(self, images, labels.numpy() if isinstance(labels, torch.Tensor) else labels)


def array(dataset: Any) -> BlobDataset | None:
    """CIFAR and MNIST, and what makes its samples as they do."""
    for module, name, kind, axes, labels in _FAMILIES:
        if is_torchvision(dataset, module, name):
            images = attribute(dataset, "data", kind)
            if images.ndim != axes or images.dtype not in (np.uint8, torch.uint8):
                shape = tuple(images.shape)
                raise ValueError(
                    f"{type(dataset).__qualname__}.data is {images.dtype} {shape}, not bytes as torchvision's"
                )
            return _Array(dataset, images, attribute(dataset, "targets", labels))
    return None

"""Finds the images behind a dataset: ours, one of torchvision's or torch's, or one that names them itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.sources.combined import Selection
from headrace.sources.dataset import BlobDataset
from headrace.sources.recognised.opt_in import named
from headrace.sources.recognised.torch_combined import concat, subset
from headrace.sources.recognised.torchvision_arrays import array
from headrace.sources.recognised.torchvision_files import folder, listed, pets
from headrace.sources.unchanged import NotNative, check_samples, class_name, home, refuse_override

KNOWN = (
    "headrace.ImageFolder, ImageFiles, Blobs and Arrays, torchvision's folders, ImageNet, Food101, Flowers102, "
    "OxfordIIITPet, CIFAR and MNIST, Subset and ConcatDataset of these, and what has a method headrace_source"
)

# What the native path does instead of calling a method, and the method that would have to change with it.
_PAIRS = (("read", "blob_table"), ("image", "blob_table"), ("target", "targets_of"))

# In the order in which they are asked; each knows its datasets, and returns None for any other.
_FAMILIES = (folder, listed, pets, array)
_COMBINED = (subset, concat)


def as_source(dataset: Any) -> BlobDataset:
    """The dataset itself if it is ours, else one of ours with the same samples, transform and targets.

    torchvision is looked up among the modules already imported: headrace never imports it.

    Raises:
        NotNative: headrace does not know the dataset, or it is of a subclass that changes what would not be called.
        ValueError: it does not hold what it says, as a label for each image.
    """
    if isinstance(dataset, BlobDataset):
        _check_ours(type(dataset))
        return dataset
    if (own := named(dataset)) is not None:
        _check_ours(type(own.parts[0]))
        return own
    for family in _FAMILIES:
        if (source := family(dataset)) is not None:
            # A subclass may say that it is shorter than its lists are.
            return source if len(dataset) == len(source) else Selection(source, np.arange(len(dataset)))
    for combination in _COMBINED:
        if (source := combination(dataset, as_source)) is not None:
            return source
    raise NotNative(f"headrace does not know {class_name(type(dataset))}; it reads {KNOWN}")


def _check_ours(cls: type) -> None:
    check_samples(cls, BlobDataset)
    for method, twin in _PAIRS:
        if home(cls, method) < home(cls, twin):
            refuse_override(cls, method, f"override {twin} with it")

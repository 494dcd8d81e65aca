"""Turns a dataset into a source: headrace's, torchvision's and torch's datasets, and those with ``headrace_source``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.datasets.sources.combined import SubsetSource
from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.override_checks import (
    NotNative,
    check_length,
    check_samples,
    class_name,
    mro_index,
    refuse_override,
)
from headrace.datasets.sources.recognition.headrace_source import find_source
from headrace.datasets.sources.recognition.torch_combined import concat, subset
from headrace.datasets.sources.recognition.torchvision_arrays import recognise_array
from headrace.datasets.sources.recognition.torchvision_files import recognise_folder, recognise_listed, recognise_pets
from headrace.datasets.sources.recognition.unsupported_libraries import refuse_hugging_face, refuse_webdataset

KNOWN = (
    "headrace.ImageFolder, ImageFiles, EncodedImages, ImageArray, TarShards, Arrow, Parquet, MDS, LitData, LMDB, Zip, "
    "Audio, Columns, Fields and Videos, what from_hf returns, torchvision's folders, ImageNet, Food101, Flowers102, "
    "OxfordIIITPet, CIFAR and MNIST, Subset and ConcatDataset of these, and datasets with a headrace_source method"
)

# (method of the Python path, method that the native path calls instead): a class that overrides the first must
# override the second as well.
_PAIRS = (("read", "blob_table"), ("image", "blob_table"), ("target", "targets_of"))

# Tried in this order; each returns None for a dataset that it does not recognise.
_FAMILIES = (recognise_folder, recognise_listed, recognise_pets, recognise_array)
_COMBINED = (subset, concat)


def as_source(dataset: object, before: BlobDataset | None = None) -> BlobDataset:
    """Returns the dataset itself if it is headrace's, otherwise a source with the same samples, transform and targets.

    torchvision is looked up among the modules already imported: headrace never imports it.

    The source has the samples that an index can name, whatever the dataset's ``len()`` is.

    Args:
        before: the dataset's source before it changed; what has not changed is taken from it.

    Raises:
        NotNative: headrace does not know the dataset, its class overrides a method that the native path does not
            call, or it is inconsistent, such as one with fewer labels than images.
    """
    return _as_source(dataset, {} if before is None else before.known_sources())


def _as_source(dataset: object, known: Mapping[int, BlobDataset]) -> BlobDataset:
    if isinstance(dataset, BlobDataset):
        _check_ours(dataset)
        check_length(dataset)
        return dataset
    if (own := find_source(dataset)) is not None:
        _check_ours(own.parts[0])
        return own
    for family in _FAMILIES:
        if (source := family(dataset, known.get(id(dataset)))) is not None:
            return source
    for combination in _COMBINED:
        if (source := combination(dataset, lambda one: _as_source(one, known), known.get(id(dataset)))) is not None:
            return source
    refuse_hugging_face(dataset)
    refuse_webdataset(dataset)
    raise NotNative(f"headrace does not know {class_name(type(dataset))}; it reads {KNOWN}")


def as_counted(dataset: Any) -> BlobDataset:
    """Returns `as_source` of a dataset with ``len(dataset)`` samples: a subclass may have made them fewer.

    Raises:
        NotNative: as `as_source`.
    """
    source = as_source(dataset)
    return SubsetSource(source, np.arange(len(dataset))) if len(dataset) < len(source) else source


def _check_ours(dataset: BlobDataset) -> None:
    check_samples(dataset, BlobDataset)
    cls = type(dataset)
    for method, twin in _PAIRS:
        if mro_index(cls, method) < mro_index(cls, twin):
            refuse_override(cls, method, f"override {twin} with it")

"""Seeds the process's generators for one sample that Python code makes, or for the collation of one batch.

The seeds are a BLAKE2b hash of (seed, epoch, index, occurrence), not words of Philox as the draws of a recipe are: an
index may be any key here, and a hash of one sample takes a microsecond.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


def seed_for_sample(seed: int, epoch: int, key: object, occurrence: object) -> None:
    """Seeds the generators for one sample, or for several that one call makes.

    Args:
        seed, epoch: any integers.
        key: the sample's `index_key`, or a list of these.
        occurrence: how often the epoch named the index before, or a list of these.
    """
    _seed_all(("sample", seed, epoch, key, occurrence))


def seed_for_batch(seed: int, epoch: int, batch: int) -> None:
    """Seeds the generators for what is drawn when the samples of a batch have been made: by its collate_fn."""
    _seed_all(("batch", seed, epoch, batch))


def _seed_all(what: tuple[object, ...]) -> None:
    digest = hashlib.blake2b(repr(what).encode(), digest_size=20).digest()
    # Different words: seeded alike, numpy's generator and torch's yield the same bits.
    random.seed(int.from_bytes(digest[:8], "little"))
    np.random.seed(int.from_bytes(digest[8:12], "little"))  # noqa: NPY002 - what the user's code draws from
    # Not torch.manual_seed, which also seeds the generators of CUDA devices.
    torch.default_generator.manual_seed(int.from_bytes(digest[12:], "little"))

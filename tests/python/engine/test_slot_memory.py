"""Memory of batches that loaders keep between epochs: for the next one, for other loaders, until the last ends."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace._base.native import core
from support import assert_same, eventually, pictures, train


def loader_of(**arguments: Any) -> DataLoader:
    return DataLoader(EncodedImages(pictures() * 2, None, train(32)), 4, num_workers=1, prefetch_factor=2, **arguments)


@pytest.fixture(autouse=True)
def nothing_left_by_others() -> None:
    gc.collect()
    assert eventually(lambda: core.left_slot_bytes() == 0), "a loader of another test still lives"


def test_an_epoch_leaves_its_slots_to_the_next_one() -> None:
    loader = loader_of(seed=1)
    epochs = []
    for _ in range(4):
        batches = [images.clone() for images in loader]
        epochs.append((batches, core.left_slot_bytes()))
    left = epochs[0][1]
    assert left > 0
    assert all(size == left for _, size in epochs)
    iterator = iter(loader)
    held = next(iterator)
    assert core.left_slot_bytes() < left
    copy = held.clone()
    del iterator
    for batches, again in zip(epochs[0][0], loader_of(seed=1), strict=True):
        assert torch.equal(batches, again)
    assert torch.equal(held, copy)


def test_a_batch_that_is_still_held_is_not_reused() -> None:
    loader = loader_of(seed=1)
    held = list(loader)
    copies = [images.clone() for images in held]
    for _ in range(3):
        list(loader)
    assert_same(held, copies)


def test_close_and_the_end_of_the_last_loader_return_the_memory() -> None:
    first, second = loader_of(), loader_of()
    list(first)
    list(second)
    assert core.left_slot_bytes() > 0
    first.close()
    assert core.left_slot_bytes() > 0  # the other's
    list(first)  # a closed loader begins again
    first.close()
    del second
    gc.collect()
    assert eventually(lambda: core.left_slot_bytes() == 0)
    held = next(iter(first))
    first.close()
    del held
    assert core.left_slot_bytes() == 0


def test_loaders_share_what_they_leave() -> None:
    """A training and a validation loader whose batches have one size need the memory of one."""
    first, second = loader_of(), loader_of()
    list(first)
    alone = core.left_slot_bytes()
    for _ in range(3):
        list(second)
        list(first)
    assert core.left_slot_bytes() <= alone

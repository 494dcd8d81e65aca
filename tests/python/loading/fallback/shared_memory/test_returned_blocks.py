"""A block of shared memory is given back when nothing in the main process refers to it; few are kept."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from headrace._loading.fallback.shared_memory.blocks import SharedBlocks, make_flags
from headrace._loading.fallback.shared_memory.returned_blocks import BlocksInUse, blocks_of


@pytest.fixture
def both_sides() -> Iterator[tuple[SharedBlocks, BlocksInUse]]:
    """A worker's side of the blocks, and the main process's, in one process."""
    plain = torch.UntypedStorage._new_shared
    flags = make_flags(1)
    blocks, returned = SharedBlocks(flags, 0, ahead=2), BlocksInUse(flags)
    blocks.install()
    yield blocks, returned
    torch.UntypedStorage._new_shared = plain  # type: ignore[method-assign]


def delivered(blocks: SharedBlocks, returned: BlocksInUse, size: int) -> torch.Tensor:
    """A batch that the worker has made and the main process has received."""
    returned.look()  # as when the batch is asked for
    blocks.begin(None)
    batch = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))
    sent = blocks.finish([batch])
    assert len(sent) == 1
    descriptor = os.dup(batch.untyped_storage()._share_fd_cpu_()[0])
    received = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared_fd_cpu(descriptor, size))  # type: ignore[attr-defined]
    os.close(descriptor)
    returned.add(blocks_of([received], 0, sent))
    return received


def test_memory_is_that_of_the_batches_on_their_way(both_sides: Any) -> None:
    """As many blocks as batches are in flight, of the newest size."""
    blocks, returned = both_sides
    for size in (1 << 18, 1 << 19, 1 << 20):
        for _ in range(40):
            delivered(blocks, returned, size)
        assert [block.storage.nbytes() for block in blocks._blocks] == [size]


def test_blocks_that_the_last_batches_did_not_need_are_given_up(both_sides: Any) -> None:
    blocks, returned = both_sides
    on_their_way = [delivered(blocks, returned, 1 << 18) for _ in range(5)]
    assert len(blocks._blocks) == 5
    on_their_way.clear()
    for _ in range(20):
        on_their_way = [*on_their_way[-1:], delivered(blocks, returned, 1 << 18)]
    assert len(blocks._blocks) == 3


def test_a_block_is_given_back_when_the_next_batch_is_asked_for(both_sides: Any) -> None:
    blocks, returned = both_sides
    batch = delivered(blocks, returned, 1 << 18)
    assert blocks._flags[blocks._blocks[0].number] == 1
    del batch
    returned.look()
    assert blocks._flags[blocks._blocks[0].number] == 0


@pytest.mark.parametrize(
    "keep",
    [
        lambda batch: batch[2:],
        lambda batch: batch.numpy(),
        lambda batch: batch.untyped_storage(),
        lambda batch: torch.utils.dlpack.from_dlpack(batch),
        lambda batch: torch.utils.dlpack.to_dlpack(batch),  # type: ignore[attr-defined]
        lambda batch: batch.detach(),
        lambda batch: memoryview(batch.numpy()),
    ],
)
def test_a_block_whose_memory_is_referred_to_is_not_given_back(both_sides: Any, keep: Any) -> None:
    blocks, returned = both_sides
    batch = delivered(blocks, returned, 1 << 18)
    kept = keep(batch)
    del batch
    gc.collect()
    assert blocks._flags[blocks._blocks[0].number] == 1
    del kept
    returned.add([])
    assert blocks._flags[blocks._blocks[0].number] == 0


def test_a_graph_keeps_a_block(both_sides: Any) -> None:
    blocks, returned = both_sides
    batch = delivered(blocks, returned, 1 << 18).view(torch.float32)
    graph = (torch.ones(1 << 16, requires_grad=True) * batch).sum()
    del batch
    assert blocks._flags[blocks._blocks[0].number] == 1
    del graph
    returned.add([])
    assert blocks._flags[blocks._blocks[0].number] == 0

"""What a worker process leaves for the main process: whole or not at all, also after the worker has ended."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import IterableDataset

from headrace import DataLoader
from headrace._loading.fallback.mailbox import Mailbox


def test_the_newest_message_of_an_epoch_is_read() -> None:
    box = Mailbox()
    assert box.get(1) == (False, None)
    for epoch, content in ((1, b""), (2, b"x" * 5_000_000), (3, b"short"), (4, None)):
        box.put(epoch, content)
        assert box.get(epoch) == (True, content) == box.get(epoch)
        assert box.get(epoch + 1) == box.get(epoch - 1) == (False, None)
    assert os.fstat(box._descriptor).st_size < 100  # the large message's memory is free


def test_a_message_that_is_being_written_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Mailbox()
    box.put(1, b"old")
    write = os.pwrite

    def fails(descriptor: int, content: bytes, at: int) -> int:
        if len(content) > 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, content, at)

    monkeypatch.setattr(os, "pwrite", fails)
    with pytest.raises(OSError, match="No space"):
        box.put(2, b"y" * 100)
    assert box.get(1) == box.get(2) == (False, None)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_its_file_is_closed_with_it() -> None:
    before = descriptors()
    boxes = [Mailbox() for _ in range(20)]
    assert descriptors() == before + 20
    del boxes
    assert descriptors() == before


def leave(box: Mailbox, content: bytes) -> None:
    box.put(7, content)


@pytest.mark.processes
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_that_has_ended_has_left_its_message(method: str) -> None:
    box, content = Mailbox(), bytes(range(256)) * 10_000
    context: Any = multiprocessing.get_context(method)
    process = context.Process(target=leave, args=(box, content))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert box.get(7) == (True, content)


class Numbers(IterableDataset[int]):
    """Its state is larger than what a pipe holds."""

    def __init__(self) -> None:
        self.table, self.made = torch.arange(1 << 18), 0

    def __iter__(self) -> Iterator[int]:
        for number in range(3):
            self.made += 1
            yield number

    def state_dict(self) -> dict[str, Any]:
        return {"table": self.table, "made": self.made}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.table, self.made = state["table"], state["made"]


@pytest.mark.processes
@pytest.mark.parametrize(("method", "times"), [("fork", 5), ("forkserver", 2)])  # whose workers import torch
def test_the_state_of_workers_that_have_ended(method: str, times: int) -> None:
    for _ in range(times):
        loader = DataLoader(Numbers(), 1, num_workers=2, multiprocessing_context=method)
        assert sum(1 for _ in loader) == 6
        other = DataLoader(Numbers(), 1, num_workers=2, multiprocessing_context=method)
        other.load_state_dict(loader.state_dict())
        assert sum(1 for _ in other) == 6

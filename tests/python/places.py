"""The destinations of batches: host memory, the emulated device, a GPU. The fixture `place` runs a test on each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader
from headrace._engine.device_engine import move_tensors

EMULATED_MOST = 200_000  # bytes of a file: the emulation takes seconds for images of many megapixels


@dataclass(frozen=True)
class Place:
    """One destination. For a device the CPU decodes, which is exact."""

    name: str

    def loader(self, dataset: Any, **options: Any) -> DataLoader[Any]:
        where = {} if self.name == "cpu" else {"device": self.name, "decoder": "cpu"}
        return DataLoader(dataset, **{"batch_size": 16, "num_workers": 2, "seed": 3, **where, **options})

    def takes(self, file: Path) -> bool:
        """Whether the place makes the file's image within about a second."""
        return self.name != "emulated" or file.stat().st_size < EMULATED_MOST

    @staticmethod
    def fetched(batches: Iterable[Any]) -> list[Any]:
        """The batches, moved to host memory."""
        return [move_tensors(batch, torch.device("cpu")) for batch in batches]


@pytest.fixture(scope="module", params=["cpu", "emulated", "cuda"])
def place(request: pytest.FixtureRequest) -> Place:
    """Skips `cuda` on a machine without a GPU, or fails there if FAIL_WITHOUT_CUDA=1."""
    if request.param == "cuda" and not torch.cuda.is_available():
        if os.environ.get("FAIL_WITHOUT_CUDA") == "1":
            pytest.fail("FAIL_WITHOUT_CUDA=1, and torch finds no NVIDIA GPU")
        pytest.skip("torch finds no NVIDIA GPU")
    return Place(request.param)

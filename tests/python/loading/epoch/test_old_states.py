"""States that earlier versions saved go on with the batches that those versions would have delivered.

The files in ``states/`` are frozen: never write one again. A version with another format adds a file, made with

    python tests/python/loading/epoch/test_old_states.py NAME
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace._loading.epoch import checkpoint
from headrace._loading.fallback import checkpoint_format

STATES = Path(__file__).with_name("states")
COUNT = 22

#: File -> (kind of loader, labels of the batches that were left when headrace saved it).
SAVED = {
    "native_3_seed": ("seed", [[18, 4, 7, 3], [20, 9, 15, 6], [16, 21, 11, 12], [10, 14]]),
    "native_3_generator": ("generator", [[9, 13, 17, 2], [19, 18, 21, 8], [20, 14, 4, 3], [5, 0]]),
    "torch_1_seed": ("torch", [[18, 4, 7, 3], [20, 9, 15, 6], [16, 21, 11, 12], [10, 14]]),
}


class Numbers(Dataset[tuple[torch.Tensor, int]]):
    """A dataset whose bytes headrace cannot locate: torch delivers."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(2), index


def loader(kind: str) -> DataLoader[Any]:
    if kind == "torch":
        return DataLoader(Numbers(), 4, shuffle=True, seed=5)
    pixels = np.arange(COUNT * 8 * 8 * 3, dtype=np.uint32).reshape(COUNT, 8, 8, 3).astype(np.uint8)
    data = ImageArray(pixels, list(range(COUNT)), transform=T.Compose([T.RandomHorizontalFlip(), T.ToTensor()]))
    if kind == "seed":
        return DataLoader(data, 4, shuffle=True, seed=5)
    return DataLoader(data, 4, shuffle=True, generator=torch.Generator().manual_seed(6))


def labels(batches: Any) -> list[list[int]]:
    return [targets.tolist() for _, targets in batches]


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
@pytest.mark.parametrize("name", SAVED)
def test_a_state_of_an_earlier_version_goes_on(name: str) -> None:
    kind, left = SAVED[name]
    made = loader(kind)
    assert made.native == (kind != "torch")
    saved = torch.load(STATES / f"{name}.pt", weights_only=True)
    if "pass_order" in saved:
        saved["pass_order"] = made.state_dict()["pass_order"]  # follows the installed Pillow, not the format
    made.load_state_dict(saved)
    assert labels(made) == left


def test_each_format_has_a_frozen_state() -> None:
    """A new number needs a file, and `load` must go on reading the old ones."""
    assert {path.stem for path in STATES.iterdir()} == SAVED.keys()
    assert {name.rpartition("_")[0] for name in SAVED} >= {
        f"native_{checkpoint.VERSION}",
        f"torch_{checkpoint_format.VERSION}",
    }


if __name__ == "__main__":
    one = loader(SAVED[sys.argv[1]][0])
    batches = iter(one)
    next(batches), next(batches)
    with (STATES / f"{sys.argv[1]}.pt").open("xb") as file:
        torch.save(one.state_dict(), file)
    print(labels(batches))

"""A process warns once that torch delivers, with the reason; explain() lists all reasons."""

from __future__ import annotations

import random
from typing import Any

from torch.utils.data import Dataset, default_collate

from headrace import DataLoader


class Numbers(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def test_explain_gives_all_reasons() -> None:
    def mine(samples: list[Any]) -> Any:
        return default_collate(random.sample(samples, len(samples)))

    lines = DataLoader(Numbers(), collate_fn=mine, worker_init_fn=print, num_workers=1).explain().lines
    reasons = [line.how for line in lines if line.part == "all"]
    for words, reason in zip(("collate_fn draws", "worker_init_fn does more", "Numbers"), reasons, strict=True):
        assert words in reason
    assert all(reason.startswith("handed to torch's DataLoader: ") for reason in reasons)

"""The loaders whose states are changed: native with a seed and with generators, of other samplers, and torch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, WeightedRandomSampler

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace.sampler import PermutationSampler

COUNT = 22
KINDS = ("seed", "generator", "permutation", "weighted", "unbatched", "torch")


class Numbers(Dataset[tuple[torch.Tensor, int]]):
    """A dataset whose bytes headrace cannot locate: torch delivers."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(2), index


def loader(kind: str) -> Any:
    """Returns a loader of 22 samples, whose labels are their numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch delivers
        if kind == "torch":
            return DataLoader(Numbers(), 4, shuffle=True, seed=5)
        pixels = np.arange(COUNT * 8 * 8 * 3, dtype=np.uint32).reshape(COUNT, 8, 8, 3).astype(np.uint8)
        data = ImageArray(pixels, list(range(COUNT)), transform=T.Compose([T.RandomCrop(4), T.ToTensor()]))
        if kind == "seed":
            return DataLoader(data, 4, shuffle=True, seed=5)
        if kind == "permutation":
            return DataLoader(data, 4, sampler=PermutationSampler(COUNT), seed=5)
        if kind == "weighted":
            chance = torch.Generator().manual_seed(2)
            return DataLoader(data, 4, sampler=WeightedRandomSampler([1.0] * COUNT, COUNT, generator=chance), seed=5)
        if kind == "unbatched":
            return DataLoader(data, None, shuffle=True, seed=5)
        return DataLoader(data, 4, shuffle=True, generator=torch.Generator().manual_seed(6))


def states(kind: str) -> list[Any]:
    """Returns states before, within and after an epoch."""
    made = loader(kind)
    found = [made.state_dict()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in made:
            found.append(made.state_dict())
    return [*found, made.state_dict()]

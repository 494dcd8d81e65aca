"""Copies of steps share large arrays that calls only read, nothing that calls change or that may be trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from headrace._lowering.python_steps.step_copies import copy_function

LARGE = 1 << 16


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(LARGE))
        self.table, self.mean = np.zeros(LARGE), np.zeros(3)

    def preprocess(self, image: Any) -> Any:
        return image + self.table[0] + self.mean[0]

    def forward(self, image: Any) -> Any:
        return image + self.weight[0]

    def store(self, image: Any) -> Any:
        self.table[0] += 1
        return image


@pytest.mark.parametrize(
    ("name", "shares"),
    [("preprocess", {"weight", "table"}), ("forward", {"table"}), ("store", {"weight"})],
)
def test_what_is_shared(name: str, shares: set[str]) -> None:
    model = Model()
    step = getattr(model, name)
    made = copy_function(step, (step,)).__self__
    assert made is not model
    assert {one for one in ("weight", "table", "mean") if getattr(made, one) is getattr(model, one)} == shares

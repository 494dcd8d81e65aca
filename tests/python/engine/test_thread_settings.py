"""The settings of a thread, such as gradients and context variables, in Python steps: those of torch's workers."""

from __future__ import annotations

import contextvars
import decimal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from support import assert_same, pictures

OWN: contextvars.ContextVar[int] = contextvars.ContextVar("OWN", default=0)


class Tells:
    def __call__(self, image: Any) -> torch.Tensor:
        told = [
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.ones(1, requires_grad=True).mul(2).requires_grad,
            (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16,
            OWN.get(),
            decimal.getcontext().prec,
            np.geterr()["divide"] == "raise",
        ]
        return torch.tensor([float(one) for one in told]).reshape(1, 1, -1)


@contextmanager
def changed() -> Iterator[None]:
    token = OWN.set(5)
    with (
        torch.no_grad(),
        torch.autocast("cpu", dtype=torch.bfloat16),
        decimal.localcontext() as context,
        np.errstate(divide="raise"),
    ):
        context.prec = 7
        yield
    OWN.reset(token)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("setting", [changed, torch.inference_mode, nullcontext])
@pytest.mark.parametrize("when", ["begin", "next"])
def test_steps_see_what_they_see_in_torchs_workers(when: str, setting: Any, workers: int) -> None:
    seen = []
    for kind in (DataLoader, TorchDataLoader):
        loader = kind(EncodedImages(pictures(8), None, T.Compose([Tells()])), 2, num_workers=workers)
        with setting() if when == "begin" else nullcontext():
            iterator = iter(loader)
        with setting() if when == "next" else nullcontext():
            seen.append([batch.clone() for batch in iterator])
    assert assert_same(*seen) == 4

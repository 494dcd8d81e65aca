"""The seeds of the process's generators for samples and batches."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import (  # type: ignore[attr-defined]
    _get_current_function_mode_stack,
    _pop_torch_function_stack,
)

from headrace._recipe.draws.python_randomness import preserve_process_generators, sample_randomness
from headrace._recipe.draws.sample_reseeding import seed_for_batch, seed_for_sample


def words(seed: Callable[[], None]) -> tuple[Any, ...]:
    """What each of the three generators yields when it was seeded: 64 bits, and a normal number."""
    with preserve_process_generators():
        random.gauss(0, 1), np.random.randn(), torch.randn(())  # noqa: NPY002 - these keep half of their numbers
        seed()
        return (
            (random.getrandbits(64), random.gauss(0, 1)),
            (int(np.random.randint(0, 2**63, dtype=np.int64)), float(np.random.randn())),  # noqa: NPY002
            (int(torch.randint(0, 2**63 - 1, ())), float(torch.randn(()))),
        )


def test_everything_counts() -> None:
    seeds: list[Callable[[], None]] = [
        partial(seed_for_sample, seed, epoch, key, occurrence)
        for seed in (0, 1, 2**70, -3)
        for epoch in (0, 1)
        for key in (0, 1, "0", "1", "[0]", [0], [0, 1], [1, 0])
        for occurrence in (0, 1, [0, 1])
    ]
    seeds += [partial(seed_for_batch, seed, epoch, batch) for seed in (0, 1) for epoch in (0, 1) for batch in (0, 1)]
    found = [words(seed) for seed in seeds]
    for generator in zip(*found, strict=True):
        assert len(set(generator)) == len(seeds)


def test_the_same_seed_gives_the_same_numbers() -> None:
    assert words(lambda: seed_for_sample(1, 2, 3, 0)) == words(lambda: seed_for_sample(1, 2, 3, 0))
    assert words(lambda: seed_for_batch(1, 2, 3)) == words(lambda: seed_for_batch(1, 2, 3))


def test_the_generators_do_not_yield_the_same_bits() -> None:
    """Seeded alike, numpy's generator and torch's would: both are a Mersenne Twister."""
    with preserve_process_generators():
        seed_for_sample(1, 2, 3, 0)
        theirs = np.random.randint(0, 2**32, 64, dtype=np.uint32).tolist()  # noqa: NPY002
        assert not set(theirs) & set(torch.randint(0, 2**32, (64,)).tolist())
        np.random.seed(9)  # noqa: NPY002
        torch.manual_seed(9)
        theirs = np.random.randint(0, 2**32, 64, dtype=np.uint32).tolist()  # noqa: NPY002
        assert set(theirs) & set(torch.randint(0, 2**32, (64,)).tolist())


def test_the_generators_of_a_python_step_do_not_either() -> None:
    for uniform in (0.1, 0.5, 0.9):
        with sample_randomness(uniform, process_wide=True):
            theirs = np.random.randint(0, 2**32, 64, dtype=np.uint32).tolist()  # noqa: NPY002
            assert not set(theirs) & set(torch.randint(0, 2**32, (64,)).tolist())


def test_cuda_generators_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("CUDA's generators belong to the training step")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", refuse)
    with pytest.raises(AssertionError), preserve_process_generators():
        torch.manual_seed(1)
    with preserve_process_generators():
        seed_for_sample(1, 2, 3, 0)


def test_randomness_that_is_left_late_takes_no_other_mode_off() -> None:
    """After an interrupt the garbage collector leaves the block, when other code has restored the modes already."""
    with torch.device("meta"):
        before = _get_current_function_mode_stack()
        late = sample_randomness(0.5)
        late.__enter__()
        _pop_torch_function_stack()
        late.__exit__(None, None, None)
        assert _get_current_function_mode_stack() == before
        outer = sample_randomness(0.5)
        outer.__enter__()
        inner = sample_randomness(0.25)
        inner.__enter__()
        outer.__exit__(None, None, None)
        assert _get_current_function_mode_stack() == before
        inner.__exit__(None, None, None)
        assert _get_current_function_mode_stack() == before

"""Where torch rounds sums with products once: found on this machine, and another arithmetic than torch's is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from headrace import DataLoader, ImageArray
from headrace._base.native import core
from headrace._recipe.arithmetic import byte_tensor_operations, tensor_rule
from headrace._recipe.steps.byte_tensor_steps import Rounding, TensorWarp
from support import WATCHDOG_S

pytestmark = pytest.mark.pixels

TESTS = Path(__file__).parents[2] / "oracle" / "policies" / "test_aug_mix.py"
CAPABILITIES = ["default", "avx2", "avx512"]
MATRIX = (0.95, 0.31, 1.3, -0.31, 0.95, -2.6)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """The rule is found again, before and after."""
    found = (
        tensor_rule.find_rounding,
        tensor_rule.are_sums_rounded_once,
        tensor_rule._are_samples_rounded_once,
        tensor_rule._are_positions_rounded_once,
    )
    for one in found:
        one.cache_clear()
    yield
    for one in found:
        one.cache_clear()


@pytest.fixture(scope="module")
def rounding() -> Rounding:
    found = tensor_rule.find_rounding(41, 57)
    if found is None:
        pytest.skip("torch has another arithmetic on this processor")
    return found


def test_both_ways_are_told_apart(rounding: Rounding) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (41, 57, 4), np.uint8)
    values = torch.from_numpy(pixels[..., :3].copy()).permute(2, 0, 1)[None].float()
    grid = byte_tensor_operations.affine_grid(MATRIX, 41, 57)
    sampled = byte_tensor_operations.sample_grid(values, grid, "bilinear")[0].permute(1, 2, 0).numpy()
    made, wrong = (
        core.tensor_warp(pixels, MATRIX, rounding.positions, once) for once in (rounding.samples, not rounding.samples)
    )
    assert np.array_equal(made[0], grid[0].numpy()) and np.array_equal(made[1], sampled)
    assert (wrong[1] != sampled).mean() > 0.05
    assert (core.tensor_warp(pixels, MATRIX, not rounding.positions, False)[0] != made[0]).mean() > 0.05


def test_the_rule_belongs_to_the_machine(rounding: Rounding) -> None:
    """Steps of other machines are equal, and so are the fingerprints in saved states."""
    other = replace(rounding, samples=not rounding.samples)
    one, two = (TensorWarp(1, each, MATRIX, "bilinear", None) for each in (rounding, other))
    assert one == two and repr(one) == repr(two) and hash(one) == hash(two)


@pytest.mark.parametrize("changed", ["sample_grid", "affine_grid"])
def test_another_arithmetic_is_pythons(
    torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch, forgotten: None, changed: str
) -> None:
    v2 = torchvision.transforms.v2
    before = getattr(byte_tensor_operations, changed)
    monkeypatch.setattr(byte_tensor_operations, changed, lambda *given: before(*given) * (1 + 2**-23))
    pixels = np.zeros((2, 16, 16, 3), np.uint8)
    loader = DataLoader(ImageArray(pixels, [0, 1], transform=v2.Compose([v2.AugMix(), v2.PILToTensor()])), 2)
    assert "has no native twin" in str(loader.explain()) and len(list(loader)) == 1


def test_even_sizes(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> None:
    monkeypatch.setattr(tensor_rule, "are_sums_rounded_once", lambda: True)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert tensor_rule.is_rounding_uniform(3 * 32 * 32) and tensor_rule.is_rounding_uniform(3 * 224 * 224)
    assert not tensor_rule.is_rounding_uniform(3 * 9 * 9) and not tensor_rule.is_rounding_uniform(32768 + 16)
    monkeypatch.setattr(tensor_rule, "are_sums_rounded_once", lambda: False)
    assert tensor_rule.is_rounding_uniform(3 * 9 * 9)


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_capability_of_torch(rounding: Rounding, capability: str) -> None:
    """The tests of AugMix, with torch's kernels of another instruction set."""
    if capability == "avx512" and not torch.cpu._is_avx512_supported():
        pytest.skip("the processor has no AVX-512, and torch ends the process")
    if capability == torch.backends.cpu.get_cpu_capability().lower():
        assert tensor_rule.find_rounding(16, 16) is not None  # or it would skip
        pytest.skip(f"{TESTS.name} itself runs with these kernels")
    chosen = "test_images_are_torchvisions or test_every_operation"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS), "-k", chosen],
        env={**os.environ, "ATEN_CPU_CAPABILITY": capability},
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
    )
    assert ran.returncode == 0, ran.stdout
    assert "passed" in ran.stdout and "skipped" not in ran.stdout

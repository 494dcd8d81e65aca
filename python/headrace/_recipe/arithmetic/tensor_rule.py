"""Finds where torch fuses a multiplication and an addition (one rounding), by comparing the native arithmetic with it.

torch's kernels fuse multiplications with additions on some processors, or as ``ATEN_CPU_CAPABILITY`` says; its library
for matrices decides by itself. Floats before rounding are compared, because a byte rarely depends on the last bit.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from headrace._base.native import core
from headrace._recipe.arithmetic import byte_tensor_operations as operations

if TYPE_CHECKING:
    from headrace._recipe.steps.byte_tensor_steps import Rounding

#: Matrices of a shear, a shift and rotations: none has all the same roundings in both ways.
_MATRICES = (
    (1.0, 0.1, 0.1, 0.0, 1.0, 0.0),
    (1.0, 0.0, -7.0, 0.0, 1.0, 0.0),
    (0.9396926, 0.3420201, 0.0, -0.3420201, 0.9396926, 0.0),
    (0.9945219, -0.1045285, 0.0, 0.1045285, 0.9945219, 0.0),
)
#: (height, width) of resizes with windows of 2 to 25 taps, by all three kinds of sums.
SIZES = ((90, 70), (33, 48), (20, 19), (9, 57), (5, 11))
#: A byte of Contrast depends on its place among the last elements of a row of this many.
_AT_ONCE = 16
_PARALLEL = 32768  # elements from which torch divides an operation among its threads


@functools.cache
def find_rounding(height: int, width: int) -> Rounding | None:
    """Returns how torch rounds for images of this size; None if it has another arithmetic than the native code."""
    from headrace._recipe.steps.byte_tensor_steps import Rounding  # only now, as in pillow_rule

    sums, samples, positions = (
        are_sums_rounded_once(),
        _are_samples_rounded_once(),
        _are_positions_rounded_once(height, width),
    )
    return None if sums is None or samples is None or positions is None else Rounding(sums, samples, positions)


@functools.cache
def kind_of_resize(mode: str, in_bytes: bool) -> str | None:
    """Returns which native resize does what torch's antialiased one does: "tensor" for bytes, "float" or "fused" for
    floats, where torch does not or does fuse products with sums. None if none does.

    Args:
        mode: bilinear or bicubic.
        in_bytes: whether torch gets bytes.
    """
    pixels = np.random.default_rng(2).integers(0, 256, (41, 57, 4), dtype=np.uint8)
    values = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None]
    values = values if in_bytes else values.to(torch.float32)
    expected = [
        interpolate(values, size, mode=mode, align_corners=False, antialias=True)[0].permute(1, 2, 0).numpy()
        for size in SIZES
    ]
    for kind in ("tensor",) if in_bytes else ("float", "fused"):
        if all(
            _have_equal_channels(one, _resize_array(pixels, size, kind, mode))
            for one, size in zip(expected, SIZES, strict=True)
        ):
            return kind
    return None


def _resize_array(pixels: np.ndarray, size: tuple[int, int], kind: str, mode: str) -> np.ndarray:
    if kind != "tensor":
        return core.float_resize(pixels, *size, mode == "bicubic", kind == "fused")
    stage = {"box": (0, 0, *pixels.shape[1::-1]), "resize": size[::-1], "filter": f"tensor_{mode}"}
    return run_stage(pixels, stage, 3)


def run_stage(pixels: np.ndarray, stage: dict[str, Any], channels: int) -> np.ndarray:
    """Returns what one stage of a plan, as bind/plan.cpp reads it, makes of an RGBX image: uint8 (H, W, channels)."""
    width, height = stage["resize"]
    made = np.empty((height, width, channels), np.uint8)
    table = np.tile(np.arange(256, dtype=np.uint8), (channels, 1))
    plan = {"stages": [stage], "last": {"box": (0, 0, width, height)}}
    core.fuse(pixels, plan, table, made, layout="channels_last")
    return made


def _have_equal_channels(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a[..., :3], b[..., :3])


def is_rounding_uniform(elements: int) -> bool:
    """Whether torch treats all elements of an image alike where it adds a number to them.

    Its loops for AVX2 round the last ``elements % 16`` in a mixed way, and each thread has last elements of its own.
    """
    threads = torch.get_num_threads() if elements >= _PARALLEL else 1
    return not are_sums_rounded_once() or elements % (_AT_ONCE * threads) == 0


@functools.cache
def find_lanes_of_sums() -> int | None:
    """Returns by how many lanes torch's float32 sum of a long row goes, 8 or 16, on one thread; None if by neither.

    A sum beyond 2^24 is rounded at each addition, so its last bits depend on the order.
    """
    random, found = np.random.default_rng(4), {8, 16}
    with _one_thread():
        for length in (140_003, 187_500, 307_200, 999_999):
            values = random.integers(100, 256, length).astype(np.float32)
            made = np.float32(torch.from_numpy(values).sum().item())
            found &= {lanes for lanes in found if _sum_by_lanes(values, lanes) == made}
    return found.pop() if len(found) == 1 else None


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    if before > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if before > 1:
            torch.set_num_threads(before)


def _sum_by_lanes(values: np.ndarray, lanes: int) -> np.float32:
    """Returns the sum of whole numbers as the kernels make it: that of every fourth vector exactly, the rest in
    float32."""
    blocks, vectors = len(values) // (4 * lanes), len(values) // lanes
    exact = values[: blocks * 4 * lanes].reshape(blocks, 4, lanes).sum(axis=0, dtype=np.int64).astype(np.float32)
    sums = exact[0]
    for vector in values[blocks * 4 * lanes : vectors * lanes].reshape(-1, lanes):
        sums = sums + vector
    for row in exact[1:]:
        sums = sums + row
    total = np.float32(values[vectors * lanes :].sum())
    for one in sums:
        total = total + one
    return np.float32(total)


@functools.cache
def are_sums_rounded_once() -> bool | None:
    """Returns whether torch rounds a sum with a product once, in ``add`` with a factor; None if it does neither."""
    random = np.random.default_rng(0)
    first, second = (random.uniform(0, 255, 4096).astype(np.float32) for _ in range(2))
    alpha = np.float32(0.587)
    made = torch.from_numpy(first.copy()).add_(torch.from_numpy(second), alpha=float(alpha)).numpy()
    # The product of two float32 is exact in float64, so the sum is rounded to float32 at most once more.
    once = (first.astype(np.float64) + second.astype(np.float64) * np.float64(alpha)).astype(np.float32)
    found = [np.array_equal(made, first + alpha * second), np.array_equal(made, once)]
    return bool(found[1]) if sum(found) == 1 else None


@functools.cache
def _are_samples_rounded_once() -> bool | None:
    pixels = np.random.default_rng(1).integers(0, 256, (41, 57, 4), dtype=np.uint8)
    values = torch.from_numpy(pixels[..., :3].copy()).permute(2, 0, 1)[None].to(torch.float32)
    positions = [_are_positions_rounded_once(41, 57)]
    for once in (False, True):
        if positions[0] is not None and all(
            _equals_native_warp(once, pixels, values, one, positions[0]) for one in _MATRICES
        ):
            return once
    return None


def _equals_native_warp(
    once: bool, pixels: np.ndarray, values: torch.Tensor, matrix: tuple[float, ...], positions: bool
) -> bool:
    made = core.tensor_warp(pixels, matrix, positions, once)[1]
    expected = operations.sample_grid(values, operations.affine_grid(matrix, *pixels.shape[:2]), "bilinear")
    return np.array_equal(made, expected[0].permute(1, 2, 0).numpy())


@functools.cache
def _are_positions_rounded_once(height: int, width: int) -> bool | None:
    pixels = np.zeros((height, width, 4), np.uint8)
    for once in (False, True):
        made = (core.tensor_warp(pixels, matrix, once, once)[0] for matrix in _MATRICES)
        expected = (operations.affine_grid(matrix, height, width)[0].numpy() for matrix in _MATRICES)
        if all(itertools.starmap(np.array_equal, zip(made, expected, strict=True))):
            return once
    return None

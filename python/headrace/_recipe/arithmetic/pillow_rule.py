"""Pillow's resize weights, and the order of the two passes in the installed Pillow: by its version, checked by a probe.

Up to Pillow 12.1 the horizontal pass comes first. Since 12.2 an image more than 100 times as high as wide that gets
shorter is resized in two steps, the vertical one first. Since 13.0 the vertical pass comes first if it removes enough
rows. Pixels are rounded to bytes between the passes, so the order affects them if both passes are needed.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image

from headrace._base import messages

Pixels = npt.NDArray[np.uint8]

#: Fraction bits of a weight: 32 - 8 for the result - 2 spare, since weights can be negative and sums exceed 1 (Pillow,
#: Resample.c).
WEIGHT_BITS = 22


def _sinc(x: float) -> float:
    return 1.0 if x == 0.0 else math.sin(x * math.pi) / (x * math.pi)


def _hamming(x: float) -> float:
    # In Pillow's C code the window's constants are floats.
    x = abs(x) * math.pi
    a, b = float(np.float32(0.54)), float(np.float32(0.46))
    return 1.0 if x == 0.0 else 0.0 if x >= math.pi else math.sin(x) / x * (a + b * math.cos(x))


def _bicubic(x: float) -> float:
    # Keys' cubic convolution kernel with a = -0.5.
    x = abs(x)
    if x < 1.0:
        return (1.5 * x - 2.5) * x * x + 1.0
    return (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5 if x < 2.0 else 0.0


#: Recipe's name of a filter -> (half width, kernel function).
KERNELS: dict[str, tuple[float, Callable[[float], float]]] = {
    "box": (0.5, lambda x: 1.0 if -0.5 < x <= 0.5 else 0.0),
    "bilinear": (1.0, lambda x: max(0.0, 1.0 - abs(x))),
    "hamming": (1.0, _hamming),
    "bicubic": (2.0, _bicubic),
    "lanczos": (3.0, lambda x: _sinc(x) * _sinc(x / 3.0) if -3.0 <= x < 3.0 else 0.0),
}


def resize_weights(in_size: int, out_size: int, filter: str) -> npt.NDArray[np.int64]:
    """Returns Pillow's integer weights along one axis: int64 (out_size, in_size), in units of 2^-22."""
    half_width, kernel = KERNELS[filter]
    scale = in_size / out_size
    stretch = max(scale, 1.0)
    support = half_width * stretch
    matrix = np.zeros((out_size, in_size), dtype=np.int64)
    for row in range(out_size):
        center = (row + 0.5) * scale
        first, last = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), in_size)
        taps = [kernel((x - center + 0.5) * (1.0 / stretch)) for x in range(first, last)]
        total = functools.reduce(lambda a, b: a + b, taps, 0.0)  # not sum(), which compensates since Python 3.12
        for x, tap in enumerate(taps, first):
            scaled = (tap / total if total else tap) * (1 << WEIGHT_BITS)
            matrix[row, x] = int(scaled + math.copysign(0.5, scaled))
    return matrix


def _resize_along_rows(pixels: Pixels, matrix: npt.NDArray[np.int64]) -> Pixels:
    """Applies weights along axis 0 and rounds to bytes."""
    sums = np.tensordot(matrix, pixels.astype(np.int64), axes=1) + (1 << (WEIGHT_BITS - 1))
    passed: Pixels = np.clip(sums >> WEIGHT_BITS, 0, 255).astype(np.uint8)
    return passed


def modelled_resize(pixels: Pixels, height: int, width: int, filter: str, vertical_first: bool) -> Pixels:
    """Resizes bytes (H, W, C) to (height, width, C) as Pillow does, in plain numpy, with a given order of
    passes; `probe` compares Pillow with both orders."""
    for axis in (0, 1) if vertical_first else (1, 0):
        size = (height, width)[axis]
        if pixels.shape[axis] != size:
            passed = _resize_along_rows(pixels.swapaxes(0, axis), resize_weights(pixels.shape[axis], size, filter))
            pixels = passed.swapaxes(0, axis)
    return pixels


#: Order's name -> whether the vertical pass comes first, given (in_height, in_width, out_height, out_width).
ORDERS: dict[str, Callable[[int, int, int, int], bool]] = {
    "horizontal_first": lambda in_h, in_w, out_h, out_w: False,
    "tall_split": lambda in_h, in_w, out_h, out_w: in_h > 100 * in_w and out_h < in_h,
    "by_reduction": lambda in_h, in_w, out_h, out_w: in_h - out_h > 0 and in_h - out_h > 2 * (in_w - out_w),
}

_ORDERS_IN_WORDS = {
    "horizontal_first": "the horizontal pass first",
    "tall_split": "the horizontal pass first, except in images 100 times as tall as wide",
    "by_reduction": "the vertical pass first where it removes more than twice as many lines as the other",
}

# (in_height, in_width, out_height, out_width) of the probe: wide, square, just below and above the 2:1 limit, taller
# than 100:1 with strong and weak reduction, and enlarged along one axis.
_CASES = (
    (20, 60, 9, 11),
    (24, 24, 13, 13),
    (40, 24, 11, 9),
    (41, 24, 10, 9),
    (202, 2, 30, 3),
    (300, 2, 299, 1),
    (12, 30, 25, 7),
    (30, 12, 7, 25),
)


@dataclass(frozen=True)
class ProbeReport:
    """Result of the probe.

    Attributes:
        pillow: Pillow's version.
        expected: the order that this version is expected to use.
        fitting: the orders that reproduce Pillow's pixels.
        cases: number of resizes compared.
        seconds: duration of the probe.
    """

    pillow: str
    expected: str
    fitting: tuple[str, ...]
    cases: int
    seconds: float

    @property
    def order(self) -> str:
        """The expected order if it fits or none fits, otherwise the first one that fits."""
        return self.expected if self.expected in self.fitting or not self.fitting else self.fitting[0]


def describe_order(order: str) -> str:
    """Returns one of `ORDERS` in words, for reports."""
    return _ORDERS_IN_WORDS[order]


def expected_order(version: str) -> str:
    """Returns the order of a Pillow version such as "13.0.0"; versions after 13.0 are assumed to keep its order."""
    major, minor = (int("".join(c for c in part if c.isdigit()) or 0) for part in (version + ".0").split(".")[:2])
    if (major, minor) < (12, 2):
        return "horizontal_first"
    return "tall_split" if major == 12 else "by_reduction"


def probe_pass_order() -> ProbeReport:
    """Compares the installed Pillow with each order of `resize`, on small images of noise."""
    from headrace._recipe.steps.steps import FILTERS  # only now: worker processes that open no image need no steps

    begin = time.perf_counter()
    fitting = list(ORDERS)
    noise = np.random.Generator(np.random.PCG64(0))
    for case in _CASES:
        in_h, in_w, out_h, out_w = case
        pixels = noise.integers(0, 256, (in_h, in_w, 3), dtype=np.uint8)
        made = np.asarray(Image.fromarray(pixels).resize((out_w, out_h), resample=FILTERS["bilinear"]))
        ours = {first: modelled_resize(pixels, out_h, out_w, "bilinear", first) for first in (False, True)}
        fitting = [name for name in fitting if np.array_equal(made, ours[ORDERS[name](*case)])]
    seconds = time.perf_counter() - begin
    return ProbeReport(PIL.__version__, expected_order(PIL.__version__), tuple(fitting), len(_CASES), seconds)


@functools.cache
def pass_order() -> str:
    """Returns the installed Pillow's order, a key of `ORDERS`; probes at the first call.

    Warns:
        RuntimeWarning: Pillow's pixels do not follow the order expected for its version.
    """
    report = probe_pass_order()
    if report.expected not in report.fitting:
        found = f"follows {report.order!r}" if report.fitting else "matches no known order of the passes, so native "
        found += "" if report.fitting else "pixels may differ from it by rounding; check with loader.verify()"
        messages.warn(f"Pillow {report.pillow} was expected to resize {report.expected!r} but {found}", RuntimeWarning)
    return report.order


@functools.cache
def is_pass_order_known() -> bool:
    """Returns whether Pillow resizes in the order expected for its version, so that `pass_order` does not warn."""
    report = probe_pass_order()
    return report.expected in report.fitting


def vertical_first(in_height: int, in_width: int, out_height: int, out_width: int) -> bool:
    """Returns whether the installed Pillow makes the vertical pass of a resize first; False if one pass is enough."""
    both = in_height != out_height and in_width != out_width
    return both and ORDERS[pass_order()](in_height, in_width, out_height, out_width)

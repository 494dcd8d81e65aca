"""The operations of torchvision's AugMix, which works on byte tensors, for each of their magnitudes and signs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder
from headrace.lowering.policies.operations import Steps
from headrace.pixels import tensor_rule, warps
from headrace.transforms import filter_name

#: Up to here torch's float32 sum of the bytes is exact: 2^24 / 255.
_MOST_SUMMED = 65793
_BINS = 10


class TensorOperations:
    """Lowers the operations.

    Args:
        builder: refuses the transform where torch's arithmetic on this machine is not the native one.
        transform: torchvision's AugMix.
        library: "v1" or "v2".
    """

    def __init__(self, builder: Builder, transform: Any, library: str) -> None:
        self._builder = builder
        self._version = 1 if library == "v1" else 2
        if builder.size is None:
            builder.refuse(
                "moves an image by a share of its size, and the size of the image is not known here; put it behind "
                "RandomResizedCrop, Resize((height, width)) or CenterCrop"
            )
        self._size = builder.size
        found = tensor_rule.rounding(*self._size)
        if found is None:
            builder.refuse("maps tensors by torch's grid_sample, whose arithmetic on this processor has no native twin")
        self._rounding = found
        self._filter = filter_name(transform.interpolation)
        if self._filter not in ("nearest", "bilinear"):
            builder.refuse(f"maps tensors with the filter {self._filter}, which torchvision supports for images only")
        self._fill = self._fill_of(transform)
        self._severity = int(transform.severity)
        self._space = self._space_of(transform)

    def every(self) -> list[list[Steps]]:
        """Returns the operations, and for each what it can do: its equally probable magnitudes and signs."""
        return [self._ways(name) for name in self._space]

    @property
    def names(self) -> Sequence[str]:
        """The operations, in torchvision's order."""
        return tuple(self._space)

    def _fill_of(self, transform: Any) -> tuple[float, float, float] | None:
        fill = transform.fill
        if self._version == 2:
            fill = transform._fill.get(torch.Tensor, transform._fill.get("others"))
        if fill is None:
            return None
        values = [float(one) for one in (fill if isinstance(fill, (list, tuple)) else [fill])]
        if len(values) not in (1, self._builder.channels) or not all(0 <= one <= 255 for one in values):
            self._builder.refuse(f"fill={fill} is not one value from 0 to 255, or one for each channel")
        red, green, blue = values if len(values) == 3 else values * 3
        return red, green, blue

    def _space_of(self, transform: Any) -> dict[str, tuple[list[float] | None, bool]]:
        """Returns the magnitudes of each operation, as the object itself computes them, and whether it has a sign."""
        if self._version == 1:
            given = transform._augmentation_space(_BINS, self._size)
            return {name: (found.tolist() if found.ndim else None, signed) for name, (found, signed) in given.items()}
        space = transform._AUGMENTATION_SPACE if transform.all_ops else transform._PARTIAL_AUGMENTATION_SPACE
        made = {}
        for name, (of_bins, signed) in space.items():
            found = of_bins(_BINS, *self._size)
            made[name] = (None if found is None else found.tolist(), signed)
        return made

    def _ways(self, name: str) -> list[Steps]:
        magnitudes, signed = self._space[name]
        if magnitudes is None:
            return [self._steps(name, 0.0)]
        ways = []
        for magnitude in magnitudes[: self._severity]:
            ways += [-magnitude, magnitude] if signed else [magnitude]
        return [self._steps(name, way) for way in ways]

    def _steps(self, name: str, magnitude: float) -> Steps:
        version, rounding = self._version, self._rounding
        if name == "AutoContrast":
            return (S.TensorAutocontrast(version, rounding),)
        if name == "Equalize":
            return (S.Equalize(),)
        if name == "Posterize":
            bits = int(magnitude)  # 0 bits, which Pillow 13 refuses, are black
            return (S.Posterize(bits) if bits > 0 else S.Brightness(S.Constant(0.0)),)
        if name == "Solarize":  # v2's magnitudes are shares of the largest value; torch compares in float32
            threshold = magnitude if version == 1 else 255.0 * magnitude
            return (S.Solarize(torch.tensor(threshold, dtype=torch.float32, device="cpu").item()),)
        if name in ("Brightness", "Color", "Contrast", "Sharpness"):
            return self._by_factor(name, 1.0 + magnitude)
        if name not in _MATRICES:
            self._builder.refuse(f"has an operation {name} that has no native twin")
        matrix = _MATRICES[name](magnitude, *self._size, version)
        if matrix is None:
            return ()
        return (S.TensorWarp(version, rounding, tuple(matrix), self._filter, self._fill),)

    def _by_factor(self, name: str, factor: float) -> Steps:
        version, rounding, channels = self._version, self._rounding, self._builder.channels
        height, width = self._size
        if name == "Brightness":  # torch's product, cut to a byte, is Pillow's blend with black
            return (S.Brightness(S.Constant(factor)),)
        if name == "Color":
            return () if channels == 1 else (S.TensorSaturation(version, rounding, factor),)
        if name == "Sharpness":
            return (S.TensorSharpness(version, rounding, factor),)
        if height * width > _MOST_SUMMED:
            self._builder.refuse(
                f"sums up {height * width} pixels for Contrast in float32; natively up to {_MOST_SUMMED}, which torch "
                "sums up without rounding"
            )
        if version == 2 and not tensor_rule.even(channels * height * width):
            self._builder.refuse(
                f"blends {channels} x {height} x {width} values for Contrast, and torch rounds the last ones otherwise "
                "on this processor; natively where their number is a multiple of 16, and of 16 for each thread of torch"
            )
        return (S.TensorContrast(version, rounding, factor, channels),)


def _shear_x(magnitude: float, height: int, width: int, version: int) -> list[float]:
    center = (-width * 0.5, -height * 0.5)
    shear = (math.degrees(math.atan(magnitude)), 0.0)
    return warps.inverse_affine_matrix(center, 0.0, (0, 0), 1.0, shear, version)


def _shear_y(magnitude: float, height: int, width: int, version: int) -> list[float]:
    center = (-width * 0.5, -height * 0.5)
    shear = (0.0, math.degrees(math.atan(magnitude)))
    return warps.inverse_affine_matrix(center, 0.0, (0, 0), 1.0, shear, version)


def _shifted(x: float, y: float, version: int) -> list[float]:
    return warps.inverse_affine_matrix((0.0, 0.0), 0.0, (int(x), int(y)), 1.0, (0.0, 0.0), version)


def _rotated(magnitude: float, height: int, width: int, version: int) -> list[float] | None:
    if version == 2 and magnitude % 360 == 0:
        return None
    angle = magnitude if version == 1 else magnitude % 360
    return warps.inverse_affine_matrix((0.0, 0.0), -angle, (0, 0), 1.0, (0.0, 0.0), version)


#: Name -> the matrix for (magnitude, height, width, version); None where torchvision returns the image.
_MATRICES: dict[str, Callable[[float, int, int, int], list[float] | None]] = {
    "ShearX": _shear_x,
    "ShearY": _shear_y,
    "TranslateX": lambda magnitude, height, width, version: _shifted(magnitude, 0, version),
    "TranslateY": lambda magnitude, height, width, version: _shifted(0, magnitude, version),
    "Rotate": _rotated,
}

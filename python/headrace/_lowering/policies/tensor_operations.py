"""One operation of torchvision's policies on byte tensors as native steps, for each of its magnitudes and signs.

AugMix works on tensors always, the other policies where a step before them makes one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.byte_tensors.tensor_colour import make_contrast, make_posterize
from headrace._lowering.policies.operations import Steps, magnitudes_of_policy, signed_magnitudes
from headrace._recipe.arithmetic import tensor_rule, warps
from headrace.transforms import filter_name

_PLAIN: dict[str, Steps] = {"Identity": (), "Equalize": (S.Equalize(),), "Invert": (S.Invert(),)}


class TensorOperations:
    """Lowers the operations.

    Args:
        builder: refuses the transform where torch's arithmetic on this machine is not the native one.
        transform: torchvision's policy.
        library: "v1" or "v2".
        bins: number of magnitudes that each operation must have.
        most: number of them that can be drawn.
    """

    def __init__(self, builder: Builder, transform: Any, library: str, bins: int, most: int | None = None) -> None:
        self._builder = builder
        self._version = 1 if library == "v1" else 2
        if builder.size is None:
            builder.refuse(
                "moves an image by a share of its size, and the size of the image is not known here; put it after "
                "RandomResizedCrop, Resize((height, width)) or CenterCrop"
            )
        self._size = builder.size
        found = tensor_rule.find_rounding(*self._size)
        if found is None:
            builder.refuse("maps tensors by torch's grid_sample, whose arithmetic on this processor has no native twin")
        self._rounding = found
        self._filter = filter_name(transform.interpolation)
        if self._filter not in ("nearest", "bilinear"):
            builder.refuse(f"maps tensors with the filter {self._filter}, which torchvision supports for images only")
        self._fill = self._fill_of(transform)
        self._most = most
        self._space = magnitudes_of_policy(transform, library, bins, self._size)

    @property
    def names(self) -> Sequence[str]:
        """The operations, in torchvision's order."""
        return tuple(self._space)

    def lower(self, name: str, bin: int | None) -> list[Steps]:
        """Returns what an operation can do, as `Operations.lower`."""
        found, signed = self._space[name]
        if found is None:
            return [self._steps_of_operation(name, 0.0)]
        return [
            self._steps_of_operation(name, way)
            for way in signed_magnitudes(self._builder, found[: self._most], signed, bin)
        ]

    def _fill_of(self, transform: Any) -> tuple[float, float, float] | None:
        fill = transform.fill
        if self._version == 2:
            if self._builder.values is not None and transform._fill.keys() != {"others"}:
                self._builder.refuse("fill depends on the class of the image; on a tensor give one fill for all")
            fill = transform._fill.get(torch.Tensor, transform._fill.get("others"))
        if fill is None:
            return None
        values = [float(one) for one in (fill if isinstance(fill, (list, tuple)) else [fill])]
        if len(values) not in (1, self._builder.channels) or not all(0 <= one <= 255 for one in values):
            self._builder.refuse(f"fill={fill} is not one value from 0 to 255, or one for each channel")
        red, green, blue = values if len(values) == 3 else values * 3
        return red, green, blue

    def _steps_of_operation(self, name: str, magnitude: float) -> Steps:
        version, rounding = self._version, self._rounding
        if name in _PLAIN:
            return _PLAIN[name]
        if name == "AutoContrast":
            return (S.TensorAutocontrast(version, rounding),)
        if name == "Posterize":
            return (make_posterize(int(magnitude)),)
        if name == "Solarize":  # v2's magnitudes are shares of the largest value; torch compares in float32
            threshold = magnitude if version == 1 else 255.0 * magnitude
            return (S.Solarize(torch.tensor(threshold, dtype=torch.float32, device="cpu").item()),)
        if name in ("Brightness", "Color", "Contrast", "Sharpness"):
            return self._blend_steps(name, 1.0 + magnitude)
        if name not in _MATRICES:
            self._builder.refuse(f"has an operation {name} that has no native twin")
        if name == "Rotate" and version == 2 and self._is_quarter_turn(magnitude):
            return (S.Rotate(magnitude % 360, "nearest", (0, 0, 0)),)
        matrix = _MATRICES[name](magnitude, *self._size, version)
        if matrix is None:
            return ()
        return (S.TensorWarp(version, rounding, tuple(matrix), self._filter, self._fill),)

    def _is_quarter_turn(self, angle: float) -> bool:
        """Whether torchvision v2 turns the image by moving pixels, as Pillow does then."""
        height, width = self._size
        return angle % 360 == 180 or (height == width and angle % 360 in (90, 270))

    def _blend_steps(self, name: str, factor: float) -> Steps:
        version, rounding, channels = self._version, self._rounding, self._builder.channels
        if name == "Brightness":  # torch's product, cut to a byte, is Pillow's blend with black
            return (S.Brightness(S.Constant(factor)),)
        if name == "Color":
            return () if channels == 1 else (S.TensorSaturation(version, rounding, factor),)
        if name == "Sharpness":
            return (S.TensorSharpness(version, rounding, factor),)
        return (make_contrast(self._builder, version, rounding, factor),)


def _shear_x(magnitude: float, height: int, width: int, version: int) -> list[float]:
    center = (-width * 0.5, -height * 0.5)
    shear = (math.degrees(math.atan(magnitude)), 0.0)
    return warps.inverse_affine_matrix(center, 0.0, (0, 0), 1.0, shear, version)


def _shear_y(magnitude: float, height: int, width: int, version: int) -> list[float]:
    center = (-width * 0.5, -height * 0.5)
    shear = (0.0, math.degrees(math.atan(magnitude)))
    return warps.inverse_affine_matrix(center, 0.0, (0, 0), 1.0, shear, version)


def _make_shift(x: float, y: float, version: int) -> list[float]:
    return warps.inverse_affine_matrix((0.0, 0.0), 0.0, (int(x), int(y)), 1.0, (0.0, 0.0), version)


def _make_rotation(magnitude: float, height: int, width: int, version: int) -> list[float] | None:
    if version == 2 and magnitude % 360 == 0:
        return None
    angle = magnitude if version == 1 else magnitude % 360
    return warps.inverse_affine_matrix((0.0, 0.0), -angle, (0, 0), 1.0, (0.0, 0.0), version)


#: Name -> the matrix for (magnitude, height, width, version); None where torchvision returns the image.
_MATRICES: dict[str, Callable[[float, int, int, int], list[float] | None]] = {
    "ShearX": _shear_x,
    "ShearY": _shear_y,
    "TranslateX": lambda magnitude, height, width, version: _make_shift(magnitude, 0, version),
    "TranslateY": lambda magnitude, height, width, version: _make_shift(0, magnitude, version),
    "Rotate": _make_rotation,
}

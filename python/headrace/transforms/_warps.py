"""Transforms that rotate and warp PIL images."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

import torch
from PIL import Image

from headrace._recipe.arithmetic import functional_pil, warps
from headrace._recipe.steps.steps import FILTERS
from headrace.transforms._arguments import Fills, Interpolation, fill_of, fills_by_class, filter_name
from headrace.transforms._base import PIL_ALONE, Params, RandomTransform, Transform, common_size, torch_position


def _check_length(given: object, name: str, lengths: Sequence[int]) -> None:
    refusal = f"{name} should be a sequence of length {' or '.join(map(str, lengths))}."
    if not isinstance(given, Sequence):
        raise TypeError(refusal)
    if len(given) not in lengths:
        raise ValueError(refusal)


def _checked_angles(given: Any, name: str, lengths: Sequence[int] = (2,)) -> list[float]:
    """Returns the bounds of angles: those given, or minus and plus one number."""
    if isinstance(given, numbers.Number):
        if given < 0:  # type: ignore[operator]  # a complex number raises TypeError, as in torchvision
            raise ValueError(f"If {name} is a single number, it must be positive.")
        given = [-given, given]  # type: ignore[operator]
    else:
        _check_length(given, name, lengths)
    return [float(one) for one in given]


def _checked_center(given: Sequence[float] | None) -> Sequence[float] | None:
    if given is not None:
        _check_length(given, "center", (2,))
    return given


def _draw_uniform(low: float, high: float) -> float:
    """Returns a random number from torch's global generator."""
    return torch.empty(1).uniform_(low, high).item()


def _warp_options(transform: RandomRotation | RandomAffine | RandomPerspective, image: Image.Image) -> Params:
    """Returns Pillow's arguments `resample` and `fillcolor`."""
    fill = functional_pil.pixel(fill_of(transform._fill, type(image)), image)
    return {"resample": Image.Resampling(FILTERS[filter_name(transform.interpolation)]), "fillcolor": fill}


class RandomRotation(Transform):
    """Rotates by a random angle.

    Args:
        degrees: (smallest, largest) angle in degrees, counter-clockwise, or one number: that angle to both sides.
        interpolation: the filter: nearest, bilinear or bicubic, as a mode of `InterpolationMode`, its name, or Pillow's
            number.
        expand: whether the output is as large as the whole rotated image; otherwise the size stays.
        center: (x, y) of the fixed point in pixels from the top left corner; None: the centre of the image.
        fill: colour of the pixels that come from outside the image: one number or one per channel; or a dict of image
            class to fill, with "others" for all other classes. Subclasses do not match.

    Raises:
        ValueError: an argument has the wrong length, `degrees` is negative, or the filter is unknown. When called:
            Pillow does not rotate with the filter.
        TypeError: an argument has the wrong type.
    """

    _takes = PIL_ALONE

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Fills = 0,
    ) -> None:
        super().__init__()
        self.degrees: list[float] = _checked_angles(degrees, "degrees")
        filter_name(interpolation)
        self.interpolation = interpolation
        self.expand = expand
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill
        self.center: Sequence[float] | None = _checked_center(center)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Draws an angle as torchvision v1's static method does."""
        return _draw_uniform(float(degrees[0]), float(degrees[1]))

    def make_params(self, flat_inputs: list[object]) -> Params:
        return {"angle": self.get_params(self.degrees)}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        center = cast("tuple[float, float] | None", self.center)
        return inpt.rotate(params["angle"], expand=self.expand, center=center, **_warp_options(self, inpt))


class RandomAffine(Transform):
    """Rotates, shifts, scales and shears by random amounts.

    Args:
        degrees: as in `RandomRotation`.
        translate: largest shifts (x, y) as shares of the width and the height, in [0, 1]; None: no shift.
        scale: (smallest, largest) factor of lengths, positive; None: no scaling.
        shear: (smallest, largest) shear along x in degrees, or four numbers: along x, then along y; or one number: the
            shear along x to both sides. None: no shear.
        interpolation, fill, center: as in `RandomRotation`.

    Raises:
        ValueError: an argument has the wrong length or is out of range, or the filter is unknown. When called: Pillow
            does not warp with the filter.
        TypeError: an argument has the wrong type.
    """

    _takes = PIL_ALONE

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Interpolation = "nearest",
        fill: Fills = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.degrees: list[float] = _checked_angles(degrees, "degrees")
        if translate is not None:
            _check_length(translate, "translate", (2,))
            if not all(0.0 <= share <= 1.0 for share in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            _check_length(scale, "scale", (2,))
            if any(factor <= 0 for factor in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear: list[float] | None = None if shear is None else _checked_angles(shear, "shear", (2, 4))
        filter_name(interpolation)
        self.interpolation = interpolation
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill
        self.center: Sequence[float] | None = _checked_center(center)

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Draws (angle, (x, y) of the shift, scale, shears) as torchvision v1's static method does.

        Args:
            degrees, translate, scale_ranges, shears: bounds, as the attributes of the transform.
            img_size: (width, height) of the image.
        """
        angle = _draw_uniform(float(degrees[0]), float(degrees[1]))
        shift_x = shift_y = 0
        if translate is not None:
            most_x, most_y = (float(share * edge) for share, edge in zip(translate, img_size, strict=True))
            shift_x, shift_y = round(_draw_uniform(-most_x, most_x)), round(_draw_uniform(-most_y, most_y))
        scale = 1.0 if scale_ranges is None else _draw_uniform(scale_ranges[0], scale_ranges[1])
        shear_x = 0.0 if shears is None else _draw_uniform(shears[0], shears[1])
        shear_y = _draw_uniform(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, (shift_x, shift_y), scale, (shear_x, shear_y)

    def make_params(self, flat_inputs: list[object]) -> Params:
        height, width = common_size(flat_inputs)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, (width, height))
        return dict(zip(("angle", "translate", "scale", "shear"), drawn, strict=True))

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        x, y = (inpt.width * 0.5, inpt.height * 0.5) if self.center is None else map(float, self.center)
        matrix = warps.inverse_affine_matrix((x, y), **params, version=2)
        return inpt.transform(inpt.size, Image.Transform.AFFINE, matrix, **_warp_options(self, inpt))


class RandomPerspective(RandomTransform):
    """Moves the corners inwards by random distances, with probability `p`.

    Args:
        distortion_scale: largest distance as a share of half the width and half the height, in [0, 1].
        p: probability.
        interpolation, fill: as in `RandomRotation`.

    Raises:
        ValueError: `distortion_scale` or `p` is out of range, or the filter is unknown. When called: Pillow does not
            warp with the filter.
        TypeError: `fill` has the wrong type.
        RuntimeError: when called, if three corners are moved onto one line.
    """

    _takes = PIL_ALONE

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = "bilinear",
        fill: Fills = 0,
    ) -> None:
        super().__init__(p=p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale = distortion_scale
        filter_name(interpolation)
        self.interpolation = interpolation
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """Draws (corners, where they move to) as torchvision v1's static method does."""
        x, y = warps.perspective_moves(height, width, distortion_scale)
        start = warps.corners(height, width)
        lows = [(0, 0), (width - 1 - x, 0), (width - 1 - x, height - 1 - y), (0, height - 1 - y)]
        return start, [[left + torch_position(x + 1), top + torch_position(y + 1)] for left, top in lows]

    def make_params(self, flat_inputs: list[object]) -> Params:
        height, width = common_size(flat_inputs)
        start, end = self.get_params(width, height, self.distortion_scale)
        return {"coefficients": warps.perspective_coefficients(start, end)}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        numbers = params["coefficients"]
        return inpt.transform(inpt.size, Image.Transform.PERSPECTIVE, numbers, **_warp_options(self, inpt))

"""Transforms that draw the size of their output; they change PIL images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image

from headrace._recipe.arithmetic import boxes, drawn_boxes, functional_pil
from headrace.transforms._arguments import Fills, Interpolation, fill_of, fills_by_class, filter_name
from headrace.transforms._base import PIL_ALONE, Params, RandomTransform, Transform, common_size
from headrace.transforms._geometry import warn_if_not_antialiased


class _DrawnResize(Transform):
    """Resizes to the drawn size: ``[shorter edge]`` or ``(height, width)``."""

    _takes = PIL_ALONE
    interpolation: Interpolation
    antialias: bool | None

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        warn_if_not_antialiased(self.antialias)
        size = params["size"]
        height, width = boxes.resize_by_edge(inpt.height, inpt.width, size[0], None) if len(size) == 1 else size
        return functional_pil.resize(inpt, height, width, filter_name(self.interpolation))


class RandomResize(_DrawnResize):
    """Resizes the shorter edge to a random length, keeping the aspect ratio.

    Args:
        min_size, max_size: the length in pixels is drawn from ``[min_size, max_size)``.
        interpolation: the filter: a mode of `InterpolationMode`, its name, or Pillow's number.
        antialias: no effect, since Pillow always antialiases.

    Raises:
        ValueError: the filter is unknown.
        RuntimeError: when called, if `max_size` does not exceed `min_size`.
    """

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        filter_name(interpolation)
        self.min_size = min_size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[object]) -> Params:
        return {"size": [int(torch.randint(self.min_size, self.max_size, ()))]}


class RandomShortestSize(_DrawnResize):
    """Resizes so that the shorter edge has one of several lengths, keeping the aspect ratio.

    The factor is computed first, so an edge can be one pixel shorter than requested.

    Args:
        min_size: the lengths of the shorter edge in pixels, or one number.
        max_size: largest length of the longer edge; None: no limit.
        interpolation: the filter: a mode of `InterpolationMode`, its name, or Pillow's number.
        antialias: no effect, since Pillow always antialiases.

    Raises:
        ValueError: the filter is unknown. When called: the sample holds images of different sizes.
    """

    def __init__(
        self,
        min_size: list[int] | tuple[int, ...] | int,
        max_size: int | None = None,
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        filter_name(interpolation)
        self.min_size: list[int] = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[object]) -> Params:
        height, width = common_size(flat_inputs)
        size = self.min_size[int(torch.randint(len(self.min_size), ()))]
        return {"size": drawn_boxes.scaled_shorter(height, width, size, self.max_size)}


class ScaleJitter(_DrawnResize):
    """Resizes to a random share of the largest size that fits in `target_size`, keeping the aspect ratio.

    Args:
        target_size: (width, height) in pixels: torchvision compares the first number with the width.
        scale_range: (smallest, largest) factor; drawn uniformly.
        interpolation: the filter: a mode of `InterpolationMode`, its name, or Pillow's number.
        antialias: no effect, since Pillow always antialiases.

    Raises:
        ValueError: the filter is unknown. When called: the sample holds images of different sizes.
    """

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        filter_name(interpolation)
        self.target_size = target_size
        self.scale_range = scale_range
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[object]) -> Params:
        height, width = common_size(flat_inputs)
        low, high = self.scale_range[0], self.scale_range[1]
        scale = low + torch.rand(1) * (high - low)  # a tensor, for torchvision's roundings to float32
        target = self.target_size[1], self.target_size[0]
        return {"size": drawn_boxes.jitter_size(height, width, target, scale)}


class RandomZoomOut(RandomTransform):
    """Pads an image to a random multiple of its size, at a random place, with probability `p`.

    Args:
        fill: one number or one per channel; or a dict of image class to fill, with "others" for all other classes.
            Subclasses do not match.
        side_range: (smallest, largest) factor of both edges, 1 or more; drawn uniformly.
        p: the probability.

    Raises:
        ValueError: `p` is outside [0, 1], or `side_range` has another length or order. When called: the sample holds
            images of different sizes.
        TypeError: `fill` or `side_range` has the wrong type.
    """

    _takes = PIL_ALONE

    def __init__(self, fill: Fills = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill
        if not isinstance(side_range, Sequence):
            raise TypeError("side_range should be a sequence of length 2.")
        if len(side_range) != 2:
            raise ValueError("side_range should be a sequence of length 2.")
        self.side_range = side_range
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, flat_inputs: list[object]) -> Params:
        height, width = common_size(flat_inputs)
        low, high = self.side_range[0], self.side_range[1]
        factor = low + torch.rand(1) * (high - low)  # tensors, for torchvision's roundings to float32
        left, top = torch.rand(2)
        return {"padding": list(drawn_boxes.zoomed_out(height, width, factor, left, top))}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.pad(inpt, params["padding"], fill_of(self._fill, type(inpt)), "constant")

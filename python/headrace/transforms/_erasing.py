"""RandomErasing of tensors and PIL images."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence

import torch
from PIL import Image

from headrace._recipe.arithmetic import boxes
from headrace._recipe.images.part_kinds import Kind, kind_of, map_values
from headrace._recipe.images.pil_tensor import pil_to_tensor, to_pil_image
from headrace.transforms._base import (
    BESIDE_IMAGES,
    Params,
    RandomTransform,
    channels_height_width,
    common_shape,
    torch_position,
)
from headrace.transforms._crops import area_tries


class RandomErasing(RandomTransform):
    """Writes `value` into a random box of a tensor (..., C, H, W) or a PIL image, with probability `p`.

    Args:
        p: probability of erasing.
        scale: (smallest, largest) fraction of the image area, in [0, 1].
        ratio: (smallest, largest) height / width of the box; drawn log-uniformly.
        value: one number, one number per channel, or "random" for a normally distributed number per element. "random"
            has no native twin: a `headrace.DataLoader` calls it in Python.
        inplace: whether to write into the input tensor.

    Raises:
        TypeError: an argument has the wrong type. When called: the sample has no image.
        ValueError: an argument is out of range. When called: the number of values is neither 1 nor the number of
            channels, or the sample holds images of different shapes.
    """

    _takes = frozenset({Kind.PIL, Kind.PURE, Kind.IMAGE, Kind.VIDEO}) | BESIDE_IMAGES

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=3)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        self.scale = scale
        self.ratio = ratio
        self.value: list[float] | None = None
        if not isinstance(value, str):
            self.value = [float(one) for one in (value if isinstance(value, Sequence) else [value])]
        self.inplace = inplace

    @staticmethod
    def get_params(
        img: torch.Tensor, scale: Sequence[float], ratio: Sequence[float], value: list[float] | None = None
    ) -> tuple[int, int, int, int, torch.Tensor]:
        """Draws (top, left, height, width, values) of a box as torchvision v1's static method does.

        If `value` is None, the values are normally distributed. If no box fits, the box is the whole image and the
        values are its own.
        """
        channels, height, width = channels_height_width(img)
        drawn = _box_and_values(channels, height, width, scale, ratio, value)
        return (0, 0, height, width, img) if drawn is None else (*drawn[0], drawn[1])

    def make_params(self, flat_inputs: list[object]) -> Params:
        images = [part for part in flat_inputs if kind_of(part) not in BESIDE_IMAGES]
        channels, height, width = common_shape(images)
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {channels} (number of inpt channels)"
            )
        return {"erased": _box_and_values(channels, height, width, self.scale, self.ratio, self.value)}

    def transform(self, inpt: Image.Image | torch.Tensor, params: Params) -> Image.Image | torch.Tensor:
        if params["erased"] is None:
            return inpt
        if kind_of(inpt) in BESIDE_IMAGES:
            warnings.warn(
                f"{type(self).__name__}() is currently passing through inputs of type "
                f"tv_tensors.{type(inpt).__name__}. This will likely change in the future.",
                stacklevel=2,
            )
            return inpt
        box, values = params["erased"]

        def erase_box(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor if self.inplace else tensor.clone()
            tensor[..., box.top : box.top + box.height, box.left : box.left + box.width] = values
            return tensor

        if isinstance(inpt, Image.Image):
            return to_pil_image(erase_box(pil_to_tensor(inpt)), inpt.mode)
        return map_values(erase_box, inpt)


def _box_and_values(
    channels: int, height: int, width: int, scale: Sequence[float], ratio: Sequence[float], value: list[float] | None
) -> tuple[boxes.Box, torch.Tensor] | None:
    """Draws the box and its values, broadcastable to the box; None if no box fits."""
    # torchvision draws the values between the box's size and its position: the position is drawn below.
    box = boxes.random_erase(height, width, area_tries(scale, ratio), lambda n: 0, lambda n: 0)
    if box is None:
        return None
    if value is None:
        values = torch.empty([channels, box.height, box.width], dtype=torch.float32).normal_()
    else:
        values = torch.tensor(value)[:, None, None]
    top = torch_position(height - box.height + 1)
    return box._replace(top=top, left=torch_position(width - box.width + 1)), values

"""Transforms that return several crops of a PIL image."""

from __future__ import annotations

from typing import Any

from PIL import Image

from headrace._recipe.arithmetic import boxes, pillow_ops
from headrace.transforms._base import PIL_ALONE, Transform
from headrace.transforms._shapes import Size, pair

#: (bottom, right) of the corners, in torchvision's order.
CORNERS = ((False, False), (False, True), (True, False), (True, True))


def _five(image: Image.Image, size: Any) -> tuple[Image.Image, ...]:
    height, width = size
    found = [boxes.corner(image.height, image.width, height, width, *corner) for corner in CORNERS]
    found.append(boxes.center_crop(image.height, image.width, height, width)[1])
    return tuple(pillow_ops.crop(image, box) for box in found)


class FiveCrop(Transform):
    """Crops the four corners and the centre of an image.

    Called directly, it returns a tuple of five images in its place: top left, top right, bottom left, bottom right,
    centre. A loader decodes the image once, if every step is native, and yields a list of five batches (n, C, H, W), as
    torch collates the tuples; or one batch (n, 5, C, H, W), if a function behind the crops stacks them.

    Args:
        size: (height, width) of a crop in pixels, or one number for both.

    Raises:
        ValueError: `size` has another length. When called: the image is smaller than a crop.
    """

    _takes = PIL_ALONE

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = pair(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> tuple[Image.Image, ...]:
        return _five(inpt, self.size)


class TenCrop(Transform):
    """Crops the four corners and the centre of an image, and those of the mirrored image.

    Called directly, it returns a tuple of ten images in its place. A loader makes ten views of it, as of `FiveCrop`.

    Args:
        size: (height, width) of a crop in pixels, or one number for both.
        vertical_flip: whether top and bottom are mirrored, instead of left and right.

    Raises:
        ValueError: `size` has another length. When called: the image is smaller than a crop.
    """

    _takes = PIL_ALONE

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = pair(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> tuple[Image.Image, ...]:
        mirrored = pillow_ops.flip_vertical(inpt) if self.vertical_flip else pillow_ops.flip_horizontal(inpt)
        return (*_five(inpt, self.size), *_five(mirrored, self.size))

"""The steps of a recipe: plain records of what is done to an 8-bit image, one kind a class.

Where a step is random, it names the columns of a sample's draws that decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.recipe.calls import CallFunction

#: torch's antialiased resizes of byte tensors: the mode of ``torch.nn.functional.interpolate``.
TENSOR_FILTERS = {"tensor_bilinear": "bilinear", "tensor_bicubic": "bicubic"}

#: Pillow's numbers of its six filters.
FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


@dataclass(frozen=True)
class RandomResizedCrop:
    """Ten tries of an area and an aspect ratio, else the fall-back; then a resize to (height, width).

    Draw columns: for each of the ten tries t, column ``draw + 2 t`` is the fraction of the area, uniform in `scale`,
    and ``draw + 2 t + 1`` the aspect ratio, log-uniform in `ratio`; columns ``draw + 20`` and ``draw + 21`` are
    uniform in [0, 1) and place the box (top, left).
    """

    height: int
    width: int
    scale: tuple[float, float]
    ratio: tuple[float, float]
    filter: str
    draw: int


@dataclass(frozen=True)
class Resize:
    """Resize to exactly (height, width)."""

    height: int
    width: int
    filter: str


@dataclass(frozen=True)
class ResizeShorter:
    """Resize so that the shorter edge is `size`, the longer at most `max_size` (None: no limit), keeping the ratio.

    `size` 0 stands for torchvision v2's ``Resize(None, max_size=n)``: the longer edge becomes `max_size`.
    """

    size: int
    max_size: int | None
    filter: str


@dataclass(frozen=True)
class CenterCrop:
    """Crop (height, width) at the centre, padding with black where the image is smaller."""

    height: int
    width: int


@dataclass(frozen=True)
class RandomCrop:
    """Pad, then crop (height, width) at a random place.

    Draw columns: `draw` (top) and `draw + 1` (left), uniform in [0, 1).
    """

    height: int
    width: int
    padding: tuple[int, int, int, int]  # left, top, right, bottom
    pad_if_needed: bool
    fill: tuple[int, int, int]
    padding_mode: str  # constant, edge, reflect, symmetric
    draw: int


@dataclass(frozen=True)
class HorizontalFlip:
    """Mirror left and right where column `draw`, uniform in [0, 1), is below `p`."""

    p: float
    draw: int


@dataclass(frozen=True)
class VerticalFlip:
    """Mirror top and bottom where column `draw`, uniform in [0, 1), is below `p`."""

    p: float
    draw: int


@dataclass(frozen=True)
class Grayscale:
    """Pillow's L of each pixel, in `channels` (1 or 3) equal channels."""

    channels: int


@dataclass(frozen=True)
class Pad:
    """Add pixels at the borders."""

    padding: tuple[int, int, int, int]  # left, top, right, bottom
    fill: tuple[int, int, int]
    padding_mode: str  # constant, edge, reflect, symmetric


@dataclass(frozen=True)
class Brightness:
    """``PIL.ImageEnhance.Brightness`` by the factor in column `draw`."""

    draw: int


@dataclass(frozen=True)
class Contrast:
    """``PIL.ImageEnhance.Contrast`` by the factor in column `draw`; looks at the mean of the whole image."""

    draw: int


@dataclass(frozen=True)
class Saturation:
    """``PIL.ImageEnhance.Color`` by the factor in column `draw`."""

    draw: int


@dataclass(frozen=True)
class Hue:
    """The H of Pillow's HSV turned by ``int(255 x)`` modulo 256, x in column `draw`."""

    draw: int


@dataclass(frozen=True)
class Invert:
    """``PIL.ImageOps.invert``."""


@dataclass(frozen=True)
class Posterize:
    """``PIL.ImageOps.posterize``: keep the upper `bits`."""

    bits: int


@dataclass(frozen=True)
class Solarize:
    """``PIL.ImageOps.solarize``: invert the values from `threshold` on."""

    threshold: float


@dataclass(frozen=True)
class Autocontrast:
    """``PIL.ImageOps.autocontrast`` with its defaults, a channel at a time."""


@dataclass(frozen=True)
class Equalize:
    """``PIL.ImageOps.equalize``, a channel at a time."""


@dataclass(frozen=True)
class GaussianBlur:
    """torchvision's blur of a PIL image: a convolution in float32, its borders mirrored, rounded to bytes.

    Columns: `draw` is sigma; the `width` ones behind it are the weights of a row of the kernel, and the `height` ones
    behind these those of a column, as they follow from sigma (`recipe.GaussianWeight`). `softmax`: v2 makes them of
    other operations than v1.
    """

    width: int
    height: int
    softmax: bool
    draw: int


@dataclass(frozen=True)
class When:
    """Do `steps` where column `draw`, uniform in [0, 1), is below `p`."""

    p: float
    steps: tuple[Step, ...]
    draw: int


@dataclass(frozen=True)
class OneOf:
    """Do the first branch whose entry of `bounds` (ascending, the last one 1) is above column `draw`, in [0, 1)."""

    branches: tuple[tuple[Step, ...], ...]
    bounds: tuple[float, ...]
    draw: int


@dataclass(frozen=True)
class Shuffled:
    """Do all branches in a random order.

    Column `draw`, uniform u in [0, 1), names permutation ``floor(u n!)`` of n branches, in the order of
    ``itertools.permutations``.
    """

    branches: tuple[tuple[Step, ...], ...]
    draw: int


@dataclass(frozen=True)
class Erase:
    """RandomErasing of a tensor, where column `draw`, uniform in [0, 1), is below `p`.

    Ten tries as in RandomResizedCrop: columns ``draw + 1 + 2 t`` (fraction of the area) and ``draw + 2 + 2 t`` (height
    over width); columns ``draw + 21`` and ``draw + 22`` place the box (top, left). Nothing is done where no try fits.

    `after` is how many of the recipe's tensor steps come before it, `value` what is written, one number a channel, in
    the units of the tensor there.
    """

    p: float
    value: tuple[float, ...]
    after: int
    draw: int


@dataclass(frozen=True)
class Call:
    """Hand the image to Python: a transform that has no native twin, or all that is left.

    Column `draw`, uniform in [0, 1), seeds what it draws; `process_wide` tells that it draws from generators of the
    whole process. `metadata`: the image carries that of its file. Where `finishes`, it makes the finished tensor.
    `size`: (height, width) of the image that it makes; None: varies.
    """

    name: str
    draw: int
    process_wide: bool
    metadata: bool
    finishes: bool
    size: tuple[int, int] | None
    function: CallFunction = field(repr=False)


Step = (
    RandomResizedCrop
    | Resize
    | ResizeShorter
    | CenterCrop
    | RandomCrop
    | Pad
    | HorizontalFlip
    | VerticalFlip
    | Grayscale
    | Brightness
    | Contrast
    | Saturation
    | Hue
    | Invert
    | Posterize
    | Solarize
    | Autocontrast
    | Equalize
    | GaussianBlur
    | When
    | OneOf
    | Shuffled
    | Erase
    | Call
)

"""The steps of a recipe: plain records of operations on an 8-bit image, one class per kind of step.

A random step gives the columns of a sample's draws that it reads, usually by the number `draw` of the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._recipe.steps.byte_tensor_steps import *  # noqa: F403
from headrace._recipe.steps.byte_tensor_steps import TensorStep
from headrace._recipe.steps.drawn_size_steps import *  # noqa: F403
from headrace._recipe.steps.drawn_size_steps import SizeStep
from headrace._recipe.steps.effect_steps import *  # noqa: F403 - all steps have one home
from headrace._recipe.steps.effect_steps import Drawn, EffectStep
from headrace._recipe.steps.step_numbers import boxes_of
from headrace._recipe.steps.warp_steps import *  # noqa: F403
from headrace._recipe.steps.warp_steps import WarpStep

if TYPE_CHECKING:
    from headrace._recipe.steps.calls import CallFunction

#: torch's antialiased resizes of uint8 tensors: recipe's name -> mode of ``torch.nn.functional.interpolate``.
TENSOR_FILTERS = {"tensor_bilinear": "bilinear", "tensor_bicubic": "bicubic"}

#: The same in float32, rounded to bytes at the end; "fused": where torch fuses products with sums on this processor.
FLOAT_FILTERS = {f"{sums}_{mode}": mode for sums in ("float", "fused") for mode in TENSOR_FILTERS.values()}

#: ``cv2.resize`` of bytes with INTER_LINEAR.
OPENCV_FILTER = "opencv_bilinear"

#: Pillow's six filters: recipe's name -> Pillow's number.
FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


@dataclass(frozen=True)
class RandomResizedCrop:
    """Crop the box of the first of ten tries that fits, or else the fall-back; then resize to (height, width).

    Draw columns: for each of the ten tries t, column ``draw + 2 t`` is the fraction of the area, uniform in `scale`,
    and ``draw + 2 t + 1`` the aspect ratio, log-uniform in `ratio`; columns ``draw + 20`` and ``draw + 21`` are
    uniform in [0, 1) and give the box's position (top, left).
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
    """Resize so that the shorter edge is `size` and the longer at most `max_size` (None: no limit), keeping the ratio.

    `size` 0 means torchvision v2's ``Resize(None, max_size=n)``: the longer edge becomes `max_size`.
    """

    size: int
    max_size: int | None
    filter: str


@dataclass(frozen=True)
class ResizeKeepRatio:
    """Resize by one factor: divide both edges by ``r``, and round halves to the even number.

    ``r`` is between the larger and the smaller of the ratios (image's height / `height`) and (image's width /
    `width`): it is the larger one times `longest` plus the smaller one times ``1 - longest``.
    """

    height: int
    width: int
    longest: float
    filter: str


@dataclass(frozen=True, repr=False)
class CenterCrop:
    """Crop (height, width) at the centre; pad a smaller image first.

    `rounding` is the rule for half the difference between image and crop: "even" (torchvision's: to the even number,
    towards zero if the image is smaller), "towards_zero" or "down" (the odd pixel of the padding is left and above).
    """

    height: int
    width: int
    fill: tuple[int, int, int] = (0, 0, 0)
    rounding: str = "even"
    padding_mode: str = "constant"  # constant, edge, reflect, symmetric

    def __repr__(self) -> str:
        """Leaves the defaults out: fingerprints in saved states are made from it, and those of old versions hold."""
        more = "" if self.fill == (0, 0, 0) else f", fill={self.fill}"
        more += "" if self.rounding == "even" else f", rounding={self.rounding!r}"
        more += "" if self.padding_mode == "constant" else f", padding_mode={self.padding_mode!r}"
        return f"CenterCrop(height={self.height}, width={self.width}{more})"


@dataclass(frozen=True)
class RandomCrop:
    """Pad, then crop (height, width) at a random position.

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
    """Mirror left and right if column `draw`, uniform in [0, 1), is below `p`."""

    p: float
    draw: int


@dataclass(frozen=True)
class VerticalFlip:
    """Mirror top and bottom if column `draw`, uniform in [0, 1), is below `p`."""

    p: float
    draw: int


@dataclass(frozen=True)
class Grayscale:
    """Convert to gray (Pillow's mode L), in `channels` (1 or 3) equal channels."""

    channels: int


@dataclass(frozen=True)
class Pad:
    """Add pixels at the borders."""

    padding: tuple[int, int, int, int]  # left, top, right, bottom
    fill: tuple[int, int, int]
    padding_mode: str  # constant, edge, reflect, symmetric


@dataclass(frozen=True)
class GaussianBlur:
    """torchvision's blur of a PIL image: a convolution in float32 with mirrored borders, rounded to bytes.

    Draw columns: `draw` is sigma; the next `width` columns are the weights of a row of the kernel, and the `height`
    columns after them those of a column, all computed from sigma (`draw_columns.GaussianWeight`). `softmax`: whether
    the weights are computed by the operations of torchvision v2, otherwise by those of v1.
    """

    width: int
    height: int
    softmax: bool
    draw: int


@dataclass(frozen=True)
class PillowBlur:
    """``PIL.ImageFilter.GaussianBlur``.

    Attributes:
        radius: in pixels, 0 or more. After the column of a drawn one come the three numbers of rule ``"box"``
            (`draw_columns.WarpNumber`).
    """

    radius: float | Drawn

    @property
    def box(self) -> tuple[float, ...]:
        """The numbers of `boxes_of` for a constant radius."""
        assert not isinstance(self.radius, Drawn)
        return tuple(boxes_of([self.radius])[0].tolist())


@dataclass(frozen=True)
class When:
    """Do `steps` if column `draw`, uniform in [0, 1), is below `p`."""

    p: float
    steps: tuple[Step, ...]
    draw: int


@dataclass(frozen=True)
class OneOf:
    """Do one branch: the first whose entry of `bounds` (ascending, the last one 1) exceeds column `draw`, in [0, 1)."""

    branches: tuple[tuple[Step, ...], ...]
    bounds: tuple[float, ...]
    draw: int


@dataclass(frozen=True)
class Shuffled:
    """Do all branches in a random order.

    Column `draw`, uniform u in [0, 1), selects permutation number ``floor(u n!)`` of the n branches, in the order of
    ``itertools.permutations``.
    """

    branches: tuple[tuple[Step, ...], ...]
    draw: int


@dataclass(frozen=True)
class MixChains:
    """timm's AugMix: do each of `chains` with a copy of the image, and mix the results with the image.

    Draw columns: from `draw` on one weight for each chain, then the factor of the blend (`draw_columns.ChainWeights`).

    Attributes:
        chains: steps that keep the size of the image.
        blended: False: sum up the chains by their weights in float32, drop fractions, and blend the image with the
            result by the factor. True: blend the image with one chain after the other by its weight.
        draw: the first column.
    """

    chains: tuple[tuple[Step, ...], ...]
    blended: bool
    draw: int


@dataclass(frozen=True)
class SumChains:
    """torchvision's AugMix: do each of `chains` with a copy of the image, and sum up the results and the image.

    Draw columns: from `draw` on one weight for each chain, then that of the image (`draw_columns.SumWeights`). Products
    and sums are rounded to float32 one by one, beginning with the image; the result drops fractions.

    Attributes:
        chains: steps that keep the size of the image.
        draw: the first column.
    """

    chains: tuple[tuple[Step, ...], ...]
    draw: int


@dataclass(frozen=True)
class Erase:
    """RandomErasing of a tensor, if column `draw`, uniform in [0, 1), is below `p`.

    Draw columns: for each of the ten tries t, ``draw + 1 + 2 t`` (fraction of the area) and ``draw + 2 + 2 t`` (height
    over width); ``draw + 21`` and ``draw + 22`` give the box's position (top, left). If no try fits, nothing is erased.

    `value` is what to write, one number per channel, in the units of the tensor at this point. `after` is the number of
    the recipe's tensor steps before this step.
    """

    p: float
    value: tuple[float, ...]
    after: int
    draw: int


@dataclass(frozen=True)
class EraseBoxes:
    """RandomErasing of a tensor in several boxes or with drawn values, if column `draw`, in [0, 1), is below `p`.

    Draw columns: ``draw + 1`` gives the number of boxes, from `fewest` to `most`. The columns of each of the `most`
    boxes follow: ten tries and the position, as those of an `Erase`; the tries' areas are shared among the boxes. Then
    one for each channel if `noise` is "channel", or one if it is "element": uniform in [0, 1), they give the values
    (`step_numbers.LEVELS`).

    Attributes:
        drawn: number of columns of each box that give its values.
        value: what to write where `noise` is "", one number per channel; otherwise empty.
        after: as in `Erase`.
    """

    p: float
    fewest: int
    most: int
    noise: str
    drawn: int
    value: tuple[float, ...]
    after: int
    draw: int


@dataclass(frozen=True)
class Texture:
    """The last step: 13 channels, float32, of the image's bytes, as `headrace.transforms.TextureChannels` defines them.

    Attributes:
        layout: ``"CHW"`` or ``"HWC"``, the order of a sample's axes.
        bands: two pairs (low, high) of frequencies in cycles per pixel.
        tables: the numbers that both implementations use, as
            `headrace._recipe.arithmetic.textures.tables_for_native` makes them.
    """

    layout: str
    bands: tuple[tuple[float, float], tuple[float, float]]
    tables: tuple[npt.NDArray[np.float64], ...] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Call:
    """Call a Python function on the image: a transform without a native twin, or all remaining transforms.

    Attributes:
        name: name of the function, the same in every process.
        draw: column, uniform in [0, 1), that seeds the function's random numbers.
        process_wide: whether the function draws from random generators of the whole process.
        metadata: whether the image has the metadata of its file.
        finishes: whether the function returns the finished tensor instead of an image.
        size: (height, width) of the image that it returns; None if it varies.
        function: the function.
    """

    name: str
    draw: int
    process_wide: bool
    metadata: bool
    finishes: bool
    size: tuple[int, int] | None
    function: CallFunction = field(repr=False)


#: The steps of a tensor, after which only flips follow.
EraseStep = Erase | EraseBoxes

Step = (
    RandomResizedCrop
    | Resize
    | ResizeShorter
    | ResizeKeepRatio
    | CenterCrop
    | RandomCrop
    | Pad
    | HorizontalFlip
    | VerticalFlip
    | Grayscale
    | EffectStep
    | GaussianBlur
    | PillowBlur
    | WarpStep
    | SizeStep
    | When
    | OneOf
    | Shuffled
    | MixChains
    | SumChains
    | TensorStep
    | EraseStep
    | Texture
    | Call
)

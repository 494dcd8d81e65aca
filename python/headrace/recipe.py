"""The recipe: a dataset's transforms, lowered once to a fixed list of native steps.

It is the contract between three readers: `lowering` writes it, the C++ core runs it, and `reference` (the oracle) runs
it again through Pillow and torch, independently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

#: dtypes that an output may have.
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.uint8)

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


Step = RandomResizedCrop | Resize | ResizeShorter | CenterCrop | RandomCrop | HorizontalFlip | VerticalFlip | Grayscale


@dataclass(frozen=True)
class Column:
    """How one draw is made from a uniform u in [0, 1): ``low + u (high - low)``, then `exp` if asked."""

    low: float = 0.0
    high: float = 1.0
    exp: bool = False


@dataclass(frozen=True)
class Recipe:
    """What is done to every sample of a dataset.

    Attributes:
        steps: geometry, in order, on 8-bit RGB.
        columns: how each draw of a sample is made; its length is k of the draws array (n, k).
        height, width, channels: of every output.
        pointwise: the tensor steps after the geometry. Called with a uint8 tensor (channels, H, W) it returns the
            finished tensor (channels, H, W) in the final dtype, each element a function of its byte and channel alone.
        lut: ``pointwise`` of the 256 bytes: (channels, 256), in the final dtype.
        names: a line for `explain()` a user's transform: (its repr, what it was lowered to).
    """

    steps: tuple[Step, ...]
    columns: tuple[Column, ...]
    height: int
    width: int
    channels: int
    pointwise: Callable[[torch.Tensor], torch.Tensor] = field(compare=False)
    lut: torch.Tensor = field(compare=False)
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def dtype(self) -> torch.dtype:
        return self.lut.dtype

    def fingerprint(self) -> str:
        """A hash of everything that decides a batch's pixels, for `state_dict()`: hex digits of SHA-256, first 16."""
        import hashlib

        parts: list[Any] = [self.steps, self.columns, self.height, self.width, self.channels, str(self.dtype)]
        digest = hashlib.sha256(repr(parts).encode())
        digest.update(self.lut.contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()[:16]

"""What is done to the boxes of a sample beside following their image: formats, clamping, removal of boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

#: Formats as torchvision names them: corners; corner and size; centre and size.
FORMATS = ("XYXY", "XYWH", "CXCYWH")
#: The dtypes whose arithmetic is torchvision's for boxes of many samples at once.
DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64)
_CLAMPING_MODES = ("soft", "hard", None)


@dataclass(frozen=True)
class BoxRule:
    """How boxes are moved, and what follows.

    Attributes:
        format: of the given boxes.
        out_format: to which they are converted at the end.
        clamping_mode: None: no step cuts boxes at the image's border. "soft" and "hard" do the same to boxes that are
            not rotated.
        clamp: whether they are cut at the border of the finished image.
        sanitize: whether those are removed that are smaller than `min_size` or `min_area`, or reach beyond the border.
        min_size, min_area: in pixels.

    Raises:
        ValueError: an attribute is none of these values.
    """

    format: str
    out_format: str
    clamping_mode: str | None = "soft"
    clamp: bool = False
    sanitize: bool = False
    min_size: float = 1.0
    min_area: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("format", self.format), ("out_format", self.out_format)):
            if value not in FORMATS:
                raise ValueError(f"{name} must be one of {', '.join(FORMATS)}, not {value!r}")
        if self.clamping_mode not in _CLAMPING_MODES:
            raise ValueError(f"clamping_mode must be 'soft', 'hard' or None, not {self.clamping_mode!r}")
        for name, number in (("min_size", self.min_size), ("min_area", self.min_area)):
            if not 1 <= number < math.inf:
                raise ValueError(f"{name} must be >= 1, got {number}")
            if number != 1 and not self.sanitize:
                raise ValueError(f"{name} says which boxes sanitize=True removes; give that, too")

    def __str__(self) -> str:
        said = [self.format]
        said += ["no clamping"] if self.clamping_mode is None else []
        said += ["clamped"] if self.clamp else []
        said += [f"sanitized (min_size={self.min_size:g}, min_area={self.min_area:g})"] if self.sanitize else []
        said += [f"converted to {self.out_format}"] if self.out_format != self.format else []
        return ", ".join(said)

"""RandomErasing of tensors."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from headrace import boxes
from headrace.transforms._base import RandomTransform, torch_place


class RandomErasing(RandomTransform):
    """Writes `value` into a random box of a tensor (..., C, H, W), with probability `p`.

    Args:
        scale: smallest and largest share of the area, in [0, 1].
        ratio: smallest and largest height / width of the box; log-uniform between them.
        value: a number, one a channel, or "random": a normally distributed number an element, which a
            `headrace.DataLoader` does not take.
        inplace: writes into the tensor itself.

    Raises:
        TypeError, ValueError: arguments that are none of these. Where it is called: TypeError for what is no tensor,
            ValueError for another number of values than 1 or channels.
    """

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
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        self.scale = scale
        self.ratio = ratio
        self.value: list[float] | None = None
        if not isinstance(value, str):
            self.value = [float(one) for one in (value if isinstance(value, Sequence) else [value])]
        self.inplace = inplace

    def _tries(self) -> Iterator[tuple[float, float]]:
        # In float32, as torchvision draws them, so that a seed gives torchvision's boxes.
        low, high = torch.log(torch.tensor(self.ratio)).tolist()
        for _ in range(10):
            share = torch.empty(1).uniform_(self.scale[0], self.scale[1]).item()
            yield share, torch.exp(torch.empty(1).uniform_(low, high)).item()

    def forward(self, image: Any) -> torch.Tensor:
        if not isinstance(image, torch.Tensor):
            raise TypeError(
                f"img should be Tensor Image. Got {type(image)}; put RandomErasing after ToTensor or ToImage"
            )
        if torch.rand(1) >= self.p:
            return image
        channels, height, width = image.shape[-3:]
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {channels} (number of inpt channels)"
            )
        # Placed by itself, since torchvision draws the values before it.
        box = boxes.random_erase(height, width, self._tries(), lambda n: 0, lambda n: 0)
        if box is None:
            return image
        if self.value is None:
            value = torch.empty([channels, box.height, box.width], dtype=torch.float32).normal_()
        else:
            value = torch.tensor(self.value)[:, None, None]
        top, left = torch_place(height - box.height + 1), torch_place(width - box.width + 1)
        erased: torch.Tensor = image if self.inplace else image.clone()
        erased[..., top : top + box.height, left : left + box.width] = value
        return erased

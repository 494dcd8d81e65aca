"""The oracle's tensor steps, with the erasing and flips between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

import headrace._recipe.steps.steps as S
from headrace._recipe.arithmetic import boxes
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.step_numbers import LEVELS, noise_quantiles


def finish_tensor(
    tensor: torch.Tensor, steps: Sequence[S.Step], pointwise: Pointwise, draws: Sequence[float]
) -> torch.Tensor:
    """Returns the finished tensor.

    Args:
        tensor: the image, uint8 (C, H, W); may be changed.
        steps: the recipe's steps from its first Erase on: Erase and flips.
        pointwise: the recipe's pointwise steps.
        draws: the sample's draws.
    """
    done = 0
    for step in steps:
        # Erase and flips work in place, so that a tv_tensor keeps its class, which later steps may depend on.
        if isinstance(step, S.EraseStep):
            for one in pointwise.steps[done : step.after]:
                tensor = one(tensor)
            done = step.after
            if draws[step.draw] >= step.p:
                continue
            if isinstance(step, S.EraseBoxes):
                _erase_boxes(tensor, step, draws)
            else:
                _erase_box(tensor, step, draws)
        elif isinstance(step, (S.HorizontalFlip, S.VerticalFlip)):
            if draws[step.draw] < step.p:
                tensor[...] = tensor.flip(-1 if isinstance(step, S.HorizontalFlip) else -2)
        else:
            raise TypeError(f"the oracle does not know the step {step} on a tensor")
    return Pointwise(pointwise.steps[done:], pointwise.dtype)(tensor)


def _erase_box(tensor: torch.Tensor, step: S.Erase, draws: Sequence[float]) -> None:
    box = _draw_erase_box(tensor, draws[step.draw + 1 : step.draw + 23], 1)
    if box is not None:
        _crop_to_box(tensor, box)[...] = torch.tensor(step.value, device=tensor.device)[:, None, None]


def _erase_boxes(tensor: torch.Tensor, step: S.EraseBoxes, draws: Sequence[float]) -> None:
    channels = tensor.shape[0]
    count = step.fewest + boxes.position_from(draws[step.draw + 1])(step.most - step.fewest + 1)
    each = 22 + {"": 0, "channel": channels, "element": 1}[step.noise]
    for number in range(count):
        first = step.draw + 2 + number * each
        box = _draw_erase_box(tensor, draws[first : first + 22], count)
        if box is None:
            continue
        if step.noise == "channel":
            levels = np.array([int(u * LEVELS) for u in draws[first + 22 : first + each]])[:, None, None]
            values = noise_quantiles()[levels]
        elif step.noise == "element":
            levels = noise_levels(int(draws[first + 22] * 2**53), channels * box.height * box.width)
            values = noise_quantiles()[levels].reshape(channels, box.height, box.width)
        else:
            values = torch.tensor(step.value)[:, None, None]
        _crop_to_box(tensor, box)[...] = values.to(tensor.device)


def noise_levels(seed: int, count: int) -> npt.NDArray[np.int64]:
    """Returns the numbers of the quantiles of `count` elements, int64 (count,); see `step_numbers.LEVELS`."""
    words = np.arange(1, (count + 3) // 4 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed << 11)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words.astype("<u8").view("<u2")[:count].astype(np.int64)  # from the lowest 16 bits up


def _draw_erase_box(tensor: torch.Tensor, draws: Sequence[float], count: int) -> boxes.Box | None:
    """Returns the box of ten tries and a position."""
    top, left = (boxes.position_from(u) for u in draws[20:22])
    tries = [(draws[i], draws[i + 1]) for i in range(0, 20, 2)]
    return boxes.random_erase(tensor.shape[-2], tensor.shape[-1], tries, top, left, count)


def _crop_to_box(tensor: torch.Tensor, box: boxes.Box) -> torch.Tensor:
    return tensor[:, box.top : box.top + box.height, box.left : box.left + box.width]

"""The oracle's tensor steps, with the erasing and flips between them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import headrace.recipe.steps as S
from headrace.pixels import boxes
from headrace.recipe.byte_table import Pointwise


def finish(tensor: torch.Tensor, steps: Sequence[S.Step], pointwise: Pointwise, draws: Sequence[float]) -> torch.Tensor:
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
        if isinstance(step, S.Erase):
            for one in pointwise.steps[done : step.after]:
                tensor = one(tensor)
            done = step.after
            _erase(tensor, step, draws)
        elif isinstance(step, (S.HorizontalFlip, S.VerticalFlip)):
            if draws[step.draw] < step.p:
                tensor[...] = tensor.flip(-1 if isinstance(step, S.HorizontalFlip) else -2)
        else:
            raise TypeError(f"the oracle does not know the step {step} on a tensor")
    return Pointwise(pointwise.steps[done:], pointwise.dtype)(tensor)


def _erase(tensor: torch.Tensor, step: S.Erase, draws: Sequence[float]) -> None:
    if draws[step.draw] >= step.p:
        return
    tries = [(draws[i], draws[i + 1]) for i in range(step.draw + 1, step.draw + 21, 2)]
    top, left = (boxes.place_at(u) for u in draws[step.draw + 21 : step.draw + 23])
    box = boxes.random_erase(tensor.shape[-2], tensor.shape[-1], tries, top, left)
    if box is not None:
        tensor[:, box.top : box.top + box.height, box.left : box.left + box.width] = torch.tensor(
            step.value, device=tensor.device
        )[:, None, None]

"""Versions of torchvision's MixUp and CutMix whose only new batch is their result.

torchvision's make three batches. Ours make the same values of a dense batch of floats, which stays as it is; everything
else is left to torchvision's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from headrace._base.types import Function
from headrace._loading.mixup import in_place_mixes
from headrace._loading.mixup.in_place_mixes import Params
from headrace.pillow.recording.patches import Place, Replacements, method

_MODULE = "torchvision.transforms.v2._augment"

Empty = Callable[[torch.Tensor], torch.Tensor | None]  # makes an uninitialised contiguous batch like another one


def make_replacements(empty: Empty) -> Replacements:
    """Returns our versions, to be put in the places of torchvision's.

    Args:
        empty: makes the memory of a result. Where it returns None, torchvision's code runs.
    """

    def make_place(of: str, mixed: Callable[[torch.Tensor, torch.Tensor, Params], None]) -> Place:
        def version(plain: Function) -> Function:
            @functools.wraps(plain)
            def transform(self: Any, inpt: object, params: Params) -> object:
                if inpt is params["labels"] or not in_place_mixes.is_mixable(inpt) or not inpt.is_contiguous():
                    return plain(self, inpt, params)
                self._check_image_or_video(inpt, batch_size=params["batch_size"])
                made = empty(inpt)
                if made is None:
                    return plain(self, inpt, params)
                mixed(inpt, made, params)
                return made

            return transform

        return method(_MODULE, of, "transform", version)

    return Replacements([make_place("MixUp", _mix_up_into), make_place("CutMix", _cut_mix_into)])


def _mix_up_into(batch: torch.Tensor, made: torch.Tensor, params: Params) -> None:
    made.copy_(batch)
    in_place_mixes.mix_batch_in_place(made, params["lam"])


def _cut_mix_into(batch: torch.Tensor, made: torch.Tensor, params: Params) -> None:
    left, top, right, bottom = params["box"]
    made.copy_(batch)
    made[1:, :, top:bottom, left:right] = batch[:-1, :, top:bottom, left:right]
    made[0, :, top:bottom, left:right] = batch[-1, :, top:bottom, left:right]

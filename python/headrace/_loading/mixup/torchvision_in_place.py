"""torchvision's MixUp, CutMix and RandomChoice of these, with results that overwrite their inputs."""

from __future__ import annotations

import copy
import functools
import sys
from typing import Any

import torch

from headrace._base.originals.relied_functions import are_functions_original
from headrace._base.types import Function
from headrace._loading.mixup import in_place_mixes
from headrace._loading.mixup.in_place_mixes import Params
from headrace._lowering.transform_library import has_hooks

_TRANSFORMS = "torchvision.transforms.v2"


def random_choices_of(mix: object) -> list[Any]:
    """Returns every MixUp and CutMix that `mix` may choose; [] if it is neither of these nor a RandomChoice of them, or
    if a function of torchvision that it calls was replaced."""
    v2 = sys.modules.get(_TRANSFORMS)
    if v2 is None or has_hooks(mix):
        return []
    if type(mix) in (v2.MixUp, v2.CutMix):
        return [mix] if are_functions_original(type(mix)) else []
    if type(mix) is not v2.RandomChoice or not are_functions_original(type(mix)):
        return []
    each = [random_choices_of(one) for one in mix.transforms]
    return [found for one in each for found in one] if all(each) else []


def make_torchvision_twin(mix: object) -> Function | None:
    """Returns a copy of a transform that mixes in place; None if it is not one of torchvision's."""
    return _copy_mix_in_place(mix) if random_choices_of(mix) else None


def _copy_mix_in_place(mix: Any) -> Any:
    made = copy.copy(mix)
    kind: Any = type(mix)
    if hasattr(mix, "transforms"):
        made.transforms = [_copy_mix_in_place(one) for one in mix.transforms]
    else:
        made.__class__ = _make_class(kind)
    return made


@functools.cache
def _make_class(kind: Any) -> Any:
    """Returns a subclass of MixUp or CutMix that overwrites mixable batches."""

    def transform(self: Any, inpt: object, params: Params) -> object:
        if inpt is params["labels"] and type(inpt) is torch.Tensor:
            with torch._C.DisableTorchFunction():  # modes of the calling thread cost more than the labels' arithmetic
                return kind.transform(self, inpt, params)
        if inpt is params["labels"] or not in_place_mixes.is_mixable(inpt):
            return kind.transform(self, inpt, params)
        self._check_image_or_video(inpt, batch_size=params["batch_size"])
        if kind.__name__ == "MixUp":
            in_place_mixes.mix_batch_in_place(inpt, params["lam"])
        else:
            in_place_mixes.move_boxes(inpt, params["box"])
        return inpt

    return type(kind.__name__, (kind,), {"transform": transform})

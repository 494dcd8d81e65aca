"""Recognises a collate_fn that only mixes the batch by torchvision's MixUp or CutMix, and mixes it in place."""

from __future__ import annotations

import copy
import dis
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate

from headrace.lowering.origins import has_hooks

_PASSED_OVER = frozenset(("RESUME", "PUSH_NULL", "PRECALL", "CACHE", "COPY_FREE_VARS", "NOP", "MAKE_CELL"))
_NAMED = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")
_TRANSFORMS = "torchvision.transforms.v2"


def in_place(function: Callable[[Any], Any]) -> Callable[[Any], Any] | None:
    """Returns a function with the results of a collate_fn that mixes the finished batch in place; None for others.

    The collate_fn must be ``return mix(*default_collate(samples))`` with torchvision's `MixUp`, `CutMix` or a
    `RandomChoice` of these: then nothing else refers to the batch, and overwriting it cannot be noticed.
    """
    mix = _mixed_by(function)
    mixing = None if mix is None else _twin(mix)
    return None if mixing is None else lambda samples: mixing(*default_collate(samples))


def _mixed_by(function: Callable[[Any], Any]) -> Any:
    """Returns the object called in ``return mix(*default_collate(samples))``; None for any other function."""
    if type(function) is not types.FunctionType or function.__defaults__ or function.__kwdefaults__:
        return None
    code = function.__code__
    if code.co_argcount != 1 or code.co_nlocals != 1 or code.co_kwonlyargcount or code.co_flags & 0x0C:
        return None
    steps = [one for one in dis.get_instructions(code) if one.opname not in _PASSED_OVER]
    kinds = [one.opname for one in steps]
    if len(steps) != 6 or kinds[0] not in _NAMED or kinds[1] not in _NAMED:
        return None
    if not kinds[2].startswith("LOAD_FAST") or kinds[3] not in ("CALL", "CALL_FUNCTION"):
        return None
    if kinds[4:] != ["CALL_FUNCTION_EX", "RETURN_VALUE"] or steps[3].arg != 1 or steps[4].arg:
        return None
    mix, collate = (_value(function, one.argval) for one in steps[:2])
    return mix if collate is default_collate else None


def _value(function: types.FunctionType, name: str) -> Any:
    """Returns the value of a free or global name of a function; None without one."""
    free = function.__code__.co_freevars
    if name in free:
        try:
            return (function.__closure__ or ())[free.index(name)].cell_contents
        except ValueError:  # not filled yet
            return None
    return function.__globals__.get(name)


def _twin(mix: Any) -> Any:
    """Returns a copy of a transform that mixes in place; None if it is not one of torchvision's."""
    v2 = sys.modules.get(_TRANSFORMS)
    if v2 is None or has_hooks(mix):
        return None
    made: Any = copy.copy(mix)
    if type(mix) is v2.RandomChoice:
        made.transforms = [_twin(one) for one in mix.transforms]
        return None if any(one is None for one in made.transforms) else made
    if type(mix) not in (v2.MixUp, v2.CutMix):
        return None
    kind: Any = type(mix)
    made.__class__ = _in_place_class(kind)
    return made


@functools.cache
def _in_place_class(kind: Any) -> Any:
    """Returns a subclass of MixUp or CutMix that overwrites plain CPU batches of floats."""
    overwrite = _mix_up if kind.__name__ == "MixUp" else _cut_mix

    def transform(self: Any, inpt: Any, params: dict[str, Any]) -> Any:
        plain = type(inpt) is torch.Tensor and inpt.device.type == "cpu" and inpt.is_floating_point()
        if inpt is params["labels"] or not plain:
            return kind.transform(self, inpt, params)
        self._check_image_or_video(inpt, batch_size=params["batch_size"])
        with torch._C.DisableTorchFunction():  # StackedViews would copy the batch before it is written to
            overwrite(inpt, params)
        return inpt

    return type(kind.__name__, (kind,), {"transform": transform})


def _mix_up(batch: torch.Tensor, params: dict[str, Any]) -> None:
    """Sets each sample to its share of itself plus the rest of the sample before it."""
    share = params["lam"]
    last, before = batch[-1].clone(), torch.empty_like(batch[-1])
    for place in reversed(range(len(batch))):
        torch.mul(batch[place - 1] if place else last, 1.0 - share, out=before)
        batch[place].mul_(share).add_(before)


def _cut_mix(batch: torch.Tensor, params: dict[str, Any]) -> None:
    """Sets a box of each sample to that of the sample before it."""
    left, top, right, bottom = params["box"]
    boxes = batch[..., top:bottom, left:right]
    last = boxes[-1].clone()
    for place in reversed(range(1, len(batch))):
        boxes[place].copy_(boxes[place - 1])
    boxes[0].copy_(last)

"""Recognises programs that only mix a batch: torchvision's MixUp and CutMix, timm's Mixup and FastCollateMixup."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable

from torch.utils.data import default_collate

from headrace._base.types import Function
from headrace._loading.mixup import timm_twins, torchvision_in_place
from headrace._lowering.function_idioms import NAMED, PASSED_OVER, is_without_defaults, takes_arguments, value_of_name


def mixing_of_samples(function: Function) -> Function | None:
    """Returns a function with the results of a collate_fn that mixes the finished batch; None for others.

    The collate_fn must be timm's `FastCollateMixup`, which makes a batch of its own. Or it must be
    ``return mix(*default_collate(samples))`` with torchvision's `MixUp`, `CutMix` or a `RandomChoice` of these, or with
    timm's `Mixup`: then nothing else refers to the batch, and overwriting it in place cannot be noticed.

    Returns:
        A function of the samples, a seed, that of numpy's random numbers, and maybe a function that is called when the
        samples have been collated and are not used any more.
    """
    collating = timm_twins.collating_twin(function)
    if collating is not None:
        return lambda samples, seed, collated=_return_none: _numpy_drawn(collating, seed, samples)
    mixing = mixing_of_stacked(function)
    if mixing is None:
        return None

    def collate_and_mix(samples: list[object], seed: int, collated: Callable[[], None] = _return_none) -> object:
        batch = default_collate(samples)
        collated()
        return mixing(batch, seed)

    return collate_and_mix


def mixing_of_stacked(function: Function) -> Function | None:
    """Returns a function of what `default_collate` makes, and of a seed, with the results of a collate_fn that is
    ``return mix(*default_collate(samples))``, as in `mixing_of_samples`; None for others."""
    mix = find_mix_in_collate(function)
    torchs = torchvision_in_place.make_torchvision_twin(mix)
    made = timm_twins.make_timm_twin(mix) if torchs is None else torchs
    if made is None:
        return None
    return lambda batch, seed: _numpy_drawn(made, seed, *batch) if torchs is None else made(*batch)


def find_mix_in_collate(function: Function) -> object:
    """Returns the object `mix` of a function that is ``return mix(*default_collate(samples))``; None for others."""
    names = _names_in(function)
    if names is None or len(names) != 2:
        return None
    mix, collate = (value_of_name(function, one) for one in names)
    return mix if collate is default_collate else None


def _return_none() -> None:
    pass


def _numpy_drawn(function: Function, seed: int, *arguments: object) -> object:
    with timm_twins.twins_seeded(seed):
        return function(*arguments)


def mixing_of_batch(function: Function) -> Function | None:
    """Returns a function with the results of one that mixes a batch, to which nothing else refers; None for others.

    It must be torchvision's `MixUp`, `CutMix` or a `RandomChoice` of these, or ``return mix(*batch)`` with one of these
    or with timm's `Mixup`.
    """
    made = torchvision_in_place.make_torchvision_twin(function)
    if made is not None:
        return made
    names = _names_in(function)
    if names is None or len(names) != 1:
        return None
    mixing = _find_in_place_twin(value_of_name(function, names[0]))
    return None if mixing is None else lambda batch: mixing(*batch)


def draws_from_numpy(function: Function) -> bool:
    """Whether a collate_fn mixes by timm's code, which draws from numpy.random."""
    if timm_twins.collating_twin(function) is not None:
        return True
    names = _names_in(function)
    found = names is not None and len(names) == 2 and mixing_of_samples(function) is not None
    return found and names is not None and timm_twins.make_timm_twin(value_of_name(function, names[0])) is not None


def _find_in_place_twin(mix: object) -> Function | None:
    made = torchvision_in_place.make_torchvision_twin(mix)
    return timm_twins.make_timm_twin(mix) if made is None else made


def _names_in(function: object) -> tuple[str, ...] | None:
    """Returns ("mix", "collate") of ``return mix(*collate(argument))``, ("mix",) of ``return mix(*argument)``, and None
    for any other function."""
    return _names_called_in(function.__code__) if is_without_defaults(function) else None


@functools.lru_cache(maxsize=64)
def _names_called_in(code: types.CodeType) -> tuple[str, ...] | None:
    if not takes_arguments(code, 1) or code.co_nlocals != 1:
        return None
    steps = [one for one in dis.get_instructions(code) if one.opname not in PASSED_OVER]
    kinds = [one.opname for one in steps]
    if kinds[-2:] != ["CALL_FUNCTION_EX", "RETURN_VALUE"] or steps[-2].arg:
        return None
    if len(steps) == 4 and kinds[0] in NAMED and kinds[1].startswith("LOAD_FAST"):
        return (steps[0].argval,)
    if len(steps) != 6 or kinds[0] not in NAMED or kinds[1] not in NAMED or not kinds[2].startswith("LOAD_FAST"):
        return None
    if kinds[3] not in ("CALL", "CALL_FUNCTION") or steps[3].arg != 1:
        return None
    return steps[0].argval, steps[1].argval

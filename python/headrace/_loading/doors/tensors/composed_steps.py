"""Consecutive transforms of v2's `Compose` of one deferred tensor, recorded together.

Each transform is a module, which calls a kernel, which records what it would do: for a crop, a flip and two maps of
values this takes longer than decoding half a small image. Here the transforms' own draws are followed by one record.
What stands between, of the known versions of torchvision, is looked at before: a transform, a kernel or a hook of the
program's is called as torch calls it.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.nn.modules import module as nn_module

from headrace._loading.doors.tensors.deferred_tensor import class_of, defer, is_deferring_possible, recording_of
from headrace._loading.doors.tensors.image_functions import (
    NORMALIZE,
    TO_DTYPE,
    crop_and_resize,
    kernel_below,
    wrap_result,
)
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recorded_functions import change_values, flip
from headrace._loading.doors.tensors.recording import Recording, Replay, ValueStep
from headrace._loading.doors.tensors.single_inputs import FORWARD, RANDOMLY, names_in
from headrace.pillow.recording.patches import Untouched, function_below_patch

_MOST_TAILS = 256
_V2 = "torchvision.transforms.v2."
_GLOBAL_HOOKS = ("backward_hooks", "backward_pre_hooks", "forward_hooks", "forward_pre_hooks")
#: Of a transform, and what a program may set of an instance.
_METHODS = (
    *("forward", "transform", "make_params", "check_inputs", "_call_kernel"),
    *("_needs_transform_list", "_transformed_types"),
)
_OF_MODULES = "__call__", "_wrapped_call_impl", "_call_impl", "_slow_forward"
#: What a transform makes of a recording, or its values; None: nothing was drawn, and the transform is called.
Change: TypeAlias = "Callable[[Any, Recording, Callable[[], torch.Tensor]], Recording | torch.Tensor | None]"


@dataclass(frozen=True)
class _Known:
    """A transform whose work is known.

    Attributes:
        functional: of v2, that its `transform` calls.
        names: those that its `transform` refers to.
        forward: those that its `forward` refers to.
        change: gets the transform, what its input stands for, and a function that returns the input; None: it maps
            values, and `key` says how.
        key: gets the transform; returns what the map depends on, None where it may be another one.
    """

    functional: str
    names: frozenset[str]
    forward: set[str]
    change: Change | None = None
    key: Callable[[Any], Hashable] | None = None


class _Tail(NamedTuple):
    """What consecutive maps of values make of a tensor."""

    length: int
    layout: Layout
    dtype: torch.dtype
    steps: tuple[ValueStep, ...]
    table: Any
    replay: Replay


_tails: dict[Hashable, _Tail | None] = {}


def record_steps(image: object, steps: Sequence[Any], first: int) -> tuple[torch.Tensor, int] | None:
    """Calls some transforms from `first` on with a deferred tensor, or with a deferred image or video of torchvision's.

    Returns:
        The result, and the number of the transforms; None if the first one is not known.
    """
    recording = recording_of(image)
    if recording is None or not is_deferring_possible() or any(map(_hooks_of, _GLOBAL_HOOKS)):
        return None
    kinds = tuple(itertools.takewhile(_has_known_name, map(type, itertools.islice(steps, first, None))))
    if not kinds:
        return None
    known, untouched = _find_known(kinds)
    if not known or not untouched:
        return None
    kind, made, at = class_of(image), recording, 0

    def tensor() -> Any:
        return image if made is recording else _defer_as(made, kind)

    while at < len(known):
        step, rule = steps[first + at], known[at]
        if not _is_as_made(step) or kernel_below(rule.functional, kind) is None:
            break
        if rule.change is None:
            tail = _find_tail(made, steps[first + at :], known[at:], kind)
            if tail is None:
                break
            made, at = _apply_tail(made, tail), at + tail.length
            continue
        changed = rule.change(step, made, tensor)
        if isinstance(changed, torch.Tensor):
            return changed, at + 1
        if changed is None:
            break
        made, at = changed, at + 1
    return (tensor(), at) if at else None


def _hooks_of(name: str) -> Any:
    return getattr(nn_module, f"_global_{name}")


def _defer_as(recording: Recording, kind: type) -> torch.Tensor:
    if kind is not torch.Tensor:
        recording.is_shared = True  # with the tensor that torchvision makes an image of
    return defer(recording, kind)


def _is_as_made(step: Any) -> bool:
    """Whether a module has no hooks, and no functions in place of its class's."""
    held: dict[str, Any] = vars(step)
    hooks = held["_forward_hooks"] or held["_forward_pre_hooks"] or held["_backward_hooks"]
    if hooks or held["_backward_pre_hooks"] or held.get("_compiled_call_impl"):
        return False
    return not any(name in held for name in (*_METHODS, *_OF_MODULES))


def _has_known_name(kind: type) -> bool:
    return (kind.__module__, kind.__qualname__) in _KNOWN


@functools.lru_cache(maxsize=256)
def _find_known(kinds: tuple[type, ...]) -> tuple[list[_Known], Untouched]:
    """Returns what is known of the first of some classes of v2, and the functions that are not called."""
    base = sys.modules[_V2 + "_transform"]
    known = [one for one in itertools.takewhile(lambda one: one is not None, map(_known_of, kinds)) if one is not None]
    places: list[tuple[object, str]] = [(base, "_get_kernel"), (base, "check_type")]
    for kind, one in zip(kinds, known, strict=False):
        module = sys.modules[kind.__module__]
        places += [(kind, name) for name in (*_METHODS, *_OF_MODULES)]
        places += [(module, name) for name in ("F", "is_pure_tensor", "query_size") if hasattr(module, name)]
        places.append((sys.modules[_V2 + "functional"], one.functional))
    return known, Untouched(*dict.fromkeys(places))


def _known_of(kind: type) -> _Known | None:
    known = _KNOWN[kind.__module__, kind.__qualname__]
    is_known = names_in(_code(kind, "transform")) == known.names and names_in(_code(kind, "forward")) == known.forward
    return known if is_known else None


def _code(kind: Any, name: str) -> Any:
    return function_below_patch(getattr(kind, name)).__code__


def _crop_and_resize(step: Any, made: Recording, tensor: Callable[[], torch.Tensor]) -> Recording | torch.Tensor:
    whole = tensor()
    params = step.make_params([whole])
    box = params["top"], params["left"], params["height"], params["width"]
    changed = crop_and_resize(made, box, step.size, step.interpolation, step.antialias)
    if isinstance(changed, torch.Tensor):
        return changed if class_of(whole) is torch.Tensor else wrap_result(changed, whole)
    return step.transform(whole, params) if changed is None else changed


def _flip_along(axis: int) -> Change:
    def change(step: Any, made: Recording, tensor: Callable[[], torch.Tensor]) -> Recording | torch.Tensor:
        if torch.rand(1) >= step.p:
            return made
        flipped = flip(made, axis)
        return step.transform(tensor(), step.make_params([tensor()])) if flipped is None else flipped

    return change


def _key_of_dtype(step: Any) -> Hashable:
    return (step.dtype, step.scale) if isinstance(step.dtype, torch.dtype) and type(step.scale) is bool else None


def _key_of_normalize(step: Any) -> Hashable:
    mean, std = step.mean, step.std
    if step.inplace is not False or type(mean) is not list or type(std) is not list:
        return None
    return repr((mean, std)) if {float, int}.issuperset(map(type, mean + std)) else None  # 0.0 is not -0.0


def _find_tail(made: Recording, steps: Sequence[Any], known: Sequence[_Known], kind: type) -> _Tail | None:
    """Returns what as many of the first transforms do together as map values; None if the first one does not."""
    keys = []
    for step, one in zip(steps, known, strict=False):
        key = None if one.key is None or not _is_as_made(step) else one.key(step)
        if key is None or kernel_below(one.functional, kind) is None:
            break
        keys.append((one.functional, kernel_below(one.functional), key))
    if not keys or made.state.finish is not None or not made.state.is_of_default():
        return None
    state = made.state
    before = tuple(step.key for step in state.steps)
    of_input = torch.get_default_dtype(), state.layout, state.channels, state.dtype, made.cut, made.lead
    key = of_input, before, tuple(keys)
    tail = _tails.get(key)
    if tail is None:
        tail = _make_tail(made, steps[: len(keys)], known)
        if len(_tails) >= _MOST_TAILS:
            _tails.clear()
        _tails[key] = tail
    return tail


def _make_tail(made: Recording, steps: Sequence[Any], known: Sequence[_Known]) -> _Tail | None:
    last, added = made, list[ValueStep]()
    for step, one in zip(steps, known, strict=False):
        plain: Any = kernel_below(one.functional)
        if one.functional == "to_dtype":
            found = TO_DTYPE.step_of(plain, last, step.dtype, step.scale)
        else:
            found = NORMALIZE.step_of(plain, last, list(step.mean), list(step.std), step.inplace)
        changed = change_values(last, found) if isinstance(found, ValueStep) else None
        if changed is None:
            break
        last, added = changed, [*added, found]
    if not added:
        return None
    calls = tuple(step.call for step in added)

    def replay(values: torch.Tensor) -> torch.Tensor:
        for call in calls:
            values = call(values)
        return values

    return _Tail(len(added), last.state.layout, last.state.dtype, last.state.steps, last.state.table, replay)


def _apply_tail(made: Recording, tail: _Tail) -> Recording:
    after = made.state._replace(layout=tail.layout, dtype=tail.dtype, steps=tail.steps, table=tail.table)
    return Recording(made.origin, after, made, tail.replay)


def _calling(functional: str, *names: str) -> tuple[str, frozenset[str]]:
    return functional, frozenset({"_call_kernel", "F", functional, *names})


_CROP_NAMES = "size", "interpolation", "antialias"
_DTYPE_NAMES = [
    "isinstance",
    "dtype",
    "torch",
    "is_pure_tensor",
    "tv_tensors",
    "Image",
    "Video",
    "type",
    "ValueError",
    "scale",
    "warnings",
    "warn",
]
_KNOWN = {
    (_V2 + "_geometry", "RandomResizedCrop"): _Known(
        *_calling("resized_crop", *_CROP_NAMES), FORWARD, _crop_and_resize
    ),
    (_V2 + "_geometry", "RandomHorizontalFlip"): _Known(*_calling("horizontal_flip"), RANDOMLY, _flip_along(-1)),
    (_V2 + "_geometry", "RandomVerticalFlip"): _Known(*_calling("vertical_flip"), RANDOMLY, _flip_along(-2)),
    (_V2 + "_misc", "ToDtype"): _Known(*_calling("to_dtype", *_DTYPE_NAMES), FORWARD, key=_key_of_dtype),
    (_V2 + "_misc", "Normalize"): _Known(
        *_calling("normalize", "mean", "std", "inplace"), FORWARD, key=_key_of_normalize
    ),
}

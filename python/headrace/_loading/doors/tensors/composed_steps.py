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

from headrace._base.lifetimes.bounded_table import BoundedTable
from headrace._loading.doors.tensors.deferred_tensor import class_of, defer, is_deferring_possible, recording_of
from headrace._loading.doors.tensors.image_functions import (
    NORMALIZE,
    TO_DTYPE,
    ValueFunction,
    crop_and_resize,
    kernel_below,
    wrap_result,
)
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recorded_functions import change_values, flip
from headrace._loading.doors.tensors.recording import Recording, Replay, ValueStep
from headrace._loading.doors.tensors.single_inputs import FORWARD, RANDOMLY, names_in
from headrace.pillow.composed_images import OF_DRAWS, are_ranges, draw_box
from headrace.pillow.recording.patches import Untouched, code_below_patch
from headrace.pillow.value_tables import are_modules_watched, is_as_made

_V2 = "torchvision.transforms.v2."
#: Of a transform that is called.
_METHODS = (
    *("forward", "transform", "make_params", "check_inputs", "_call_kernel", "_needs_transform_list"),
    *("_transformed_types", "__call__", "_wrapped_call_impl", "_call_impl", "_slow_forward"),
)
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
            values.
        values: records the functional, where it maps values.
        arguments: gets the transform; returns the functional's arguments, None where it may do more than map values.
    """

    functional: str
    names: set[str]
    forward: set[str]
    change: Change | None = None
    values: ValueFunction | None = None
    arguments: Callable[[Any], tuple[Any, ...] | None] | None = None


class _Tail(NamedTuple):
    """What consecutive maps of values make of a tensor."""

    length: int
    layout: Layout
    dtype: torch.dtype
    steps: tuple[ValueStep, ...]
    table: Any
    replay: Replay


_tails: BoundedTable[Hashable, _Tail | None] = BoundedTable(256)


def record_steps(image: object, steps: Sequence[Any], first: int) -> tuple[torch.Tensor, int] | None:
    """Calls some transforms from `first` on with a deferred tensor, or with a deferred image or video of torchvision's.

    Returns:
        The result, and the number of the transforms; None if the first one is not known.
    """
    recording = recording_of(image)
    if recording is None or not is_deferring_possible() or are_modules_watched():
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
        if rule.change is None:
            tail = _find_tail(made, steps[first + at :], known[at:], kind)
            if tail is None:
                break
            made, at = _apply_tail(made, tail), at + tail.length
            continue
        changed = None if _kernel_of(step, rule, kind) is None else rule.change(step, made, tensor)
        if isinstance(changed, torch.Tensor):
            return changed, at + 1
        if changed is None:
            break
        made, at = changed, at + 1
    return (tensor(), at) if at else None


def _kernel_of(step: Any, rule: _Known, kind: type) -> Any:
    """Returns torchvision's kernel for tensors that a call of the transform leads to; None if it may lead elsewhere."""
    return kernel_below(rule.functional, kind) if is_as_made(step) else None


def _defer_as(recording: Recording, kind: type) -> torch.Tensor:
    if kind is not torch.Tensor:
        recording.is_shared = True  # with the tensor that torchvision makes an image of
    return defer(recording, kind)


def _has_known_name(kind: type) -> bool:
    return (kind.__module__, kind.__qualname__) in _KNOWN


@functools.lru_cache(maxsize=256)
def _find_known(kinds: tuple[type, ...]) -> tuple[list[_Known], Untouched]:
    """Returns what is known of the first of some classes of v2, and the functions that are not called."""
    base, functionals = sys.modules[_V2 + "_transform"], sys.modules[_V2 + "functional"]
    known: list[_Known] = []
    places: list[tuple[object, str]] = [(base, "_get_kernel"), (base, "check_type")]
    for kind in kinds:
        one = _known_of(kind)
        if one is None:
            break
        known.append(one)
        module = sys.modules[kind.__module__]
        places += [(kind, name) for name in _METHODS]
        places += [(module, name) for name in ("F", "is_pure_tensor", "query_size") if hasattr(module, name)]
        places.append((functionals, one.functional))
    return known, Untouched(*dict.fromkeys(places))


def _known_of(kind: Any) -> _Known | None:
    known = _KNOWN[kind.__module__, kind.__qualname__]
    codes = names_in(code_below_patch(kind, "transform")), names_in(code_below_patch(kind, "forward"))
    # `Untouched` takes for the library's what is there when it looks first, if that is no function.
    namespace = sys.modules[kind.__module__].F is sys.modules[_V2 + "functional"]
    is_known = codes == (known.names, known.forward) and namespace and torch.Tensor in kind._transformed_types
    return known if is_known else None


def _crop_and_resize(step: Any, made: Recording, tensor: Callable[[], torch.Tensor]) -> Recording | torch.Tensor:
    whole = tensor()
    params = _draw_params(step, whole)
    box = params["top"], params["left"], params["height"], params["width"]
    changed = crop_and_resize(made, box, step.size, step.interpolation, step.antialias)
    if isinstance(changed, torch.Tensor):
        return changed if class_of(whole) is torch.Tensor else wrap_result(changed, whole)
    return step.transform(whole, params) if changed is None else changed


def _draw_params(step: Any, whole: torch.Tensor) -> dict[str, Any]:
    """Returns what the transform's `make_params` does."""
    kind: Any = type(step)
    scale, ratio, logarithms = step.scale, step.ratio, step._log_ratio
    is_plain = type(logarithms) is torch.Tensor and logarithms.dtype is torch.float32 and logarithms.shape == (2,)
    is_known = is_plain and are_ranges(scale, ratio) and torch.get_default_dtype() is torch.float32
    if not (is_known and _knows_make_params(kind) and _of_draws()):
        return step.make_params([whole])  # type: ignore[no-any-return]
    height, width = whole.shape[-2:]
    top, left, rows, columns = draw_box(width, height, scale, ratio, logarithms.tolist())
    return {"top": top, "left": left, "height": rows, "width": columns}


@functools.lru_cache(maxsize=16)
def _knows_make_params(kind: Any) -> bool:
    return names_in(code_below_patch(kind, "make_params")) == _DRAWING


@functools.cache
def _of_draws() -> Untouched:
    return Untouched(*OF_DRAWS)


def _flip_along(axis: int) -> Change:
    def change(step: Any, made: Recording, tensor: Callable[[], torch.Tensor]) -> Recording | torch.Tensor:
        if torch.rand(1) >= step.p:
            return made
        flipped = flip(made, axis)
        return step.transform(tensor(), step.make_params([tensor()])) if flipped is None else flipped

    return change


def _arguments_of_dtype(step: Any) -> tuple[Any, ...] | None:
    return (step.dtype, step.scale) if isinstance(step.dtype, torch.dtype) and type(step.scale) is bool else None


def _arguments_of_normalize(step: Any) -> tuple[Any, ...] | None:
    mean, std = step.mean, step.std
    if step.inplace is not False or type(mean) is not list or type(std) is not list:
        return None
    return (list(mean), list(std), False) if {float, int}.issuperset(map(type, mean + std)) else None


def _find_tail(made: Recording, steps: Sequence[Any], known: Sequence[_Known], kind: type) -> _Tail | None:
    """Returns what as many of the first transforms do together as map values; None if the first one does not."""
    calls = []
    for step, rule in zip(steps, known, strict=False):
        arguments = None if rule.arguments is None else rule.arguments(step)
        plain = None if arguments is None else _kernel_of(step, rule, kind)
        if arguments is None or plain is None:
            break
        calls.append((rule.values, plain, arguments))
    state = made.state
    if not calls or state.finish is not None or not state.is_of_default():
        return None
    before = tuple(step.key for step in state.steps)
    of_input = torch.get_default_dtype(), state.layout, state.channels, state.dtype, made.cut, made.lead
    now = tuple((plain, repr(arguments)) for _, plain, arguments in calls)  # in words: 0.0 is not -0.0
    return _tails.find_or_make((of_input, before, now), lambda: _make_tail(made, calls))


def _make_tail(made: Recording, calls: Sequence[tuple[Any, Any, tuple[Any, ...]]]) -> _Tail | None:
    last, added = made, list[ValueStep]()
    for values, plain, arguments in calls:
        found = values.step_of(plain, last, *arguments)
        changed = change_values(last, found) if isinstance(found, ValueStep) else None
        if changed is None:
            break
        last, added = changed, [*added, found]
    if not added:
        return None
    functions = [step.call for step in added]

    def replay(tensor: torch.Tensor) -> torch.Tensor:
        for function in functions:
            tensor = function(tensor)
        return tensor

    return _Tail(len(added), last.state.layout, last.state.dtype, last.state.steps, last.state.table, replay)


def _apply_tail(made: Recording, tail: _Tail) -> Recording:
    after = made.state._replace(layout=tail.layout, dtype=tail.dtype, steps=tail.steps, table=tail.table)
    return Recording(made.origin, after, made, tail.replay)


def _calling(functional: str, *names: str) -> tuple[str, set[str]]:
    return functional, {"_call_kernel", "F", functional, *names}


_DRAWING = {
    *("query_size", "_log_ratio", "range", "torch", "empty", "uniform_", "scale", "item", "exp", "int", "round"),
    *("math", "sqrt", "randint", "float", "min", "ratio", "max", "dict"),
}
_CROP_NAMES = "size", "interpolation", "antialias"
_DTYPE_NAMES = (
    *("isinstance", "dtype", "torch", "is_pure_tensor", "tv_tensors", "Image", "Video"),
    *("type", "ValueError", "scale", "warnings", "warn"),
)
_KNOWN = {
    (_V2 + "_geometry", "RandomResizedCrop"): _Known(
        *_calling("resized_crop", *_CROP_NAMES), FORWARD, _crop_and_resize
    ),
    (_V2 + "_geometry", "RandomHorizontalFlip"): _Known(*_calling("horizontal_flip"), RANDOMLY, _flip_along(-1)),
    (_V2 + "_geometry", "RandomVerticalFlip"): _Known(*_calling("vertical_flip"), RANDOMLY, _flip_along(-2)),
    (_V2 + "_misc", "ToDtype"): _Known(
        *_calling("to_dtype", *_DTYPE_NAMES), FORWARD, None, TO_DTYPE, _arguments_of_dtype
    ),
    (_V2 + "_misc", "Normalize"): _Known(
        *_calling("normalize", "mean", "std", "inplace"), FORWARD, None, NORMALIZE, _arguments_of_normalize
    ),
}

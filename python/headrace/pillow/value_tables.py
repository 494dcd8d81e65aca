"""Tables of what transforms make of the 256 bytes: of those that turn an image into a tensor and map its values.

The transforms themselves make a table, from an image that holds all bytes.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from PIL import Image
from torch.nn.modules import module as nn_module

from headrace._base.lifetimes.bounded_table import BoundedTable
from headrace._base.types import Array
from headrace._recipe.images.part_kinds import as_image, is_pure_tensor
from headrace.pillow.recording.patches import Untouched

_WIDEST = 4  # bytes of an element that the kernels write


_NUMBERS = {float, int}


def _key_of_normalize(step: Any) -> Hashable:
    mean, std = tuple(step.mean), tuple(step.std)
    return (mean, std, step.inplace) if _NUMBERS.issuperset(map(type, mean + std)) else None


def _key_of_dtype_step(step: Any) -> Hashable:
    return (step.dtype, getattr(step, "scale", None)) if isinstance(step.dtype, torch.dtype) else None


def _empty_key(step: object) -> Hashable:
    return ()


Depends: TypeAlias = Callable[[Any], Hashable]

# What a transform's result depends on, by module and class. None: more than the values of single pixels.
_V1, _V2, _TIMM = "torchvision.transforms.transforms", "torchvision.transforms.v2._", "timm.data.transforms"
_OURS = "headrace.transforms._"
_FIRST: dict[tuple[str, str], Depends] = {
    (_V1, "ToTensor"): _empty_key,
    (_V1, "PILToTensor"): _empty_key,
    (_V2 + "type_conversion", "PILToTensor"): _empty_key,
    (_V2 + "type_conversion", "ToImage"): _empty_key,
    (_V2 + "deprecated", "ToTensor"): _empty_key,
    (_OURS + "pointwise", "ToTensor"): _empty_key,
    (_OURS + "pointwise", "PILToTensor"): _empty_key,
    (_OURS + "pointwise", "ToImage"): _empty_key,
    (_TIMM, "MaybeToTensor"): _empty_key,
    (_TIMM, "MaybePILToTensor"): _empty_key,
}
_LATER: dict[tuple[str, str], Depends] = {
    (_V1, "Normalize"): _key_of_normalize,
    (_V1, "ConvertImageDtype"): _key_of_dtype_step,
    (_V2 + "type_conversion", "ToPureTensor"): _empty_key,
    (_V2 + "misc", "Normalize"): _key_of_normalize,
    (_V2 + "misc", "ConvertImageDtype"): _key_of_dtype_step,
    (_V2 + "misc", "ToDtype"): _key_of_dtype_step,
    (_OURS + "pointwise", "Normalize"): _key_of_normalize,
    (_OURS + "pointwise", "ToPureTensor"): _empty_key,
    (_OURS + "dtype_conversion", "ToDtype"): _key_of_dtype_step,
}


@dataclass(frozen=True)
class ValueTable:
    """What some transforms make of an image.

    Attributes:
        steps: number of the transforms.
        values: (channels, 256), contiguous.
        layout: of their result in memory, "planar" or "channels_last"; the shape is (channels, height, width).
        kind: class of their result.
        marked: it counts as an image for headrace.transforms, as ToImage's result does.
        are_bytes: torchvision made them, and they are the image's bytes.
    """

    steps: int
    values: Array
    layout: str
    kind: type[torch.Tensor]
    marked: bool
    are_bytes: bool

    def tensor(self, made: Array) -> torch.Tensor:
        """Returns values, which are in memory as `layout` says, as the transforms would return them."""
        whole = torch.from_numpy(made)
        whole = whole if self.layout == "planar" else whole.permute(2, 0, 1)
        if self.marked:
            return as_image(whole)
        return whole if self.kind is torch.Tensor else whole.as_subclass(self.kind)


_tables: BoundedTable[Hashable, ValueTable | None] = BoundedTable(64)


def table_of(steps: Sequence[Callable[..., object]], first: int, mode: str) -> ValueTable | None:
    """Returns the table of as many transforms as have one together.

    Args:
        steps: transforms, of which that with the number `first` gets the image.
        mode: the image's mode, "RGB" or "L".

    Returns:
        None if the first transform is not known to map values.
    """
    found = [_key_of_step(_FIRST, steps[first])]
    if found[0] is None:
        return None
    while found[-1] is not None and first + len(found) < len(steps):
        found.append(_key_of_step(_LATER, steps[first + len(found)]))
    if found[-1] is None:
        found.pop()
    kinds: tuple[type, ...] = tuple(map(type, steps[first : first + len(found)]))
    if not _make_untouched(kinds):  # asked once for all of them, which costs less than for each
        kinds = tuple(itertools.takewhile(lambda one: _make_untouched((one,)), kinds))
    if not kinds:
        return None
    last = first + len(kinds)
    key = (torch.get_default_dtype(), mode, *kinds, *found[: len(kinds)])
    return _tables.find_or_make(key, lambda: _make_table(steps[first:last], mode))


def _key_of_step(kinds: dict[tuple[str, str], Depends], step: object) -> Hashable:
    """Returns what a transform's result depends on; None if that is unknown."""
    kind = type(step)
    depends = kinds.get((kind.__module__, kind.__qualname__))
    if depends is None:
        return None
    return depends(step) if is_as_made(step) and not are_modules_watched() else None


def is_as_made(step: object) -> bool:
    """Whether a transform has no hooks, and no functions or types in place of its class's."""
    held = vars(step)
    return _OF_CLASSES.isdisjoint(held) and not any(map(held.get, _HOOKS))


def are_modules_watched() -> bool:
    """Whether a program has hooks for the calls of all modules."""
    return any(_global_hooks(nn_module))


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_global_hooks = operator.attrgetter(*("_global" + hooks for hooks in _HOOKS))
#: What torch's and torchvision's modules look up in a transform when it is called.
_OF_CLASSES = frozenset(
    (
        *("forward", "transform", "make_params", "check_inputs", "call_kernel", "_call_kernel", "_transformed_types"),
        *(
            "get_params",
            "_needs_transform_list",
            "_wrapped_call_impl",
            "_call_impl",
            "_compiled_call_impl",
            "_slow_forward",
        ),
    )
)


# What transforms, and `_make_table`, call of Pillow.
_OF_PILLOW = (
    *((Image, name) for name in ("frombytes", "_conv_type_shape", "_getencoder", "_getdecoder")),
    *((Image.Image, name) for name in ("frombytes", "tobytes", "getbands")),
)
_METHODS = ("__call__", "forward", "transform", "call_kernel", "_call_kernel", "make_params")
_MODULES = (
    *("torchvision.transforms.functional", "torchvision.transforms._functional_tensor"),
    *("torchvision.transforms.v2.functional", "torchvision.transforms.v2.functional._misc"),
)
_FUNCTIONALS = {
    "ToTensor": ("to_tensor",),
    "PILToTensor": ("pil_to_tensor",),
    "ToImage": ("to_image", "pil_to_tensor"),
    "Normalize": ("normalize", "normalize_image"),
    "ConvertImageDtype": ("convert_image_dtype",),
    "ToDtype": ("to_dtype", "to_dtype_image"),
}


@functools.cache
def _make_untouched(kinds: tuple[type, ...]) -> Untouched:
    """Returns the functions whose work a table of such transforms does; see Note [patched] in `patches`."""
    places: list[tuple[object, str]] = [(of, name) for of, name in _OF_PILLOW if hasattr(of, name)]
    for kind in kinds:
        places += [(kind, name) for name in _METHODS if hasattr(kind, name)]
        if kind.__module__.startswith("torchvision."):
            for module in (sys.modules[name] for name in _MODULES if name in sys.modules):
                places += [(module, name) for name in _FUNCTIONALS.get(kind.__name__, ()) if hasattr(module, name)]
    return Untouched(*dict.fromkeys(places))


def _make_table(steps: Sequence[Callable[..., object]], mode: str) -> ValueTable | None:
    channels = len(mode)
    every = np.arange(256, dtype=np.uint8).repeat(channels).tobytes()
    result: Any = Image.frombytes(mode, (16, 16), every)
    try:
        for step in steps:
            result = step(result)
        values = result.detach().as_subclass(torch.Tensor).numpy()
    except Exception:  # raised again, with its own traceback, where the transforms are called one by one
        return None
    layouts = {(256, 16, 1): "planar", (1, 16 * channels, channels): "channels_last"}
    layout = layouts.get(result.stride())
    if layout is None or result.shape != (channels, 16, 16) or result.requires_grad or values.itemsize > _WIDEST:
        return None
    table = np.ascontiguousarray(values.reshape(channels, 256))
    marked = type(result) is torch.Tensor and not is_pure_tensor(result)
    are_bytes = len(steps) == 1 and values.dtype == np.uint8 and type(steps[0]).__module__.startswith("torchvision.")
    return ValueTable(len(steps), table, layout, type(result), marked, are_bytes)

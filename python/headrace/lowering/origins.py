"""Says whose transform an object is: headrace's, torchvision's v1 or v2, timm's or torch's; only torch is imported."""

from __future__ import annotations

import inspect
import operator
import sys
import zlib
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

import headrace.transforms as _ours

_V1 = "torchvision.transforms.transforms"
#: Where the classes live: (home, module). An object of a class that is not loaded cannot have been given to us.
_HOMES = (
    ("headrace", _ours.__name__),
    ("v1", _V1),
    ("v2", "torchvision.transforms.v2"),
    ("presets", "torchvision.transforms._presets"),
    ("timm", "timm.data.transforms"),
    ("timm", "timm.data.random_erasing"),
    ("torch", "torch.nn"),
)

_CONTAINERS = {("headrace", "Compose"), ("v1", "Compose"), ("v2", "Compose"), ("torch", "Sequential")}


def class_origin(cls: type) -> tuple[str, str] | None:
    """(home, class name) if `cls` itself is a class of one of the homes; a subclass elsewhere is not."""
    for home, module in _HOMES:
        if module in sys.modules and getattr(sys.modules[module], cls.__name__, None) is cls:
            return home, cls.__name__
    return None


def has_hooks(transform: Any) -> bool:
    """Whether calling the object does more than its class says: forward hooks, or a replaced method."""
    changed = {"forward", "__call__", "transform", "make_params", "get_params"}
    replaced = class_origin(type(transform)) and changed & vars(transform).keys()
    return bool(replaced) or (
        isinstance(transform, nn.Module) and bool(transform._forward_hooks or transform._forward_pre_hooks)
    )


_CODE_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE


class _Preset:
    def __call__(self, img: Any) -> Any:
        return self.transforms(img)  # type: ignore[attr-defined]


def _only_calls_its_transforms(cls: type) -> bool:
    """Whether a user's class is a name for a Compose, as the presets of torchvision's reference scripts are: its
    ``__call__`` is ``return self.transforms(img)``, instruction by instruction."""
    call = vars(cls).get("__call__")
    if not isinstance(call, FunctionType) or issubclass(cls, nn.Module):
        return False
    compared = operator.attrgetter("co_code", "co_names", "co_argcount")
    ours, theirs = _Preset.__call__.__code__, call.__code__
    # Of the flags only those of the code itself: a file's __future__ imports set others, which change nothing here.
    return bool(compared(theirs) == compared(ours) and (theirs.co_flags ^ ours.co_flags) & _CODE_FLAGS == 0)


def leaves(transform: Any) -> Iterator[Any]:
    """The transforms in the order in which they are applied, with every Compose, nn.Sequential and preset opened.

    ImageClassification, which torchvision's weights bring along (``ResNet50_Weights.DEFAULT.transforms()``), is opened
    into the v1 objects of the functions that it calls.
    """
    origin = class_origin(type(transform))
    if has_hooks(transform):
        yield transform
    elif origin in _CONTAINERS:
        for inner in transform if isinstance(transform, nn.Sequential) else transform.transforms:
            yield from leaves(inner)
    elif _only_calls_its_transforms(type(transform)):
        yield from leaves(transform.transforms)
    elif origin == ("presets", "ImageClassification"):
        v1 = sys.modules[_V1]
        yield v1.Resize(transform.resize_size, transform.interpolation, antialias=transform.antialias)
        yield v1.CenterCrop(transform.crop_size)
        yield v1.PILToTensor()
        yield v1.ConvertImageDtype(torch.float32)
        yield v1.Normalize(transform.mean, transform.std)
    else:
        yield transform


def attributes(value: Any) -> str:
    """What is in a transform, in the objects inside it too: another string once something of it was changed.

    It looks at some thousand objects; what lies beyond may change unseen.
    """
    return _Attributes().of(value)


class _Attributes:
    def __init__(self) -> None:
        self._left = 10_000
        self._around: set[int] = set()

    def of(self, value: Any) -> str:
        self._left -= 1
        if id(value) in self._around or self._left < 0:  # an object that holds itself, or a very large one
            return "..."
        if isinstance(value, torch.Tensor):
            return _numbers(value.detach())
        if isinstance(value, np.ndarray):
            return _numbers(value)
        if isinstance(value, (type, FunctionType, ModuleType)):
            return repr(value)
        self._around.add(id(value))
        try:
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(map(self.of, value))}]"
            if isinstance(value, dict):
                return f"{{{', '.join(f'{name!r}: {self.of(one)}' for name, one in value.items())}}}"
            if not hasattr(value, "__dict__"):
                return repr(value)
            return f"{type(value).__qualname__} {self.of(vars(value))}"
        finally:
            self._around.discard(id(value))


def _numbers(array: Any) -> str:
    """An array's shape and a checksum of its elements; its repr where these cannot be had as bytes."""
    try:
        flat = array.reshape(-1)
        held = flat.contiguous().view(torch.uint8).numpy() if isinstance(flat, torch.Tensor) else flat.view(np.uint8)
        return f"{tuple(array.shape)} {array.dtype} {zlib.crc32(np.ascontiguousarray(held).data)}"
    except (TypeError, ValueError, RuntimeError):  # objects, or elements that are elsewhere
        return repr(array)

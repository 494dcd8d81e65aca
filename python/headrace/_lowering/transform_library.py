"""Identifies the library of a transform: headrace, torchvision v1 or v2, timm or torch; imports only torch."""

from __future__ import annotations

import functools
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
from headrace._base.originals.originality import function_in
from headrace._base.types import Array, Function

_V1 = "torchvision.transforms.transforms"
#: (library, module) of the known classes. Modules that are not loaded need no check: no object of theirs can exist.
_LIBRARIES = (
    ("headrace", _ours.__name__),
    ("v1", _V1),
    ("v1", "torchvision.transforms.autoaugment"),
    ("v2", "torchvision.transforms.v2"),
    ("presets", "torchvision.transforms._presets"),
    ("timm", "timm.data.transforms"),
    ("timm", "timm.data.random_erasing"),
    ("timm", "timm.data.auto_augment"),
    ("torch", "torch.nn"),
)

_PRESETS = {("presets", name) for name in ("ImageClassification", "SemanticSegmentation", "ObjectDetection")}

_CONTAINERS = {("headrace", "Compose"), ("v1", "Compose"), ("v2", "Compose"), ("torch", "Sequential")}


def class_origin(cls: type) -> tuple[str, str] | None:
    """Returns (library, class name) if `cls` itself is defined in one of the libraries; None for any other class."""
    for library, module in _LIBRARIES:
        if module in sys.modules and getattr(sys.modules[module], cls.__name__, None) is cls:
            return library, cls.__name__
    return None


def has_hooks(transform: object) -> bool:
    """Whether the object has forward hooks or a replaced method, so that calling it may do more than its class."""
    cls: type = type(transform)
    replaced = class_origin(cls) and not _methods_of(cls).isdisjoint(vars(transform))
    return bool(replaced) or (
        isinstance(transform, nn.Module) and bool(transform._forward_hooks or transform._forward_pre_hooks)
    )


@functools.lru_cache(maxsize=1024)
def _methods_of(cls: type) -> frozenset[str]:
    """Returns the names of a class's functions, which an attribute of an object replaces."""
    members = [(name, value) for one in cls.__mro__ for name, value in vars(one).items()]
    found = (name for name, value in members if isinstance(function_in(value), FunctionType))
    return frozenset((*found, "_augmentation_space"))  # which policies of version 2 may lack


_CODE_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE


class _Preset:
    def __call__(self, img: object) -> object:
        return self.transforms(img)  # type: ignore[attr-defined]


def _only_calls_its_transforms(cls: type) -> bool:
    """Whether the ``__call__`` of a user's class is ``return self.transforms(img)``, by comparing bytecode.

    The presets of torchvision's reference scripts are such classes.
    """
    call = vars(cls).get("__call__")
    if not isinstance(call, FunctionType) or issubclass(cls, nn.Module):
        return False
    compared = operator.attrgetter("co_code", "co_names", "co_argcount")
    ours, theirs = _Preset.__call__.__code__, call.__code__
    # Compares only these flags: a file's __future__ imports set others, which do not matter here.
    return bool(compared(theirs) == compared(ours) and (theirs.co_flags ^ ours.co_flags) & _CODE_FLAGS == 0)


def leaf_transforms(transform: Any) -> Iterator[Function]:
    """Yields the transforms in the order of application; flattens every Compose, nn.Sequential and preset.

    A preset of torchvision's weights for images (``ResNet50_Weights.DEFAULT.transforms()``) is replaced by v1
    transforms that do what the functions it calls do.
    """
    origin = class_origin(type(transform))
    if has_hooks(transform):
        yield transform
    elif origin in _CONTAINERS:
        for inner in transform if isinstance(transform, nn.Sequential) else transform.transforms:
            yield from leaf_transforms(inner)
    elif _only_calls_its_transforms(type(transform)):
        yield from leaf_transforms(transform.transforms)
    elif origin in _PRESETS:
        yield from _preset_steps(transform, sys.modules[_V1])
    else:
        yield transform


def _preset_steps(preset: Any, v1: ModuleType) -> Iterator[Function]:
    if isinstance(getattr(preset, "resize_size", None), list):  # SemanticSegmentation's may be None
        yield v1.Resize(preset.resize_size, preset.interpolation, antialias=preset.antialias)
    if hasattr(preset, "crop_size"):
        yield v1.CenterCrop(preset.crop_size)
    yield v1.PILToTensor()
    yield v1.ConvertImageDtype(torch.float32)
    if hasattr(preset, "mean"):
        yield v1.Normalize(preset.mean, preset.std)


_LARGE = 1 << 20  # bytes
_SOME = 4096  # elements of a large array that are looked at


def attributes(value: object) -> str:
    """Returns a string that changes when an attribute of a transform, or of an object inside it, changes.

    Covers the first 10,000 objects; changes beyond them go unnoticed.
    """
    return _Attributes().format_value(value)


class _Attributes:
    def __init__(self) -> None:
        self._left = 10_000
        self._around: set[int] = set()

    def format_value(self, value: object) -> str:
        self._left -= 1
        if id(value) in self._around or self._left < 0:  # an object that contains itself, or too many objects
            return "..."
        if isinstance(value, torch.Tensor):
            return _format_array(value.detach())
        if isinstance(value, np.ndarray):
            return _format_array(value)
        if isinstance(value, (type, FunctionType, ModuleType)):
            return repr(value)
        self._around.add(id(value))
        try:
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(map(self.format_value, value))}]"
            if isinstance(value, dict):
                return f"{{{', '.join(f'{name!r}: {self.format_value(one)}' for name, one in value.items())}}}"
            if not hasattr(value, "__dict__"):
                return repr(value)
            return f"{type(value).__qualname__} {self.format_value(vars(value))}"
        finally:
            self._around.discard(id(value))


def _format_array(array: Array | torch.Tensor) -> str:
    """Returns an array's shape, dtype and a checksum of its elements; its repr if they cannot be viewed as bytes.

    Of a large array the checksum is that of some elements, and the text names its memory and, of a tensor, its version.
    """
    where = ""
    try:
        flat = array.reshape(-1)
        if array.nbytes > _LARGE:
            place = (array.data_ptr(), array._version) if isinstance(array, torch.Tensor) else array.ctypes.data
            flat, where = flat[:: len(flat) // _SOME], f" at {place}"
        if isinstance(flat, torch.Tensor):
            flat = flat.contiguous().view(torch.uint8).numpy()
        held = np.ascontiguousarray(flat).view(np.uint8)
        return f"{tuple(array.shape)} {array.dtype} {zlib.crc32(held.data)}{where}"
    except (TypeError, ValueError, RuntimeError):  # an array of objects, or a tensor outside of CPU memory
        return repr(array)

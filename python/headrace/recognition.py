"""Says whose transform an object is: headrace's, torchvision's v1 or v2, timm's or torch's; only torch is imported."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

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


class _Preset:
    def __call__(self, img: Any) -> Any:
        return self.transforms(img)  # type: ignore[attr-defined]


def _only_calls_its_transforms(cls: type) -> bool:
    """Whether a user's class is a name for a Compose, as the presets of torchvision's reference scripts are: its
    ``__call__`` is ``return self.transforms(img)``, instruction by instruction."""
    call = vars(cls).get("__call__")
    if not isinstance(call, FunctionType) or issubclass(cls, nn.Module):
        return False
    compared = operator.attrgetter("co_code", "co_names", "co_argcount", "co_flags")
    return bool(compared(call.__code__) == compared(_Preset.__call__.__code__))


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
    """What is in a transform, in the transforms inside it too: another string once something of it was changed."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(attributes, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {attributes(one)}' for name, one in value.items())}}}"
    if class_origin(type(value)) is not None:
        return f"{type(value).__name__}{attributes(vars(value))}"
    return repr(value)

"""Whether a class still does what headrace does in its place: which of its methods are its own."""

from __future__ import annotations

import sys
from typing import Any


class NotNative(TypeError):
    """The native path cannot read the dataset; the message says why, and what would let it."""


def home(cls: type, name: str) -> int:
    """How many classes of the method resolution order come before the one that defines `name`; a large number where
    none does."""
    return next((i for i, base in enumerate(cls.__mro__) if name in vars(base)), len(cls.__mro__))


def class_name(cls: type) -> str:
    """With its module: two libraries may have classes of one name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def refuse_override(cls: type, method: str, remedy: str) -> None:
    """Raises NotNative about a method of a class."""
    raise NotNative(f"{class_name(cls)} overrides {method}, which the native path would not call; {remedy}")


def check_samples(cls: type, original: type) -> None:
    """Raises NotNative where a subclass makes its samples otherwise than `original`."""
    for method in ("__getitem__", "__getitems__"):
        if getattr(cls, method, None) is not getattr(original, method, None):
            refuse_override(cls, method, "put that work into transform or target_transform")


def is_torchvision(dataset: Any, module: str, name: str) -> bool:
    """Whether the dataset is one of the class `name` of ``torchvision.datasets.<module>``, which is not imported: an
    object of a class that is not loaded cannot have been given to us.

    Raises:
        NotNative: it is one of a subclass that makes its samples otherwise.
    """
    original = getattr(sys.modules.get(f"torchvision.datasets.{module}"), name, None)
    if original is None or not isinstance(dataset, original):
        return False
    check_samples(type(dataset), original)
    return True


def attribute(dataset: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """An attribute of a dataset of torchvision's.

    Raises:
        NotNative: it is not there, or of another type than torchvision gives it.
    """
    value = getattr(dataset, name, None)
    if not isinstance(value, kind):
        raise NotNative(
            f"{class_name(type(dataset))}.{name} is {type(value).__name__}, not what torchvision puts there; "
            "leave it as it is"
        )
    return value

"""Checks that a class does not override the methods that headrace replaces natively."""

from __future__ import annotations

import sys
from collections.abc import Sized
from typing import Any

from headrace._base.errors import HeadraceError


class NotNative(HeadraceError, TypeError):
    """The native path cannot read the dataset; the message gives the reason and a remedy."""


class Overridden(NotNative):
    """A class overrides what the native path does not call. It may have been changed after it was made, and back."""


def mro_index(cls: type, name: str) -> int:
    """Returns the index in `cls.__mro__` of the class that defines `name`, or ``len(cls.__mro__)`` if none does."""
    return next((i for i, base in enumerate(cls.__mro__) if name in vars(base)), len(cls.__mro__))


def class_name(cls: type) -> str:
    """Returns the qualified class name with its module: two libraries may use the same name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def refuse_override(cls: type, method: str, remedy: str) -> None:
    """Raises Overridden: a class overrides a method that the native path does not call."""
    raise Overridden(f"{class_name(cls)} overrides {method}, which the native path would not call; {remedy}")


def check_samples(dataset: object, original: type) -> None:
    """Raises NotNative if a dataset, or its class, overrides how `original` makes its samples."""
    cls = type(dataset)
    for method in ("__getitem__", "__getitems__"):
        if getattr(cls, method, None) is not getattr(original, method, None) or _is_foreign(original, method):
            refuse_override(cls, method, "put that work into transform or target_transform")
    if "__getitems__" in getattr(dataset, "__dict__", ()):  # Python looks up __getitem__ in the class alone
        refuse_override(cls, "__getitems__ in an instance", "put that work into transform or target_transform")


def _is_foreign(original: type, method: str) -> bool:
    """Whether another module has given a method to a class of torch, torchvision or headrace."""
    function = getattr(original, method, None)
    return function is not None and getattr(function, "__module__", None) != original.__module__


def check_length(dataset: Sized) -> None:
    """Raises NotNative if the ``len()`` of a dataset raises, which its own samples need."""
    try:
        len(dataset)
    except Exception as error:
        raise NotNative(
            f"len() of {class_name(type(dataset))} raises {type(error).__name__}; give it a length"
        ) from error


def makes_samples_as(dataset: object, original: type) -> bool:
    """Returns whether `check_samples` accepts a dataset."""
    try:
        check_samples(dataset, original)
    except NotNative:
        return False
    return True


def is_torchvision(dataset: object, module: str, name: str) -> bool:
    """Returns whether the dataset is an instance of the class `name` in ``torchvision.datasets.<module>``.

    torchvision is not imported: if the class is not loaded, the dataset cannot be an instance of it.

    Raises:
        NotNative: the dataset's class is a subclass that overrides how samples are made.
    """
    original = getattr(sys.modules.get(f"torchvision.datasets.{module}"), name, None)
    if original is None or not isinstance(dataset, original):
        return False
    check_samples(dataset, original)
    return True


def attribute(dataset: object, name: str, kind: type | tuple[type, ...]) -> Any:
    """Returns an attribute of a torchvision dataset.

    Raises:
        NotNative: the attribute is missing, or its type is not the one that torchvision uses.
    """
    value = getattr(dataset, name, None)
    if not isinstance(value, kind):
        raise NotNative(
            f"{class_name(type(dataset))}.{name} is {type(value).__name__}, not the type that torchvision uses; "
            "leave the attribute unchanged"
        )
    return value

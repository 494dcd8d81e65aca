"""Dataclasses as JSON that other processes read: every field is checked, since a file may be damaged or forged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T", bound="DataclassInstance")

_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "dict[str, object]": (dict,),
}


def as_text(one: DataclassInstance, version: int) -> str:
    """Returns a dataclass as JSON, with the version of its fields."""
    return json.dumps({"format": version, **asdict(one)})


def of_text(cls: type[_T], text: str, version: int, nested: Mapping[str, type[Any]]) -> _T:
    """Returns what `as_text` wrote.

    Args:
        nested: by their names, the dataclasses that its fields, or theirs, are or list.

    Raises:
        ValueError: another version of headrace wrote it, or it is damaged.
    """
    raw = json.loads(text)
    if not isinstance(raw, dict) or raw.pop("format", None) != version:
        raise ValueError("another version of headrace wrote it")
    return _build_object(cls, raw, nested)


def _build_object(cls: type[_T], raw: object, nested: Mapping[str, type[Any]]) -> _T:
    if not isinstance(raw, dict) or set(raw) != {one.name for one in fields(cls)}:
        raise ValueError(f"it does not have the fields of {cls.__name__}")
    return cls(**{one.name: _checked_value(one.name, str(one.type), raw[one.name], nested) for one in fields(cls)})


def _checked_value(name: str, kind: str, value: object, nested: Mapping[str, type[Any]]) -> Any:
    if kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]):
            raise ValueError(f"its field {name} is no {kind}")
        return value
    if kind.startswith("list["):
        if not isinstance(value, list):
            raise ValueError(f"its field {name} is no list")
        inner = kind.removeprefix("list[").removesuffix("]")
        return [_checked_value(name, inner, one, nested) for one in value]
    inner = kind.removesuffix(" | None")
    return None if value is None and inner != kind else _build_object(nested[inner], value, nested)

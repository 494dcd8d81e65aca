"""A recipe as JSON: what another machine needs to make the same bytes of a sample. Nothing in it is code."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch

from headrace._recipe.steps import byte_tensor_steps, drawn_size_steps, effect_steps, steps, warp_steps
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.draw_columns import AnyColumn, Column
from headrace._recipe.steps.recipe import DTYPES, Recipe

_DTYPES = {str(one).removeprefix("torch."): one for one in DTYPES}
#: What steps refer to: a sample of another machine is made without Python functions and without arrays.
_KINDS = {
    name: kind
    for module in (steps, effect_steps, byte_tensor_steps, drawn_size_steps, warp_steps)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__.startswith("headrace._recipe.steps.")
}
_MOST_EDGE = 1 << 15
_MOST_DRAWS = 1 << 14


class NotText(ValueError):
    """A recipe that has no text, with the reason."""


@dataclass(frozen=True)
class RecipeText:
    """A recipe for another machine.

    Attributes:
        text: JSON, the same for equal recipes.
        finished: whether samples are finished elements, in the dtype of the recipe and in channels first; otherwise
            they are bytes (height, width, channels), to which the recipe's table is not applied yet.
    """

    text: str
    finished: bool


def as_bytes(recipe: Recipe) -> Recipe:
    """Returns the recipe without the table after its steps: its samples are bytes (channels, height, width)."""
    table = torch.arange(256, dtype=torch.uint8, device="cpu").repeat(recipe.channels, 1)
    return replace(recipe, pointwise=Pointwise((), None), lut=table)


def write_recipe(recipe: Recipe) -> RecipeText:
    """Returns the text of a recipe.

    Raises:
        NotText: it cannot be done on another machine: it has several outputs, sizes that differ, or Python steps.
    """
    for refused, why in (
        (bool(recipe.views), "it makes several outputs of a sample"),
        (bool(recipe.variants) or recipe.varies, "its outputs have different sizes"),
        (bool(recipe.calls), "it has Python steps"),
        (recipe.texture is not None, "it ends in texture channels"),
    ):
        if refused:
            raise NotText(why)
    finished = recipe.erased is not None
    content: dict[str, Any] = {
        "steps": [_written(step) for step in recipe.steps],
        "draws": [_range_of(column) for column in recipe.columns],
        "height": recipe.height,
        "width": recipe.width,
        "channels": recipe.channels,
        "mode": recipe.mode,
        "upright": recipe.upright,
    }
    if finished:
        content["dtype"] = str(recipe.dtype).removeprefix("torch.")
        content["table"] = _text_of(recipe.lut)
        content["erased"] = _text_of(recipe.erased)
    return RecipeText(json.dumps(content, sort_keys=True), finished)


def read_recipe(text: str) -> Recipe:
    """Returns the recipe of a text; without a table, one that makes bytes. Of its draws, only their limits are known.

    Raises:
        ValueError: the text is none of a recipe.
    """
    try:
        content = json.loads(text)
        height, width, channels = (int(content[name]) for name in ("height", "width", "channels"))
        columns = tuple(Column(float(low), float(high)) for low, high in content["draws"])
        sizes_fit = 0 < height <= _MOST_EDGE and 0 < width <= _MOST_EDGE and len(columns) <= _MOST_DRAWS
        if not sizes_fit or channels not in (1, 3):
            raise ValueError(f"{channels} x {height} x {width}, {len(columns)} draws")
        made = Recipe(
            steps=tuple(_read(step) for step in content["steps"]),
            columns=columns,
            height=height,
            width=width,
            channels=channels,
            pointwise=Pointwise((), None),
            lut=torch.empty(0),
            mode={"RGB": "RGB", "L": "L", "P": "P"}[content["mode"]],
            upright=bool(content["upright"]),
        )
        if "table" not in content:
            return as_bytes(made)
        dtype = _DTYPES[content["dtype"]]
        table, erased = (_tensor_of(content[name], dtype, channels) for name in ("table", "erased"))
        return replace(made, lut=table.reshape(channels, 256), erased=erased)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError, RuntimeError, ValueError) as error:
        raise ValueError(f"this is no recipe: {type(error).__name__}: {error}") from None


def _range_of(column: AnyColumn) -> tuple[float, float]:
    """Returns the least and the greatest value of a draw; of one that is computed from others, any."""
    if not isinstance(column, Column):
        return -math.inf, math.inf
    return (math.exp(column.low), math.exp(column.high)) if column.exp else (column.low, column.high)


def _text_of(tensor: torch.Tensor | None) -> str:
    assert tensor is not None
    return base64.b64encode(tensor.contiguous().view(torch.uint8).numpy().tobytes()).decode()


def _tensor_of(text: str, dtype: torch.dtype, channels: int) -> torch.Tensor:
    content = bytearray(base64.b64decode(text, validate=True))
    return torch.frombuffer(content, dtype=dtype).reshape(-1, channels) if channels and content else torch.empty(0)


def _written(value: object) -> Any:
    """Returns a step, or a value in it, as JSON: a list is a tuple, an object with a kind is one of our records."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    if is_dataclass(value) and _KINDS.get(type(value).__name__) is type(value):
        return {"kind": type(value).__name__, **{name: _written(held) for name, held in _fields_of(value)}}
    raise NotText(f"its step has a {type(value).__name__}")


def _fields_of(value: Any) -> Iterator[tuple[str, object]]:
    return ((one.name, getattr(value, one.name)) for one in fields(value))


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_read(one) for one in value)
    if isinstance(value, dict):
        kind = _KINDS[value["kind"]]
        return kind(**{name: _read(held) for name, held in value.items() if name != "kind"})
    return value

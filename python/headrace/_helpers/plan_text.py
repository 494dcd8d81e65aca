"""Plans of samples as JSON: what another machine needs to make what a program's own code has recorded.

Nothing in it is code. Both sides read a plan by the same rules; one that does not fit them is made where it was
recorded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from headrace._engine.image_engine import GivenPlan
from headrace._helpers.messages import MALFORMED, MessageError

#: The numbers of Pillow's filters, and the names of the others, as bind/convert.cpp has them.
_FILTERS = (
    *range(6),
    *("tensor_bilinear", "tensor_bicubic", "float_bilinear", "float_bicubic", "fused_bilinear", "fused_bicubic"),
    *("tensor_nearest", "tensor_nearest_exact"),
)
#: Effects with a number, and those on byte tensors: with a number, flags, and maybe lanes.
_EFFECTS = (
    *("Gray", "Brightness", "Contrast", "Saturation", "Hue", "Invert", "Posterize", "Solarize", "Autocontrast"),
    *("Equalize", "Sharpness", "SolarizeAdd"),
)
_TENSOR_EFFECTS = "TensorSaturation", "TensorContrast", "TensorSharpness", "TensorAutocontrast", "TensorHue"
_FLAGS = ("flip_horizontal", "flip_vertical", "gray")
_TAKE = {"box", "pad_mode", "fill", *_FLAGS}
_STAGE = {"resize", "made", "filter", "vertical_first", "effects", *_TAKE}
_MOST_PARTS = 64  # stages of a plan, and effects of a stage
_MOST_PLANS = 1 << 10  # of a request
_MOST_OFFSET, _MOST_EDGE, _MOST_PIXELS = 1 << 20, 1 << 15, 1 << 25
_MOST_FACTOR = 1e6


class _NotPlain(ValueError):
    """A plan that is made where it was recorded."""


def write_plans(plans: Sequence[GivenPlan]) -> bytes:
    """Returns the text of plans; of one that is made where it was recorded, ``null``."""
    return json.dumps([_plain_or_none(one) for one in plans]).encode()


def read_plans(text: bytes) -> list[GivenPlan | None]:
    """Returns the plans of a text; None: not to be made.

    Raises:
        MessageError: the text is none of plans.
    """
    try:
        content = json.loads(text)
        if not isinstance(content, list) or len(content) > _MOST_PLANS:
            raise MessageError("these are no plans")
        return [None if one is None else _plain(*one) for one in content]
    except MALFORMED as error:
        raise MessageError(f"these are no plans: {type(error).__name__}: {error}") from None


def _plain_or_none(given: GivenPlan) -> GivenPlan | None:
    try:
        return _plain(*given)
    except MALFORMED:
        return None


def _plain(size: Sequence[Any], plan: Mapping[str, Any]) -> GivenPlan:
    """Returns a plan of plain numbers. Raises ValueError, KeyError or TypeError for one that helpers do not make."""
    stages = plan["stages"]
    _require(len(stages) <= _MOST_PARTS and plan.keys() <= {"stages", "last", "erased"} and not plan.get("erased"))
    return _size(size), {"stages": [_stage(one) for one in stages], "last": _take(plan["last"], _TAKE)}


def _stage(given: Mapping[str, Any]) -> dict[str, Any]:
    made = _take(given, _STAGE)
    made["resize"] = resize = _size(given["resize"])
    _require(tuple(given.get("made", resize)) == resize)  # a warp makes another size
    if "filter" in given:
        _require(given["filter"] in _FILTERS and type(given["filter"]) in (int, str))
        made["filter"] = given["filter"]
    made["vertical_first"] = bool(given.get("vertical_first", False))
    effects = given.get("effects", ())
    _require(len(effects) <= _MOST_PARTS)
    made["effects"] = [_effect(*one) for one in effects]
    return made


def _take(given: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    _require(given.keys() <= names and given.get("pad_mode", 0) == 0)
    x, y, *size = given["box"]
    _require(max(abs(int(x)), abs(int(y))) <= _MOST_OFFSET)
    made: dict[str, Any] = {"box": (int(x), int(y), *_size(size))}
    made.update({name: True for name in _FLAGS if given.get(name)})
    if "fill" in given:
        red, green, blue = (int(one) for one in given["fill"])
        _require(all(0 <= one <= 255 for one in (red, green, blue)))
        made["fill"] = red, green, blue
    return made


def _size(given: Sequence[Any]) -> tuple[int, int]:
    width, height = (int(one) for one in given)
    _require(0 < width <= _MOST_EDGE and 0 < height <= _MOST_EDGE and width * height <= _MOST_PIXELS)
    return width, height


def _effect(name: str, value: Any, *more: Any) -> tuple[Any, ...]:
    _require(name in (_TENSOR_EFFECTS if more else _EFFECTS))
    number = float(value)
    _require(math.isfinite(number) and abs(number) <= _MOST_FACTOR)
    if not more:
        return name, number
    flags, lanes = int(more[0]), int(more[1]) if len(more) == 2 else 0
    _require(0 <= flags < 8 and 0 <= lanes <= 16 and len(more) <= 2)
    return name, number, flags, lanes


def _require(holds: bool) -> None:
    if not holds:
        raise _NotPlain("it is not one that helpers make")

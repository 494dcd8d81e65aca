"""Every field of a step is read by the native core, or listed there as one that only Python reads."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest
import torch

import headrace._recipe.steps.steps as S
from headrace._base.native import core
from headrace._engine.image_engine import ImageEngine
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.recipe import Recipe

FLAT = (S.Invert(),)
#: A value for each field, by its name, or by class and name.
VALUES: dict[str, Any] = {
    "add": 3,
    "after": 0,
    "angle": 30.0,
    "aspect_p": 0.5,
    "bits": 4,
    "blended": True,
    "bottom": True,
    "bounds": (1.0,),
    "branches": (FLAT,),
    "center": (3.0, 4.0),
    "chains": (FLAT,),
    "channels": 3,
    "distortion": 0.5,
    "draw": 0,
    "drawn": 0,
    "expand": False,
    "factor": 0.5,
    "fewest": 1,
    "fill": (1, 2, 3),
    "filter": "bilinear",
    "finishes": False,
    "function": None,
    "height": 40,
    "high": 60,
    "least": 1,
    "longest": 0.0,
    "low": 50,
    "matrix": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
    "max_size": 90,
    "metadata": True,
    "most": 2,
    "name": "step",
    "noise": "",
    "of_area": False,
    "of_longer": True,
    "order": (2, 1, 0),
    "p": 0.5,
    "patch": 4,
    "pad_if_needed": True,
    "padding": (1, 1, 1, 1),
    "padding_mode": "constant",
    "process_wide": False,
    "radius": 1.5,
    "ratio": (0.75, 1.33),
    "right": True,
    "rounding": S.Rounding(False, False, False),
    "scale": (0.1, 1.0),
    "scale_p": 0.5,
    "size": 40,
    "softmax": False,
    "steps": FLAT,
    "threshold": 128.0,
    "value": (1.0, 2.0, 3.0),
    "version": 2,
    "width": 46,
    "CenterCrop.rounding": "even",
    "FitPatches.most": 99,
    "Call.size": None,
}


def classes() -> list[type]:
    """All kinds of steps but Texture, which the core takes from the recipe itself."""
    return [one for one in get_args(S.Step) if one is not S.Texture]


def step_of(cls: type) -> Any:
    given = {one.name: VALUES.get(f"{cls.__name__}.{one.name}", VALUES[one.name]) for one in dataclasses.fields(cls)}
    return cls(**given)


def engine(step: Any) -> None:
    """Hands the step to the native core."""
    erased = torch.zeros(1, 3, dtype=torch.uint8) if isinstance(step, (S.Erase, S.EraseBoxes)) else None
    lut = torch.arange(256, dtype=torch.uint8).expand(3, 256).contiguous()
    recipe = Recipe((step,), (Column(),) * 40, 46, 40, 3, Pointwise((), None), lut, erased=erased)
    if isinstance(step, S.Call):
        samples: dict[str, Any] = {"layout": "planar", "max_pixels": 0, "pass_order": "horizontal_first"}
        core.Pipeline(recipe, lut.numpy(), threads=0, slots_kept=1, isa="", backend=None, **samples).close()
    else:
        ImageEngine(recipe, Layout.PLANAR, threads=0, slots_kept=1).close()


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_the_core_reads_every_field(cls: type) -> None:
    step = step_of(cls)
    engine(step)
    wider = dataclasses.make_dataclass(cls.__name__, [("sharper", int, 1)], bases=(cls,), frozen=True)
    with pytest.raises(TypeError, match=f"does not read the field sharper of the step {cls.__name__}"):
        engine(wider(**{one.name: getattr(step, one.name) for one in dataclasses.fields(cls)}))


@pytest.mark.parametrize("cls", [S.RandomResizedCrop, S.GaussianBlur, S.Rotate, S.Erase])
def test_the_core_lists_no_field_that_is_not_there(cls: type) -> None:
    step = step_of(cls)
    listed = {S.RandomResizedCrop: "scale", S.GaussianBlur: "softmax", S.Rotate: "angle", S.Erase: "after"}[cls]
    values = {one.name: getattr(step, one.name) for one in dataclasses.fields(cls) if one.name != listed}
    body = {"turn": step.turn} if cls is S.Rotate else {}
    smaller = dataclasses.make_dataclass(cls.__name__, list(values), namespace=body, frozen=True)
    with pytest.raises(TypeError, match=f"the step {cls.__name__} has no field {listed}, which the native core lists"):
        engine(smaller(**values))

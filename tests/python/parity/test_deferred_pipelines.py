"""Pipelines as people write them deliver the same with torch's DataLoader when Pillow opens images deferred."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pipelines.alike import difference
from pipelines.material import Material
from pipelines.registry import PIPELINES, Pipeline
from pipelines.running import observe
from test_pipelines import assert_delivers, material, odd_files, skip_without_its_package
from torch.utils.data import DataLoader

import headrace
from headrace._loading.doors.type_checks import checks
from headrace.pillow.deferred_image import is_deferred
from support import silent_pillow

__all__ = ["material", "odd_files"]  # fixtures


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_deferred_images_deliver_what_pillows_do(
    pipeline: Pipeline, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_its_package(pipeline)
    assert_parity(pipeline, material, monkeypatch)


def test_odd_and_broken_files(odd_files: Pipeline, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    with silent_pillow():
        assert_parity(odd_files, material, monkeypatch)


def assert_parity(pipeline: Pipeline, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = observe(pipeline, DataLoader, material, 0)
    assert_delivers(theirs, pipeline)
    opened: list[bool] = []
    # `difference` compares classes with `is`; the tensors of a program that does are not deferred.
    monkeypatch.setattr(checks, "look", lambda: "difference")
    with headrace.pillow.deferred(), monkeypatch.context() as patch:
        deferring = Image.open

        def counted(*args: Any, **options: Any) -> Any:
            image = deferring(*args, **options)
            opened.append(is_deferred(image))
            return image

        patch.setattr(Image, "open", counted)
        ours = observe(pipeline, DataLoader, material, 0)
        found = difference(ours, theirs)
    assert not found, found
    assert any(opened) is pipeline.opens


def test_attributes_of_a_loaded_file(photographs: list[Path]) -> None:
    seen = []
    for open_ in (headrace.pillow.open, Image.open):
        image = open_(photographs[1])
        image.load()
        assert image.im is not None
        seen.append(vars(image).keys())
    assert seen[0] == seen[1]


def text_of_the_error(call: Callable[[Any], Any], image: Any) -> str:
    try:
        return repr(call(image))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "call",
    [
        lambda image: type(image).__name__,
        lambda image: type(image.convert("RGB")).__module__,
        lambda image: hash(image),
        lambda image: image.crop((0, 0, 9, 9)).filename,
        lambda image: type(image.load()).__name__,
    ],
    ids=["name", "module", "hash", "attribute", "pixel access"],
)
def test_names_of_classes(call: Callable[..., Any], photographs: list[Path]) -> None:
    with headrace.pillow.open(photographs[1]) as ours, Image.open(photographs[1]) as theirs:
        assert text_of_the_error(call, ours) == text_of_the_error(call, theirs)

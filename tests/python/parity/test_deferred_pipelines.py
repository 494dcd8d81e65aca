"""Pipelines as people write them deliver the same with torch's DataLoader when Pillow opens images deferred."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image
from torch.utils.data import DataLoader

import headrace
from headrace.pillow.deferred_image import DeferredJpeg
from pipelines.alike import difference
from pipelines.registry import PIPELINES
from pipelines.running import observe
from test_pipelines import assert_delivers, material, skip_without_its_package

__all__ = ["material"]  # a fixture


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_deferred_images_deliver_what_pillows_do(pipeline, material, monkeypatch):
    skip_without_its_package(pipeline)
    theirs = observe(pipeline, DataLoader, material, 0)
    assert_delivers(theirs, pipeline)
    opened: list[type] = []
    with headrace.pillow.deferred(), monkeypatch.context() as patch:
        deferring = Image.open

        def counted(*args: Any, **options: Any) -> Any:
            image = deferring(*args, **options)
            opened.append(type(image))
            return image

        patch.setattr(Image, "open", counted)
        ours = observe(pipeline, DataLoader, material, 0)
        assert difference(ours, theirs) is None
    assert (DeferredJpeg in opened) is pipeline.opens

"""What every engine and the oracle make of one image with given draws, compared with expected pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from PIL import Image

from headrace._base.native import core
from headrace._engine import destination, device_engine
from headrace._engine.image_engine import ImageEngine
from headrace._oracle.reference import reference_sample
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.sources.arrays import ImageArray
from support import in_host_memory


def engines(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    """Every engine that this machine and build have, by name."""
    for isa in core.isas():
        yield isa, ImageEngine(recipe, Layout.PLANAR, threads=0, slots_kept=1, isa=isa)
    if destination.import_gpu_module()[0] is not None:
        emulated = destination.resolve_destination(destination.EMULATED, "cpu")
        yield "emulated", device_engine.make_engine(recipe, Layout.PLANAR, emulated, threads=0, slots_kept=1)


def assert_made(recipe: Recipe, image: Image.Image, rows: list[list[float]], expected: list[torch.Tensor]) -> None:
    """Asserts that the native core, in each instruction set and on the emulated device, and the oracle make these
    pixels of these draws."""
    for name, engine in engines(recipe):
        flight = engine.submit(
            ImageArray(np.asarray(image)[None]).blob_table(), np.zeros(len(rows), int), np.array(rows)
        )
        assert engine.wait(flight, 60) and engine.failures(flight) == []
        made = in_host_memory(engine.tensor(flight))
        for row, native, want in zip(rows, made, expected, strict=True):
            assert torch.equal(native, want), (name, image.size, row)
    for row, want in zip(rows, expected, strict=True):
        assert torch.equal(reference_sample(image, recipe, row), want)

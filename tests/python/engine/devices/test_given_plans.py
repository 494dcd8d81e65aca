"""Batches whose samples have plans in place of draws: on the emulated device and in this machine's memory."""

from __future__ import annotations

import gc
import io
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._base.native import core
from headrace._engine.destination import resolve_destination
from headrace._engine.device_engine import make_engine
from headrace._engine.image_engine import ImageEngine
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.recipe import Recipe
from support import in_host_memory, pictures

WIDTH, HEIGHT = 12, 10
TABLE = torch.arange(256, dtype=torch.float32).repeat(3, 1)


@pytest.fixture(params=["emulated", None])
def engine(request: pytest.FixtureRequest) -> Iterator[ImageEngine]:
    recipe = Recipe((), (), HEIGHT, WIDTH, 3, Pointwise((), torch.float32), TABLE)
    destination = resolve_destination(request.param, "auto")
    made = make_engine(recipe, Layout.PLANAR, destination, threads=2, slots_kept=2)
    assert isinstance(made, ImageEngine)
    yield made
    made.close()


def size_of(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


def plan_at(x: int, y: int, *, flip: bool = False) -> dict[str, Any]:
    return {"stages": [], "last": {"box": (x, y, WIDTH, HEIGHT), "flip_horizontal": flip}}


def made_by(engine: ImageEngine, files: list[bytes], plans: list[Any]) -> Any:
    flight = engine.submit_plans(core.BlobTable.of_memory(files), plans)
    while not engine.wait(flight, 1.0):
        pass
    failures = engine.failures(flight)
    return failures or in_host_memory(engine.tensor(flight))


def test_each_sample_has_the_crop_of_its_plan(engine: ImageEngine) -> None:
    files = list(pictures(4, 40))
    plans = [(size_of(data), plan_at(i, 2 * i, flip=i % 2 == 1)) for i, data in enumerate(files)]
    batch = made_by(engine, files, plans)
    for i, data in enumerate(files):
        box = i, 2 * i, i + WIDTH, 2 * i + HEIGHT
        wanted = np.asarray(Image.open(io.BytesIO(data)).convert("RGB").crop(box))
        wanted = wanted[:, ::-1] if i % 2 == 1 else wanted
        assert torch.equal(batch[i], torch.from_numpy(wanted.copy()).permute(2, 0, 1).float())


def test_a_plan_for_an_image_of_another_size_fails_alone(engine: ImageEngine) -> None:
    files = list(pictures(3, 40))
    plans = [(size_of(data), plan_at(0, 0)) for data in files]
    plans[1] = (9999, 9999), plans[1][1]
    failures = made_by(engine, files, plans)
    assert [(one.sample, one.stage) for one in failures] == [(1, "plan")]
    assert failures[0].reason == "the plan of this sample is for an image of another size"


def test_plans_that_do_not_fit_are_refused(engine: ImageEngine) -> None:
    data = pictures(1, 40)[0]
    table = core.BlobTable.of_memory([data])
    other = {"stages": [], "last": {"box": (0, 0, WIDTH + 1, HEIGHT)}}
    with pytest.raises(ValueError, match="another size than the batch's"):
        engine.submit_plans(table, [(size_of(data), other)])
    none, rows = np.empty((2, 0)), np.zeros(2, np.int64)
    memory = torch.empty((2, 3, HEIGHT, WIDTH))
    with pytest.raises(ValueError, match="a plan for each sample"):
        engine._pipeline.submit(table, rows, none, memory, 0, [(size_of(data), plan_at(0, 0))])
    with pytest.raises(ValueError, match="needs memory"):
        engine._pipeline.submit(table, rows, none, None, 0, [(size_of(data), plan_at(0, 0))] * 2)


def test_a_batch_with_plans_is_not_repaired(engine: ImageEngine) -> None:
    data = pictures(1, 40)[0]
    flight = engine.submit_plans(core.BlobTable.of_memory([data]), [(size_of(data), plan_at(0, 0))])
    while not engine.wait(flight, 1.0):
        pass
    with pytest.raises(RuntimeError, match="not repaired"):
        engine.repair(flight, [0], core.BlobTable.of_memory([data]), np.zeros(1, np.int64), np.empty((1, 0)))


def test_the_files_of_a_batch_are_let_go_with_it(engine: ImageEngine) -> None:
    """Those of other tables stay as long as the threads."""
    data = np.frombuffer(pictures(1, 40)[0], np.uint8).copy()
    gone = weakref.ref(data)
    made = made_by(engine, [data], [(size_of(data.tobytes()), plan_at(0, 0))])  # type: ignore[list-item]
    assert isinstance(made, torch.Tensor)
    del data
    gc.collect()
    assert gone() is None

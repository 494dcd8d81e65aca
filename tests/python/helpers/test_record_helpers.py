"""Helpers of a loader with a program's own dataset: they make what its code has recorded in torch's workers."""

from __future__ import annotations

import io
import json
import math
import random
import time
from typing import Any

import numpy as np
import pytest
import torch
from helper_servers import address_of, ended, helper, started_process
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, default_collate

from headrace import DataLoader
from headrace._base.messages import PerformanceWarning
from headrace._engine.image_engine import ImageEngine
from headrace._helpers import helper_lane
from headrace._helpers.messages import MessageError, Order
from headrace._helpers.order_engine import OrderEngine, planned_probe_of
from headrace._helpers.plan_text import read_plans, write_plans
from headrace._helpers.requests import order_of
from headrace._loading.doors.type_checks import checks
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.recipe import Recipe
from support import pictures, same

pytestmark = pytest.mark.processes
COUNT = 64
PHOTOGRAPHS = [one for number, one in enumerate(pictures(20, 200)) if number % 12 not in (3, 5)]  # not Pillow's
_PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers take all samples but one: small ones are made here before an answer arrives."""
    monkeypatch.setattr(helper_lane.HelperLane, "_samples_made_here", lambda self, seconds: 1)
    monkeypatch.setattr(checks, "look", lambda: None)  # other tests in this process compare types with `is`


class Own(Dataset[Any]):
    """(image, index) of files whose bytes only the worker has; one is damaged, which Pillow notices as it decodes."""

    def __init__(self, transform: Any, damaged: int | None = None) -> None:
        self.files = list(PHOTOGRAPHS) * (COUNT // len(PHOTOGRAPHS))
        if damaged is not None:
            self.files[damaged] = self.files[damaged][: len(self.files[damaged]) // 2]
        self.transform = transform

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(io.BytesIO(self.files[index])).convert("RGB")), index


class Pair(Own):
    """Two outputs of different sizes, of two files: each has an engine."""

    small: Any

    def __getitem__(self, index: int) -> Any:
        image, _ = super().__getitem__(index)
        return {"image": image, "small": self.small(Image.open(io.BytesIO(self.files[index - 1])).convert("RGB"))}


def epoch(loader: Any) -> list[Any]:
    torch.manual_seed(5)
    random.seed(6)
    return list(loader)


def assert_helped(dataset: Any, *addresses: str, least: int = 20, **options: Any) -> DataLoader[Any]:
    """Asserts that batches are torch's, and that each helper has made samples."""
    given_: dict[str, Any] = {"batch_size": 8, "shuffle": True, "num_workers": 1, "prefetch_factor": 6, **options}
    theirs = TorchDataLoader(dataset, **given_)
    loader = DataLoader(dataset, helpers=list(addresses), **given_)
    made: dict[str, int] = dict.fromkeys(addresses, 0)
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        assert same(epoch(loader), epoch(theirs))
        for address, work in loader.stats().helpers.items():
            made[address] += work.samples
        if all(count >= least for count in made.values()):
            return loader
    raise AssertionError(f"a helper has made too little: {made}")


@pytest.fixture
def steps(torchvision: Any) -> dict[str, Any]:
    """Transforms by name."""
    from torchvision import transforms as T
    from torchvision.transforms import InterpolationMode, v2

    end = [T.ToTensor(), T.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])]
    colours = [T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomSolarize(99)]
    crop = v2.RandomResizedCrop(64, interpolation=InterpolationMode.BICUBIC, antialias=True)
    return {
        "training": T.Compose([T.RandomResizedCrop(96), T.RandomHorizontalFlip(), *end]),
        "evaluation": T.Compose([T.Resize(120), T.CenterCrop(96), *end]),
        "gray": T.Compose([T.RandomResizedCrop(64), T.Grayscale(), T.ToTensor()]),
        "colours": T.Compose([T.RandomResizedCrop(64), *colours, *end]),
        "blur": T.Compose([T.RandomResizedCrop(64), T.RandomApply([T.GaussianBlur(5)], 0.5), *end]),
        "erased": T.Compose([T.RandomResizedCrop(64), *end, T.RandomErasing(0.5)]),
        "small": T.Compose([T.Resize((32, 40)), T.ToTensor()]),
        "tensors": v2.Compose([v2.ToImage(), crop, v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]),
    }


NAMES = "training", "evaluation", "gray", "colours", "blur", "erased", "tensors"


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_torchs(name: str, steps: dict[str, Any]) -> None:
    with helper() as server:
        loader = assert_helped(Own(steps[name]), address_of(server))
        assert loader.route == "deferred"
        assert "make what the threads here would make last" in str(loader.explain())


def test_several_helpers(steps: dict[str, Any]) -> None:
    with helper() as first, helper(2) as second:
        assert_helped(Own(steps["training"]), address_of(first), address_of(second), num_workers=2)


def test_several_engines_share_a_helper(steps: dict[str, Any]) -> None:
    data = Pair(steps["training"])
    data.small = steps["small"]
    with helper(2) as server:
        assert_helped(data, address_of(server), persistent_workers=True)


def error_of(loader: Any) -> tuple[type[BaseException], str]:
    """Class and last line of the error that an epoch ends in."""
    try:
        epoch(loader)
    except OSError as error:
        return type(error), str(error).strip().splitlines()[-1]
    raise AssertionError("no error")


def test_a_damaged_file_is_this_machines(steps: dict[str, Any]) -> None:
    dataset = Own(steps["training"], damaged=3)
    with helper() as server:
        ours = error_of(DataLoader(dataset, 8, num_workers=1, helpers=[address_of(server)]))
    assert ours == error_of(TorchDataLoader(dataset, 8, num_workers=1))


def test_a_helper_that_is_killed(steps: dict[str, Any]) -> None:
    process, port = started_process()
    try:
        dataset, address = Own(steps["training"]), f"127.0.0.1:{port}"
        expected = epoch(TorchDataLoader(dataset, 8, num_workers=1))
        assert_helped(dataset, address)
        loader = DataLoader(dataset, 8, num_workers=1, prefetch_factor=6, helpers=[address])
        torch.manual_seed(5)
        random.seed(6)
        batches = []
        for number, batch in enumerate(loader):
            batches.append(batch)
            if number == 1:
                process.kill()
        assert same(batches, expected)
    finally:
        ended(process)


def test_a_device_makes_its_batches_itself(steps: dict[str, Any]) -> None:
    """With a helper that answers."""
    dataset = Own(steps["training"])
    options: dict[str, Any] = {"batch_size": 8, "num_workers": 1, "prefetch_factor": 6}
    with helper() as server:
        loader = DataLoader(dataset, helpers=[address_of(server)], device="emulated", **options)
        with pytest.warns(PerformanceWarning, match="helpers have no effect: batches are made on a device"):
            batches = epoch(loader)
        assert same(batches, epoch(TorchDataLoader(dataset, **options)))
        assert not loader.stats().helpers and not server.samples
        loader.close()


def test_what_is_not_sent_is_said(steps: dict[str, Any]) -> None:
    dataset = Own(steps["training"])
    for options, why in (
        ({"num_workers": 0}, "num_workers=0"),
        ({"num_workers": 1, "collate_fn": lambda samples: default_collate(samples)}, "collate_fn is the program's"),
        ({"num_workers": 1, "device": "emulated"}, "batches are made on a device"),
    ):
        loader = DataLoader(dataset, 8, helpers=["127.0.0.1:9"], **options)
        with pytest.warns(PerformanceWarning, match=f"helpers have no effect: .*{why}"):
            next(iter(loader))
        assert f"no sample is made on another machine: {why}" in " ".join(str(loader.explain()).split())
        loader.close()


RECIPE = Recipe((), (), 24, 32, 3, Pointwise((), torch.float32), torch.arange(256.0).repeat(3, 1))
JPEG = pictures(1, 60)[0]
SIZE = Image.open(io.BytesIO(JPEG)).size
FILTERS = (*range(-1, 16), "tensor_bilinear", "fused_bicubic", "opencv_bilinear", "none", None)
EFFECTS = "Gray", "Hue", "Posterize", "Sharpness", "PermuteChannels", "TensorHue", "TensorContrast", "Blur", "Warp"
NUMBERS = 0.0, 0.3, -2.0, 1e9, math.nan, math.inf, 255, "1", None


def make_take(draw: random.Random) -> dict[str, Any]:
    made = {"box": (draw.randint(-80, 90), draw.randint(-80, 90), draw.randint(0, 80), draw.randint(1, 80))}
    others = {
        "flip_horizontal": draw.random() < 0.5,
        "gray": draw.random() < 0.5,
        "fill": tuple(draw.randint(0, 256) for _ in range(3)),
        "pad_mode": draw.randint(0, 4),
        "unknown": 1,
    }
    return made | {name: value for name, value in others.items() if draw.random() < 0.1}


def make_effect(draw: random.Random) -> tuple[Any, ...]:
    flags = [draw.randint(-1, 8)] * draw.choice([0, 1, 1, 2, 3])
    return draw.choice(EFFECTS), draw.choice(NUMBERS), *flags


def make_plan(draw: random.Random) -> Any:
    """A plan for `JPEG`, which may be wrong."""
    stages = []
    for _ in range(draw.randint(0, 3)):
        size = draw.randint(0, 70), draw.randint(1, 70)
        others = {
            "filter": draw.choice(FILTERS),
            "made": draw.choice([size, (9, 9)]),
            "vertical_first": draw.random() < 0.5,
            "effects": [make_effect(draw) for _ in range(draw.randint(0, 2))],
        }
        kept = {name: value for name, value in others.items() if draw.random() < 0.5}
        stages.append({**make_take(draw), "resize": size, **kept})
    last = make_take(draw) if draw.random() < 0.1 else {"box": (draw.randint(-9, 9), 2, 32, 24)}
    return draw.choice([SIZE, SIZE, SIZE, (60, 9999)]), {"stages": stages, "last": last}


@pytest.fixture(scope="module")
def engine() -> Any:
    native = ImageEngine(RECIPE, Layout.PLANAR, threads=0, slots_kept=0)
    order, finished = order_of(native)
    assert not finished
    made = OrderEngine(Order.from_json(order), 0)
    yield made
    made.close()
    native.close()


def test_any_plan_is_made_left_or_refused(engine: Any) -> None:
    """Nothing else happens: what is made of one is what it makes alone."""
    outcomes = {"refused": 0, "left": 0, "made": 0}
    sizes, files = np.array([len(JPEG)] * 3), np.frombuffer(JPEG * 3, np.uint8)
    for seed in range(300):
        draw = random.Random(seed)
        text = write_plans([make_plan(draw) for _ in sizes])
        assert len(json.loads(text)) == len(sizes)
        try:
            samples, made, _ = engine.make_planned(np.frombuffer(text, np.uint8), sizes, files)
        except ValueError as error:
            assert "makes another size" in str(error) or "a plan is none" in str(error)
            outcomes["refused"] += 1
            continue
        for sample, done, plan in zip(samples.reshape(len(sizes), -1), made, read_plans(text), strict=True):
            outcomes["made" if done else "left"] += 1
            if done:
                assert plan is not None
                alone = np.frombuffer(write_plans([plan]), np.uint8)
                again, *_ = engine.make_planned(alone, sizes[:1], files[: len(JPEG)])
                assert np.array_equal(again.reshape(-1), sample)
    assert min(outcomes.values()) > 30, outcomes


TEXTS = st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps).map(str.encode)


@given(st.binary(max_size=60) | TEXTS)
def test_other_texts_are_refused(text: bytes) -> None:
    try:
        found = read_plans(text)
    except MessageError:
        return
    assert found == [None] * len(found)


def test_plans_that_do_not_fit_are_refused(engine: Any) -> None:
    request, truth = planned_probe_of(order_of(engine)[0])
    assert truth[1].all()
    text, sizes, files = request
    for wrong in (
        (text[:-1], sizes, files),
        (np.frombuffer(b"[]", np.uint8), sizes, files),
        (text, sizes[:2], files),
        (text, sizes + 1, files),
        (text, -sizes, files),
        (text, sizes.reshape(1, -1), files),
        (np.frombuffer(b"[]", np.uint8), sizes[:0], files[:0]),
    ):
        with pytest.raises(MessageError):
            engine.make_planned(*wrong)

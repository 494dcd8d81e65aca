"""Crop boxes follow torchvision's algorithms exactly, and its distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace._lowering import lower
from headrace._recipe.arithmetic import boxes
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S
from headrace.transforms import CenterCrop, Compose, RandomHorizontalFlip, RandomResizedCrop, ToTensor
from torchvision_feed import FedTorch, Feeder

edges = st.integers(1, 400)
uniforms = st.floats(0, 1, exclude_max=True)
repeated = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


class Sized(Image.Image):
    """An image with a size and no pixels: torchvision's get_params reads only the size and the bands."""

    mode = "RGB"

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self._size = width, height
        vars(self).pop("mode", None)  # Pillow 10.0 keeps it there


@pytest.fixture
def fed(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> FedTorch:
    return Feeder(monkeypatch).torch


# (scale, ratio): the default, small areas, fall-backs for too narrow and too wide images, and areas that never fit.
@pytest.mark.parametrize(
    ("scale", "ratio"),
    [
        ((0.08, 1.0), (3 / 4, 4 / 3)),
        ((0.001, 0.01), (0.1, 10.0)),
        ((0.9, 1.0), (2.0, 3.0)),
        ((0.9, 1.0), (0.3, 0.5)),
        ((1.5, 9.0), (0.5, 2.0)),
    ],
)
@repeated
@given(height=edges, width=edges, index=st.integers(0, 2**40))
def test_random_resized_crop_box_is_torchvisions(
    torchvision: ModuleType,
    fed: FedTorch,
    scale: tuple[Any, ...],
    ratio: tuple[Any, ...],
    height: int,
    width: int,
    index: int,
) -> None:
    recipe = lower(Compose([RandomResizedCrop(8, scale, ratio), ToTensor()]))
    row = Draws(recipe.columns, 0).batch(0, [index], [0])[0]
    ours = boxes.random_resized_crop(
        height,
        width,
        ratio,
        list(zip(row[0:20:2], row[1:20:2], strict=True)),
        boxes.position_from(row[20]),
        boxes.position_from(row[21]),
    )
    image = Sized(height, width)
    fed.feed(recipe.steps[0], row)
    assert tuple(ours) == torchvision.transforms.RandomResizedCrop.get_params(image, scale, ratio)
    fed.feed(recipe.steps[0], row)
    v2 = torchvision.transforms.v2.RandomResizedCrop(8, scale, ratio).make_params([image])
    assert ours._asdict() == v2


@repeated
@given(
    height=edges,
    width=edges,
    crop=st.tuples(edges, edges),
    padding=st.none() | st.tuples(*[st.integers(0, 40)] * 4),
    needed=st.booleans(),
    top=uniforms,
    left=uniforms,
)
def test_random_crop_box_is_torchvisions(
    torchvision: ModuleType,
    fed: FedTorch,
    height: int,
    width: int,
    crop: tuple[int, int],
    padding: tuple[int, int, int, int] | None,
    needed: bool,
    top: float,
    left: float,
) -> None:
    v2 = torchvision.transforms.v2.RandomCrop(crop, padding and list(padding), needed)
    borders = padding or (0, 0, 0, 0)
    full_height = height + borders[1] + borders[3]
    if needed:
        full_height += 2 * max(crop[0] - full_height, 0)
    # torchvision draws no number for an edge with only one position.
    fed._places = [top, left] if full_height > crop[0] else [left]

    def ours() -> Any:
        return boxes.random_crop(
            height, width, *crop, borders, needed, boxes.position_from(top), boxes.position_from(left)
        )

    try:
        expected = v2.make_params([Sized(height, width)])
    except ValueError as error:
        if padding is None or any(padding):  # for zero padding given explicitly torchvision says "padded"
            with pytest.raises(ValueError) as raised:
                ours()
            assert str(raised.value) == str(error)
        return
    made_padding, box = ours()
    assert list(made_padding) == expected["padding"]
    assert box._asdict() == {key: expected[key] for key in ("top", "left", "height", "width")}


# (scale, ratio): the default, boxes of no pixels, and areas that rarely or never fit.
@pytest.mark.parametrize(
    ("scale", "ratio"),
    [((0.02, 0.33), (0.3, 3.3)), ((0.0, 0.001), (0.3, 3.3)), ((0.8, 1.0), (0.1, 10.0)), ((1.0, 1.0), (1.0, 1.0))],
)
@repeated
@given(height=edges, width=edges, index=st.integers(0, 2**40))
def test_random_erase_box_is_torchvisions(
    torchvision: ModuleType,
    fed: FedTorch,
    scale: tuple[Any, ...],
    ratio: tuple[Any, ...],
    height: int,
    width: int,
    index: int,
) -> None:
    erasing = torchvision.transforms.v2.RandomErasing(1.0, scale, ratio)
    recipe = lower(Compose([CenterCrop(8), ToTensor(), erasing]))
    row = Draws(recipe.columns, 0).batch(0, [index], [0])[0].tolist()
    ours = boxes.random_erase(
        height,
        width,
        list(zip(row[1:21:2], row[2:21:2], strict=True)),
        boxes.position_from(row[21]),
        boxes.position_from(row[22]),
    )
    image = torch.empty(3, height, width, device="meta")
    for made in (
        lambda: erasing.make_params([image]),
        lambda: dict(zip("ijhwv", erasing.get_params(image, scale, ratio, [0.0]), strict=True)),
    ):
        fed._tries, fed._places = row[1:21], row[21:]
        theirs = made()
        if ours is None:
            assert theirs["v"] is None or theirs["v"] is image
        else:
            assert tuple(ours) == tuple(theirs[name] for name in "ijhw")


@repeated
@given(height=edges, width=edges, size=st.none() | edges, max_size=st.none() | edges)
def test_resized_size_is_torchvisions(
    torchvision: ModuleType, height: int, width: int, size: int | None, max_size: int | None
) -> None:
    compute = torchvision.transforms.v2.functional._geometry._compute_resized_output_size
    try:
        expected = compute((height, width), None if size is None else [size], max_size)
    except ValueError as error:
        with pytest.raises(ValueError) as raised:
            boxes.resize_by_edge(height, width, size, max_size)
        assert str(raised.value) == str(error)
    else:
        assert list(boxes.resize_by_edge(height, width, size, max_size)) == expected


@repeated
@given(height=edges, width=edges, crop=st.tuples(edges, edges))
def test_center_crop_box_is_torchvisions(
    torchvision: ModuleType, height: int, width: int, crop: tuple[int, int]
) -> None:
    geometry = torchvision.transforms.v2.functional._geometry
    padding, box = boxes.center_crop(height, width, *crop)
    if crop[0] > height or crop[1] > width:
        assert list(padding) == geometry._center_crop_compute_padding(*crop, height, width)
        height, width = height + padding.top + padding.bottom, width + padding.left + padding.right
    assert tuple(box[:2]) == geometry._center_crop_compute_crop_anchor(*crop, height, width)


@given(n=st.integers(1, 2**31), u=st.integers(0, 2**53 - 1))
def test_place_is_below_n(n: int, u: float) -> None:
    assert 0 <= boxes.position_from(u * 2.0**-53)(n) < n


COUNT = 100_000
HEIGHT, WIDTH = 375, 500
#: Probability that two samples of one distribution differ by more than the thresholds below.
ALPHA = 1e-6


def kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of the two empirical distribution functions."""
    values = np.concatenate([a, b])
    below = [np.searchsorted(np.sort(x), values, side="right") / len(x) for x in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


@pytest.fixture(scope="module")
def drawn_boxes(torchvision: ModuleType) -> tuple[np.ndarray, np.ndarray]:
    """(top, left, height, width) of 100,000 default crops: torchvision's, and headrace's."""
    image, v1 = Sized(HEIGHT, WIDTH), torchvision.transforms.RandomResizedCrop
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = np.array([v1.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(COUNT)])
    recipe = lower(Compose([RandomResizedCrop(224), ToTensor()]))
    rows = Draws(recipe.columns, 0).batch(0, np.arange(COUNT), np.zeros(COUNT)).tolist()
    ours = np.array(
        [
            boxes.random_resized_crop(
                HEIGHT,
                WIDTH,
                (3 / 4, 4 / 3),
                zip(row[0:20:2], row[1:20:2], strict=True),
                boxes.position_from(row[20]),
                boxes.position_from(row[21]),
            )
            for row in rows
        ]
    )
    return theirs, ours


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic",
    [
        pytest.param(lambda box: box[2] * box[3] / (HEIGHT * WIDTH), id="area"),
        pytest.param(lambda box: box[3] / box[2], id="ratio"),
        pytest.param(lambda box: box[0], id="top"),
        pytest.param(lambda box: box[1], id="left"),
        pytest.param(lambda box: box[0] / np.maximum(HEIGHT - box[2], 1), id="relative top"),
        pytest.param(lambda box: box[1] / np.maximum(WIDTH - box[3], 1), id="relative left"),
    ],
)
def test_boxes_are_distributed_as_torchvisions(
    drawn_boxes: tuple[np.ndarray, np.ndarray], statistic: Callable[..., Any]
) -> None:
    theirs, ours = (statistic(boxes.T) for boxes in drawn_boxes)
    # Smirnov's asymptotic tail, P(D > c sqrt(2 / n)) = 2 exp(-2 c^2); ties only make it smaller.
    threshold = math.sqrt(-math.log(ALPHA / 2) / 2) * math.sqrt(2 / COUNT)
    assert kolmogorov_smirnov(theirs, ours) < threshold


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_flips_happen_as_often_as_p_says(p: float) -> None:
    recipe = lower(Compose([RandomResizedCrop(4), RandomHorizontalFlip(p), ToTensor()]))
    step = recipe.steps[1]
    assert isinstance(step, S.HorizontalFlip)
    flipped = Draws(recipe.columns, 0).batch(0, np.arange(COUNT), np.zeros(COUNT))[:, step.draw] < step.p
    # Hoeffding: P(|share - p| > t) <= 2 exp(-2 n t^2); p of 0 and 1 are certain.
    assert abs(flipped.mean() - p) <= (p % 1 > 0) * math.sqrt(-math.log(ALPHA / 2) / (2 * COUNT))

"""torchvision's AugMix: pixels equal torchvision's own, fed with the draws; weights are distributed as torch's."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from aug_mix_ways import fed, operated, policy_of, recipe_of, ways
from PIL import Image

from headrace import DataLoader, Fields, ImageArray
from headrace._lowering import lower
from headrace._recipe.arithmetic import tensor_rule
from headrace._recipe.draws.draws import Draws
from headrace._recipe.draws.weights_from_draws import chain_weights
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps.draw_columns import SumWeights
from made_everywhere import assert_made

pytestmark = [pytest.mark.pixels, pytest.mark.slow, pytest.mark.usefixtures("native_tensors")]

COUNT = int(os.environ.get("HEADRACE_DRAWS", "20000"))
#: Above it, two samples of COUNT numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / COUNT) ** 0.5
#: Interpolation and fill.
OPTIONS = {
    "bilinear": ("bilinear", None),
    "nearest": ("nearest", None),
    "bilinear on gray": ("bilinear", 127.5),
    "nearest on gray": ("nearest", 127.5),
    "bilinear on a colour": ("bilinear", [255, 0.25, 60]),
}


@pytest.fixture(scope="module")
def drawings(images: list[Image.Image]) -> list[Image.Image]:
    """RGB and gray images: usual, tiny, long, of few colours; some of a number of values that is a multiple of 16."""
    even = [images[0].resize(size) for size in ((64, 48), (16, 4), (1, 16))]
    gray = [one.convert("L") for one in (even[0], images[5], images[6])]
    return [*even, *(images[i] for i in (4, 5, 6, 7)), *gray, Image.new("RGB", (16, 16), (200, 0, 55))]


def options(torchvision: ModuleType, case: str, image: Image.Image) -> dict[str, object]:
    name, fill = OPTIONS[case]
    fill = fill[:1] if isinstance(fill, list) and image.mode == "L" else fill
    return {"interpolation": torchvision.transforms.InterpolationMode(name), "fill": fill}


@pytest.mark.parametrize("case", OPTIONS)
def test_every_operation_magnitude_and_sign(
    T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], case: str
) -> None:
    for image in drawings:
        policy = policy_of(T, image, severity=9, mixture_width=1, chain_depth=1, **options(torchvision, case, image))
        recipe = recipe_of(T, policy, image)
        rows, expected = [], []
        for row, name, magnitude in ways(policy, image):
            rows.append(row)
            expected.append(operated(policy, pil_to_tensor(image)[None], name, magnitude)[0])
        assert len(rows) >= 7 * 18
        assert_made(recipe, image, rows, expected)


@pytest.mark.parametrize("arguments", [{}, {"severity": 1}, {"mixture_width": 2, "chain_depth": 4}, {"alpha": 0.3}])
def test_images_are_torchvisions(
    T: ModuleType, drawings: list[Image.Image], monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    for image in (drawings[0], drawings[4], drawings[7]):
        policy = policy_of(T, image, **arguments)
        recipe = recipe_of(T, policy, image)
        rows = Draws(recipe.columns, 3).batch(0, np.arange(12), np.zeros(12, np.int64)).tolist()
        expected = [pil_to_tensor(fed(policy, recipe, image, row, monkeypatch)) for row in rows]
        assert_made(recipe, image, rows, expected)


@pytest.mark.parametrize("all_ops", [True, False])
def test_in_a_recipe(T: ModuleType, imagenet_dev: Path, all_ops: bool) -> None:
    """With steps around it, and in two fields, whose columns are adjacent; metadata is lost."""
    steps = [T.RandomResizedCrop(64), T.AugMix(all_ops=all_ops), T.RandomHorizontalFlip(), T.PILToTensor()]
    pixels = np.random.default_rng(1).integers(0, 256, (48, 60, 72, 3), np.uint8)
    fields = {name: ImageArray(pixels, list(range(48)), transform=T.Compose(steps)) for name in "ab"}
    for dataset in (fields["a"], Fields(fields)):
        loader = DataLoader(dataset, 16, shuffle=True, seed=5, num_workers=2)
        assert loader.native and "called in" not in str(loader.explain())
        assert loader.verify(3).batches == 3


def test_policies_of_the_second_version_on_odd_sizes(torchvision: ModuleType) -> None:
    """torch rounds the last values of Contrast in a mixed way where it fuses, so such sizes are Python's."""
    v2 = torchvision.transforms.v2
    steps = v2.Compose([v2.AugMix(), v2.PILToTensor()])
    if tensor_rule.is_rounding_uniform(3 * 9 * 9):
        assert lower(steps, size=(9, 9), native_only=True).steps
    else:
        with pytest.raises(TypeError, match="multiple of 16"):
            lower(steps, size=(9, 9), native_only=True)
    lower(v2.Compose([v2.AugMix(all_ops=False), v2.PILToTensor()]), size=(9, 9), native_only=True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"alpha": 0.1}, "alpha is no finite float"),
        ({"alpha": 1}, "alpha is no finite float"),
        ({"mixture_width": 0}, "mixes 0 operations"),
        ({"mixture_width": 40}, "mixes 120 operations"),
        ({"fill": [1, 2]}, "not one value from 0 to 255"),
        ({"fill": 300}, "not one value from 0 to 255"),
        ({"interpolation": 3}, "filter bicubic"),
    ],
)
def test_refused(T: ModuleType, torchvision: ModuleType, arguments: dict[str, Any], reason: str) -> None:
    if "interpolation" in arguments:
        arguments = {"interpolation": torchvision.transforms.InterpolationMode.BICUBIC}
    with pytest.raises(TypeError, match=reason):
        lower(T.Compose([T.AugMix(**arguments), T.PILToTensor()]), size=(16, 16), native_only=True)


@pytest.mark.parametrize(("size", "reason"), [(None, "size of the image is not known"), ((300, 300), "sums up 90000")])
def test_refused_sizes(T: ModuleType, size: tuple[Any, ...] | None, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        lower(T.Compose([T.AugMix(), T.CenterCrop(8), T.PILToTensor()]), size=size, native_only=True)


def test_a_changed_policy_stays_in_python(T: ModuleType) -> None:
    """A subclass, and torchvision's own hook for tests."""
    other = type("AugMix", (T.AugMix,), {})()
    replaced = T.AugMix()
    replaced._sample_dirichlet = lambda params: torch.full_like(params, 0.5)
    for policy, reason in ((other, "subclass"), (replaced, "replaced method")):
        with pytest.raises(TypeError, match=reason):
            lower(T.Compose([policy, T.PILToTensor()]), size=(16, 16), native_only=True)


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    at = np.sort(np.concatenate([ours, theirs]))
    below = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (ours, theirs)]
    return float(np.abs(below[0] - below[1]).max())


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
def test_weights_are_distributed_as_torchs(T: ModuleType, alpha: float) -> None:
    generator = torch.Generator().manual_seed(8)
    drawn = np.random.Generator(np.random.Philox(7)).random(COUNT)
    ours = chain_weights(SumWeights(0, 1, 3, alpha), drawn)
    shares, others = (torch._sample_dirichlet(torch.full((COUNT, n), alpha), generator) for n in (2, 3))
    theirs = torch.cat((others * shares[:, 1:], shares[:, :1]), dim=1).double().numpy()
    wrong = chain_weights(SumWeights(0, 1, 3, alpha * 1.3), drawn)
    for column in range(4):
        assert distance(ours[:, column], theirs[:, column]) < MOST < distance(wrong[:, column], theirs[:, column])
    assert np.allclose(ours.sum(axis=1), 1, atol=1e-6)
    assert ours.max() < 1  # torch never draws a share of 1, which would keep bytes that it rounds down

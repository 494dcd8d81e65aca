"""The draws of rotations, affine maps and perspectives are distributed as torchvision's parameters are."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from buffered_torch import DRAWS, buffer_torchvision

from headrace import transforms as T
from headrace._lowering import lower
from headrace._recipe.arithmetic import warps
from headrace._recipe.draws.draws import Draws

#: Above it, two samples of DRAWS numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / DRAWS) ** 0.5


def draws_of(transform: Any, size: tuple[int, int] = (40, 60), count: int = DRAWS) -> np.ndarray:
    recipe = lower(T.Compose([transform, T.PILToTensor()]), size=size, native_only=True)
    return Draws(recipe.columns, 3).batch(0, np.arange(count), np.zeros(count, np.int64))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference between the distribution functions of two samples."""
    at = np.sort(np.concatenate([a, b]))
    below = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def affine_parameters(draws: np.ndarray, width: int, height: int) -> np.ndarray:
    """Rows of angle, shift, scale and shears."""
    return np.column_stack([draws[:, 0], np.rint(draws[:, 1] * width), np.rint(draws[:, 2] * height), draws[:, 3:6]])


def test_parameters_of_affine_maps_are_torchvisions(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer_torchvision(monkeypatch)
    arguments = (-30, 45), (0.2, 0.05), (0.5, 1.5), (-10, 10, 3, 30)
    ours = affine_parameters(draws_of(T.RandomAffine(*arguments)), 60, 40)
    get_params = torchvision.transforms.RandomAffine.get_params
    drawn = [get_params(*[list(one) for one in arguments], [60, 40]) for _ in range(DRAWS)]
    theirs = np.array([(angle, *shift, scale, *shear) for angle, shift, scale, shear in drawn])
    for column in range(6):
        assert distance(ours[:, column], theirs[:, column]) < MOST, column
    assert set(ours[:, 2]) == set(theirs[:, 2]) == {-2.0, -1.0, 0.0, 1.0, 2.0}


def test_other_distributions_would_be_noticed() -> None:
    ours = affine_parameters(draws_of(T.RandomAffine((-30, 45), (0.2, 0.05))), 60, 40)
    for other in (T.RandomAffine((-25, 45), (0.2, 0.05)), T.RandomAffine((-30, 45), (0.17, 0.05))):
        theirs = affine_parameters(draws_of(other), 60, 40)
        assert max(distance(ours[:, column], theirs[:, column]) for column in (0, 1)) > MOST
    truncated = np.trunc(draws_of(T.RandomAffine((-30, 45), (0.2, 0.05)))[:, 2] * 40)
    assert distance(ours[:, 2], truncated) > MOST


def test_angles_of_rotations_are_torchvisions(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer_torchvision(monkeypatch)
    theirs = np.array([torchvision.transforms.RandomRotation.get_params([-20.0, 70.0]) for _ in range(DRAWS)])
    assert distance(draws_of(T.RandomRotation((-20, 70)))[:, 0], theirs) < MOST
    assert distance(draws_of(T.RandomRotation((-20, 66)))[:, 0], theirs) > MOST


def test_corners_of_perspectives_are_torchvisions(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each corner's distance from its place is uniform among whole numbers; the solved equations tell the corner."""
    buffer_torchvision(monkeypatch)
    width, height, distortion = 60, 40, 0.3
    get_params = torchvision.transforms.RandomPerspective.get_params
    theirs = np.array([get_params(width, height, distortion)[1] for _ in range(DRAWS)]).reshape(-1, 8)
    draws = draws_of(T.RandomPerspective(distortion, 1.0), (height, width))
    ours = moved_to(draws[:, 9:17], width, height)
    assert distance(draws[:, 0], np.random.default_rng(0).random(DRAWS)) < MOST
    for column in range(8):
        assert set(ours[:, column]) == set(theirs[:, column])
        assert distance(ours[:, column], theirs[:, column]) < MOST
    assert distance(ours[:, 0], ours[:, 1]) > MOST


def moved_to(coefficients: np.ndarray, width: int, height: int) -> np.ndarray:
    """The places (x, y) that a perspective moves the four corners to, rounded: (n, 8)."""
    inverse = np.linalg.inv(np.column_stack([coefficients, np.ones(len(coefficients))]).reshape(-1, 3, 3))
    corners = np.column_stack([np.array(warps.corners(height, width)), np.ones(4)])
    places = np.einsum("nij,kj->nki", inverse, corners)
    return np.rint(places[:, :, :2] / places[:, :, 2:]).reshape(-1, 8)


@pytest.mark.parametrize("size", [(224, 224), (31, 48), (7, 5), (500, 333)])
@pytest.mark.parametrize("distortion", [0.0, 0.2, 0.5, 1.0])
def test_a_batch_solves_its_equations_as_single_ones(
    torchvision: ModuleType, size: tuple[Any, ...], distortion: float
) -> None:
    height, width = size
    draws = draws_of(T.RandomPerspective(distortion, 1.0), size, 200)
    x, y = warps.perspective_moves(height, width, distortion)
    start = warps.corners(height, width)
    least = np.array([0, 0, width - 1 - x, 0, width - 1 - x, height - 1 - y, 0, height - 1 - y])
    for row in draws:
        end = (least + np.floor(row[1:9] * np.array([x + 1, y + 1] * 4))).astype(int).reshape(4, 2).tolist()
        try:
            solved = torchvision.transforms.functional._get_perspective_coeffs(start, end)
        except RuntimeError:
            assert distortion == 1.0 and np.isnan(row[9:17]).all()
            continue
        assert row[9:17].tolist() == solved == warps.perspective_coefficients(start, end)
    for part in (draws[:1], draws[:7]):
        assert np.array_equal(part, draws_of(T.RandomPerspective(distortion, 1.0), size, len(part)), equal_nan=True)

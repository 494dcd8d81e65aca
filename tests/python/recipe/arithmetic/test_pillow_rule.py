"""The plain numpy resize equals the installed Pillow's, in the order of passes that pass_order() returns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import PIL
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.steps import FILTERS

sizes = st.tuples(st.integers(1, 120), st.integers(1, 120))
tall = st.tuples(st.integers(101, 400), st.integers(1, 3))


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Each test calls pass_order() with an empty cache."""
    pillow_rule.pass_order.cache_clear()
    yield
    pillow_rule.pass_order.cache_clear()


@settings(max_examples=400, deadline=None)
@given(
    size=sizes | tall,
    out=sizes | st.tuples(st.integers(90, 400), st.integers(1, 4)),
    filter=st.sampled_from(sorted(pillow_rule.KERNELS)),
    seed=st.integers(0, 2**32 - 1),
    extreme=st.booleans(),
)
@example(size=(101, 1), out=(100, 2), filter="bilinear", seed=0, extreme=False)
@example(size=(100, 1), out=(50, 2), filter="bicubic", seed=0, extreme=True)
@example(size=(1, 1), out=(7, 9), filter="lanczos", seed=0, extreme=False)
def test_numpy_resize_is_pillows(
    size: tuple[int, int], out: tuple[int, int], filter: str, seed: int, extreme: bool
) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    if extreme:  # overshoot, where negative weights leave the range of a byte
        pixels = np.where(pixels < 128, 0, 255).astype(np.uint8)
    made = np.asarray(Image.fromarray(pixels).resize(out[::-1], resample=FILTERS[filter]))
    first = pillow_rule.ORDERS[pillow_rule.pass_order()](*size, *out)
    assert np.array_equal(pillow_rule.modelled_resize(pixels, *out, filter, first), made)


def test_the_version_says_the_order() -> None:
    assert pillow_rule.pass_order() == pillow_rule.expected_order(PIL.__version__)


def test_probe_tells_the_orders_apart() -> None:
    """Exactly one order explains the pixels of the probe."""
    report = pillow_rule.probe_pass_order()
    assert report.fitting == (report.expected,) and report.pillow == PIL.__version__


@pytest.mark.parametrize(
    ("version", "order"),
    [
        ("9.5.0", "horizontal_first"),
        ("12.1.1", "horizontal_first"),
        ("12.2.0", "tall_split"),
        ("12.3.0", "tall_split"),
        ("13.0.0", "by_reduction"),
        ("13.0.0.dev0", "by_reduction"),
        ("13", "by_reduction"),
        ("14.1.0rc1", "by_reduction"),
    ],
)
def test_order_by_version(version: str, order: str) -> None:
    assert pillow_rule.expected_order(version) == order


def test_pixels_overrule_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    true = pillow_rule.pass_order()
    pillow_rule.pass_order.cache_clear()
    other = next(order for order in pillow_rule.ORDERS if order != true)
    monkeypatch.setattr(pillow_rule, "expected_order", lambda version: other)
    with pytest.warns(RuntimeWarning, match=f"expected to resize '{other}' but follows '{true}'"):
        assert pillow_rule.pass_order() == true
    assert pillow_rule.pass_order() == true  # warns once


def test_an_unknown_pillow_is_said_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pillow_rule.expected_order(PIL.__version__)
    resize = Image.Image.resize
    monkeypatch.setattr(Image.Image, "resize", lambda self, size, resample: resize(self, size, Image.Resampling.BOX))
    with pytest.warns(RuntimeWarning, match=r"matches no known order .* check with loader.verify\(\)"):
        assert pillow_rule.pass_order() == expected

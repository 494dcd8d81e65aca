"""The native resize, pad, flip, gray and store equal Pillow, numpy and torch to the byte, on every instruction set."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace import _core

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
PAD_MODES = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}
ISAS = _core.isas()
IDENTITY = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
PILLOW = tuple(int(part) for part in PIL.__version__.split(".")[:2])

pytestmark = [pytest.mark.pixels, pytest.mark.slow]
each_isa = pytest.mark.parametrize("isa", ISAS)
exact = settings(max_examples=60, deadline=None)

sizes = st.tuples(st.integers(1, 90), st.integers(1, 90))
filters = st.sampled_from(sorted(FILTERS.values()))
seeds = st.integers(0, 2**32 - 1)


def pixels(seed: int, height: int, width: int) -> np.ndarray:
    """RGBX noise of full contrast; the X bytes are noise too, since no code may depend on them."""
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    if seed % 3 == 0:
        noise[..., :3] = np.where(noise[..., :3] < 128, 0, 255)  # overshoot: the clamping of negative lobes
    return noise


def vertical_first(size: tuple[int, int], out: tuple[int, int]) -> bool:
    """Whether the installed Pillow makes the vertical pass first; sizes are (width, height)."""
    (in_w, in_h), (out_w, out_h) = size, out
    if PILLOW >= (13, 0):
        return in_h - out_h > 0 and in_h - out_h > 2 * (in_w - out_w)
    if PILLOW >= (12, 2):
        return in_h > 100 * in_w and out_h < in_h
    return False


def whole(size: tuple[int, int], **rest: Any) -> dict:
    return {"box": (0, 0, *size), **rest}


def stage(take: dict, out: tuple[int, int], filter: int) -> dict:
    return {**take, "resize": out, "filter": filter, "vertical_first": vertical_first(take["box"][2:], out)}


def fuse(
    image: np.ndarray,
    stages: list[dict],
    last: dict,
    lut: np.ndarray = IDENTITY,
    layout: str = "planar",
    isa: str | None = None,
) -> np.ndarray:
    """The output as H x W x C. Also asserts that no byte around the output is written."""
    width, height = last["box"][2:]
    channels, guard = len(lut), 64
    shape = (channels, height, width) if layout == "planar" else (height, width, channels)
    room = np.full(guard * 2 + np.prod(shape) * lut.itemsize, 0xA5, np.uint8)
    out = room[guard:-guard].view(lut.dtype).reshape(shape)
    _core.fuse(np.ascontiguousarray(image), {"stages": stages, "last": last}, lut, out, layout, isa)
    assert (room[:guard] == 0xA5).all() and (room[-guard:] == 0xA5).all()
    return out.transpose(1, 2, 0) if layout == "planar" else out


def rgb(image: np.ndarray) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(image[..., :3]))


def pillow_resize(image: np.ndarray, out: tuple[int, int], filter: int) -> np.ndarray:
    return np.asarray(rgb(image).resize(out, filter))


@each_isa
@exact
@given(seed=seeds, size=sizes, out=sizes, filter=filters)
def test_resize_equals_pillow(isa: str, seed: int, size: tuple[int, int], out: tuple[int, int], filter: int) -> None:
    image = pixels(seed, size[1], size[0])
    got = fuse(image, [stage(whole(size), out, filter)], whole(out), isa=isa)
    np.testing.assert_array_equal(got, pillow_resize(image, out, filter))


@each_isa
@pytest.mark.parametrize("filter", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize(
    ("size", "out"),
    [
        ((1, 1), (1, 1)),
        ((1, 1), (65, 67)),
        ((1, 7), (7, 1)),
        ((3, 900), (64, 33)),
        ((3, 900), (2, 1000)),
        ((900, 3), (33, 64)),
        ((2000, 5), (9, 5)),
        ((5, 2000), (5, 9)),
        ((1500, 1200), (3, 2)),
        ((295, 282), (224, 224)),
        ((400, 282), (224, 282)),
        ((224, 500), (224, 224)),
        ((20, 20), (20, 20)),
        ((2, 2), (200, 200)),
        ((1024, 700), (130, 129)),
        ((300, 340), (256, 290)),
        ((500, 375), (224, 168)),
        ((1100, 60), (224, 40)),
        ((2100, 40), (224, 17)),
        ((4100, 12), (224, 3)),
    ],
    ids=str,
)
def test_resize_of_extreme_shapes(isa: str, filter: int, size: tuple[Any, ...], out: tuple[Any, ...]) -> None:
    image = pixels(sum(size), size[1], size[0])
    got = fuse(image, [stage(whole(size), out, filter)], whole(out), isa=isa)
    np.testing.assert_array_equal(got, pillow_resize(image, out, filter))


@each_isa
@exact
@given(data=st.data(), seed=seeds, size=sizes, out=sizes, filter=filters)
def test_crop_before_and_window_after(
    isa: str, data: st.DataObject, seed: int, size: tuple[int, int], out: tuple[int, int], filter: int
) -> None:
    def box_in(width: int, height: int) -> tuple[int, int, int, int]:
        w, h = data.draw(st.integers(1, width)), data.draw(st.integers(1, height))
        return (data.draw(st.integers(0, width - w)), data.draw(st.integers(0, height - h)), w, h)

    image = pixels(seed, size[1], size[0])
    crop, window = box_in(*size), box_in(*out)
    mirror, upside_down, gray = (data.draw(st.booleans()) for _ in range(3))
    last = {"box": window, "flip_horizontal": mirror, "flip_vertical": upside_down, "gray": gray}
    got = fuse(image, [stage({"box": crop}, out, filter)], last, isa=isa)
    want = pillow_resize(cut(image, crop), out, filter)
    np.testing.assert_array_equal(got, taken(want, last))


def cut(image: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray:
    x, y, w, h = box
    return image[y : y + h, x : x + w]


def taken(image: np.ndarray, take: dict) -> np.ndarray:
    """A take of an image, made by numpy and Pillow."""
    (x, y, w, h), (height, width) = take["box"], image.shape[:2]
    image = image[..., :3]
    mode = take.get("pad_mode", 0)
    left, top = max(-x, 0), max(-y, 0)
    margins = ((top, max(y + h - height, 0)), (left, max(x + w - width, 0)))
    if mode == 0:
        planes = [np.pad(image[..., c], margins, constant_values=take.get("fill", (0, 0, 0))[c]) for c in range(3)]
        image = np.stack(planes, -1)
    else:
        image = np.pad(image, (*margins, (0, 0)), ["", "edge", "reflect", "symmetric"][mode])
    image = cut(image, (x + left, y + top, w, h))
    image = image[:: -1 if take.get("flip_vertical") else 1, :: -1 if take.get("flip_horizontal") else 1]
    if take.get("gray"):
        image = np.asarray(rgb(image).convert("L").convert("RGB"))
    return image


def takes(width: int, height: int, mode: int) -> st.SearchStrategy[dict]:
    out = 40  # often more than the width of the image, which is then mirrored several times
    return st.builds(
        lambda left, top, r, b, h, v, g, fill: {
            "box": (left, top, max(width + r - left, 1), max(height + b - top, 1)),
            "flip_horizontal": h,
            "flip_vertical": v,
            "gray": g,
            "pad_mode": mode,
            "fill": fill,
        },
        st.integers(-out, min(out, width - 1)),
        st.integers(-out, min(out, height - 1)),
        st.integers(-min(out, width - 1), out),
        st.integers(-min(out, height - 1), out),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.tuples(*[st.integers(0, 255)] * 3),
    )


@pytest.mark.parametrize("mode", PAD_MODES.values(), ids=PAD_MODES)
@exact
@given(data=st.data(), seed=seeds, size=sizes)
def test_take_alone(mode: int, data: st.DataObject, seed: int, size: tuple[int, int]) -> None:
    image, take = pixels(seed, size[1], size[0]), data.draw(takes(*size, mode))
    np.testing.assert_array_equal(fuse(image, [], take), taken(image, take))


@pytest.mark.parametrize("mode", PAD_MODES.values(), ids=PAD_MODES)
@exact
@given(data=st.data(), seed=seeds, size=sizes, out=sizes, again=sizes, filter=filters)
def test_takes_between_two_resizes(
    mode: int,
    data: st.DataObject,
    seed: int,
    size: tuple[int, int],
    out: tuple[int, int],
    again: tuple[int, int],
    filter: int,
) -> None:
    image = pixels(seed, size[1], size[0])
    first, second, last = (data.draw(takes(*s, mode)) for s in (size, out, again))
    got = fuse(image, [stage(first, out, filter), stage(second, again, 2)], last)
    want = taken(pillow_resize(taken(image, first), out, filter), second)
    np.testing.assert_array_equal(got, taken(pillow_resize(want, again, 2), last))


def table_of(dtype: torch.dtype, channels: int) -> torch.Tensor:
    if dtype == torch.uint8:
        return torch.stack([torch.arange(256, dtype=torch.uint8).flip(0).roll(c) for c in range(channels)])
    mean, std = torch.tensor([[0.485], [0.456], [0.406]]), torch.tensor([[0.229], [0.224], [0.225]])
    values = torch.arange(256, dtype=torch.uint8).to(torch.float32).div(255).expand(3, 256)
    return values.sub(mean).div(std).to(dtype)[:channels].contiguous()


@each_isa
@pytest.mark.parametrize("layout", ["planar", "channels_last"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.uint8], ids=str)
@exact
@given(seed=seeds, size=sizes, out=st.tuples(st.integers(1, 300), st.integers(1, 9)), mirror=st.booleans())
def test_store_equals_torch(
    isa: str,
    layout: str,
    channels: int,
    dtype: torch.dtype,
    seed: int,
    size: tuple[int, int],
    out: tuple[int, int],
    mirror: bool,
) -> None:
    image, table = pixels(seed, size[1], size[0]), table_of(dtype, channels)
    bits = table.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[table.element_size()]).numpy()
    last = whole(out, flip_horizontal=mirror)
    got = fuse(image, [stage(whole(size), out, 2)], last, bits, layout, isa)
    resized = torch.from_numpy(taken(pillow_resize(image, out, 2), last).copy()).long()
    want = torch.stack([table[c][resized[..., c]] for c in range(channels)], -1)
    assert torch.equal(torch.from_numpy(np.ascontiguousarray(got)).view(dtype), want)


@exact
@given(data=st.data(), in_size=st.integers(1, 3000), out_size=st.integers(1, 600), filter=filters)
def test_part_of_a_table_is_the_table(data: st.DataObject, in_size: int, out_size: int, filter: int) -> None:
    first = data.draw(st.integers(0, out_size - 1))
    count = data.draw(st.integers(1, out_size - first))
    start, taps, weights = _core.resample_table(in_size, out_size, filter, 0, out_size)
    part_start, part_taps, part_weights = _core.resample_table(in_size, out_size, filter, first, count)
    end = first + count
    np.testing.assert_array_equal(part_start, start[first:end])
    np.testing.assert_array_equal(part_taps, taps[first:end])
    shared = part_weights.shape[1]
    np.testing.assert_array_equal(part_weights, weights[first:end, :shared])
    assert not weights[first:end, shared:].any()
    assert (np.diff(start) >= 0).all() and (taps >= 1).all() and start[-1] + taps[-1] <= in_size

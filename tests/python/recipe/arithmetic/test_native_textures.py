"""The native loops of texture channels equal their definition in torch, on every instruction set."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from headrace._base.native import core
from headrace._recipe.arithmetic import textures

BANDS = ((1 / 32, 1 / 8), (1 / 8, 1 / 2))
#: Height and width: every radix, lanes that are not full, single rows and columns, and large primes.
SIZES = (
    *((224, 224), (32, 32), (7, 7), (97, 97), (1, 1), (1, 2), (2, 1), (3, 2), (1, 9), (9, 1), (2, 300), (300, 2)),
    *((5, 3), (11, 13), (30, 77), (121, 26), (8, 64), (65, 63), (1, 211), (57, 40)),
)


def noise(height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, channels), dtype=np.uint8)


def defined(image: np.ndarray, bands: textures.Bands = BANDS) -> torch.Tensor:
    return textures.channels(torch.from_numpy(image).permute(2, 0, 1), bands)


def native(image: np.ndarray, isa: str | None = None, bands: textures.Bands = BANDS) -> torch.Tensor:
    made = torch.full((13, *image.shape[:2]), torch.nan)
    textures.make_native_texture(*image.shape[:2], bands).make(image, made.numpy(), isa)
    return made


@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_every_size(isa: str, height: int, width: int) -> None:
    image = noise(height, width)
    made, expected = native(image, isa), defined(image)
    assert torch.equal(made, expected)
    assert torch.equal(made.view(torch.int32), expected.view(torch.int32)), "zeros of another sign"


@pytest.mark.parametrize("isa", core.isas())
def test_every_colour_of_a_coarse_cube_and_every_gray(isa: str) -> None:
    axis = np.concatenate([np.arange(0, 256, 15), [1, 2, 10, 11, 254]]).astype(np.uint8)  # both sides of sRGB's bend
    cube = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(len(axis), -1, 3)
    grays = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    for image in (np.ascontiguousarray(cube), grays):
        assert torch.equal(native(image, isa), defined(image))


@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize(
    "bands", [((0, 0.1), (0.05, 1)), ((0, 1), (0, 1)), ((0.6, 0.7), (0.9, 2))], ids=["overlap", "all", "few and none"]
)
def test_other_bands(isa: str, bands: tuple[Any, ...]) -> None:
    image = noise(45, 32)
    made = native(image, isa, bands)
    assert torch.equal(made, defined(image, bands))
    if bands == ((0, 1), (0, 1)):
        luma = textures.luma_plane(torch.from_numpy(image).permute(2, 0, 1)).float()
        assert torch.allclose(made[11:], luma.expand(2, -1, -1), rtol=0, atol=2**-23)


@pytest.mark.parametrize("isa", core.isas())
def test_every_order_in_memory(isa: str) -> None:
    """Rows, pixels or channels next to each other; nothing beside the elements is written."""
    image, expected = noise(14, 11), defined(noise(14, 11))
    for order in ((0, 1, 2), (1, 2, 0), (2, 1, 0), (1, 0, 2)):
        around = torch.full([length + 2 for length in np.array((13, 14, 11))[list(order)]], 5.0)
        inside = around[1:-1, 1:-1, 1:-1].permute(*np.argsort(order).tolist())
        textures.make_native_texture(14, 11, BANDS).make(image, inside.numpy(), isa)
        assert torch.equal(inside, expected)
        assert int((around == 5).sum()) >= around.numel() - expected.numel()
    flipped = np.flip(image, (0, 1))  # negative strides
    assert torch.equal(native(flipped, isa), defined(flipped.copy()))


def test_threads_share_one_texture() -> None:
    images = [np.roll(noise(40, 33), shift, axis=0) for shift in range(24)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(native, images))
    assert all(torch.equal(one, defined(image)) for one, image in zip(made, images, strict=True))


@pytest.mark.parametrize(
    ("image", "out", "isa", "words"),
    [
        (noise(4, 5), np.zeros((13, 4, 4), np.float32), None, r"^out: float32 \(13, H, W\)"),
        (noise(4, 4), np.zeros((13, 4, 5), np.float32), None, r"^image: uint8 \(H, W, 1\) or \(H, W, 3\)"),
        (noise(4, 5, 4), np.zeros((13, 4, 5), np.float32), None, r"^image: uint8 \(H, W, 1\) or \(H, W, 3\)"),
        (noise(4, 5), np.zeros((13, 4, 5), np.float32), "sse", "^isa: this processor or build lacks sse$"),
    ],
)
def test_wrong_arrays_are_refused(image: np.ndarray, out: np.ndarray, isa: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        textures.make_native_texture(4, 5, BANDS).make(image, out, isa)
    with pytest.raises(ValueError, match=r"^the tables do not fit the size of the texture$"):
        core.Texture(4, 5, BANDS, textures.tables_for_native(5, 4))

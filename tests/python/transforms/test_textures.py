"""TextureChannels against scikit-image and scipy within stated bounds; its arguments, images and layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import transforms as T
from headrace._recipe.arithmetic import textures

color = pytest.importorskip("skimage.color")
ndimage = pytest.importorskip("scipy.ndimage")
fft = pytest.importorskip("scipy.fft")

RNG = np.random.default_rng(3)
#: Every byte, edges of colour space, and odd sizes.
IMAGES = {
    "noise": RNG.integers(0, 256, (57, 40, 3), dtype=np.uint8),
    "grays": np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, axis=2),
    "corners": np.array([[[r, g, b] for g in (0, 3, 255) for b in (0, 9, 255)] for r in (0, 5, 255)], np.uint8),
    "one pixel": np.full((1, 1, 3), 77, np.uint8),
}
ROUNDING = 2**-24  # half a unit in the last place of values below 1: everything is rounded once, to float32
# Its LAB uses 0.008856 and 7.787 for (6 / 29) ** 3 and its slope there; this changes L, a and b by less than 0.001.
LAB_BOUND = 0.001


def channels(image: np.ndarray, **options: Any) -> np.ndarray:
    return T.TextureChannels(**options)(Image.fromarray(image)).numpy()


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_channels_equal_independent_implementations(image: np.ndarray) -> None:
    made = channels(image)
    height, width = image.shape[:2]
    assert made.dtype == np.float32 and made.shape == (13, height, width)
    assert np.array_equal(made[:3], (image.transpose(2, 0, 1) / 255).astype(np.float32))
    lab = color.rgb2lab(image).transpose(2, 0, 1)
    assert np.abs(made[3:6] * np.array([100, 128, 128])[:, None, None] - lab).max() < LAB_BOUND
    gray = image.astype(np.float64) / 255 @ np.array([0.299, 0.587, 0.114])
    for channel, axis in ((6, 1), (7, 0)):
        assert np.abs(made[channel] - ndimage.sobel(gray, axis=axis, mode="nearest") / 4).max() <= ROUNDING
    y, x = np.meshgrid(
        (np.arange(height) + 0.5) / height * 2 - 1, (np.arange(width) + 0.5) / width * 2 - 1, indexing="ij"
    )
    for channel, truth in ((8, x), (9, y), (10, np.hypot(x, y) / np.sqrt(2))):
        assert np.abs(made[channel] - truth).max() <= ROUNDING
    frequency = np.hypot(fft.fftfreq(height)[:, None], fft.fftfreq(width)[None])
    for channel, (low, high) in ((11, (1 / 32, 1 / 8)), (12, (1 / 8, 1 / 2))):
        # Frequencies at an edge of a band may round to either side of it in another implementation.
        edge = np.isclose(frequency, low, rtol=1e-12) | np.isclose(frequency, high, rtol=1e-12)
        passes = np.where(
            edge, (low < frequency + 1e-13) & (frequency < high - 1e-13), (low <= frequency) & (frequency < high)
        )
        truth = fft.ifft2(fft.fft2(gray) * passes).real
        assert np.abs(made[channel] - truth).max() <= ROUNDING + 1e-12


def test_lab_of_every_byte_follows_its_definition() -> None:
    """Closer than scikit-image's constants allow: float64 numbers from the formulas in the docstring."""
    image = np.concatenate([IMAGES["noise"].reshape(-1, 3), IMAGES["grays"].reshape(-1, 3)])[None]
    value = image / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = linear @ color.colorconv.xyz_from_rgb.T / np.array([0.95047, 1.0, 1.08883])
    bent = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = np.moveaxis(bent, -1, 0)
    truth = np.stack([(116 * y - 16) / 100, 500 * (x - y) / 128, 200 * (y - z) / 128])
    assert np.abs(channels(image)[3:6] - truth).max() <= ROUNDING


def test_layouts_and_inputs() -> None:
    image = IMAGES["noise"]
    planes = T.TextureChannels()(Image.fromarray(image))
    last = T.TextureChannels("HWC")(Image.fromarray(image))
    assert last.shape == (57, 40, 13) and last.is_contiguous() and torch.equal(last.permute(2, 0, 1), planes)
    tensor = torch.from_numpy(image).permute(2, 0, 1)
    assert torch.equal(T.TextureChannels()(tensor), planes) and torch.equal(
        T.TextureChannels()(T.ToImage()(image)), planes
    )
    gray = Image.fromarray(image[..., 0])
    assert torch.equal(T.TextureChannels()(gray), T.TextureChannels()(gray.convert("RGB")))
    assert not torch.equal(T.TextureChannels(bands=((0, 0.1), (0.1, 0.2)))(tensor)[11:], planes[11:])
    assert repr(T.TextureChannels("HWC", ((0, 0.5), (0.25, 1)))) == (
        "TextureChannels(layout=HWC, bands=((0.0, 0.5), (0.25, 1.0)))"
    )
    with torch.device("meta"):
        assert torch.equal(T.TextureChannels()(Image.fromarray(image)), planes)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: T.TextureChannels("NHWC"), ValueError, "^layout must be one of CHW, HWC, not 'NHWC'$"),
        (lambda: T.TextureChannels(bands=((0.5, 0.1), (0, 1))), ValueError, "^bands must be two pairs"),
        (lambda: T.TextureChannels(bands=((0.5, 1),)), ValueError, "^bands must be two pairs"),  # type: ignore[arg-type]
        (lambda: T.TextureChannels()(torch.zeros(3, 4, 4)), TypeError, "takes bytes, .* put it before ToTensor$"),
        (lambda: T.TextureChannels()(Image.new("CMYK", (4, 4))), TypeError, "of mode RGB or L, not CMYK"),
    ],
)
def test_wrong_arguments_and_images(make: Callable[..., Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_threads_of_torch_change_nothing() -> None:
    """Neither the definition in torch, nor what the transform makes."""
    image = torch.from_numpy(RNG.integers(0, 256, (3, 96, 112), dtype=np.uint8))
    transform = T.TextureChannels()
    before, made = torch.get_num_threads(), [transform(image)]
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            made.append(textures.channels(image, transform.bands))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, made[0]) for one in made)

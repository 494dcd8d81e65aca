"""headrace.ops equals Pillow and torch to the bit."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import ops

PHOTOS = sorted((Path(__file__).resolve().parents[2] / "python/headrace/photos").glob("*.jpg"))
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def by_pillow(data: bytes) -> torch.Tensor:
    with Image.open(io.BytesIO(data)) as image:
        return torch.from_numpy(np.asarray(image.convert("RGB")).transpose(2, 0, 1).copy())


@pytest.mark.pixels
@pytest.mark.parametrize("num_threads", [0, 1, 3])
def test_decode_equals_pillow(num_threads: int) -> None:
    blobs = [path.read_bytes() for path in PHOTOS]
    for ours, blob in zip(ops.decode_jpeg(blobs, num_threads=num_threads), blobs, strict=True):
        assert torch.equal(ours, by_pillow(blob))


def test_decode_takes_tensors_and_what_is_not_jpeg() -> None:
    buffer = io.BytesIO()
    Image.effect_mandelbrot((31, 17), (-2, -1, 1, 1), 20).save(buffer, "PNG")
    blobs = [buffer.getvalue(), PHOTOS[0].read_bytes()]
    tensors = [torch.frombuffer(bytearray(blob), dtype=torch.uint8) for blob in blobs]
    for ours, blob in zip(ops.decode_jpeg(tensors), blobs, strict=True):
        assert torch.equal(ours, by_pillow(blob))


def test_decode_raises_pillows_error() -> None:
    with pytest.raises(OSError, match="truncated"):
        ops.decode_jpeg([PHOTOS[0].read_bytes()[:5000]])
    assert ops.decode_jpeg([]) == []


@pytest.mark.pixels
@pytest.mark.parametrize("interpolation", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_resize_normalize_equals_pillow_and_torch(
    interpolation: str, dtype: torch.dtype, memory_format: torch.memory_format
) -> None:
    images = ops.decode_jpeg([path.read_bytes() for path in PHOTOS[:6]])
    draw = np.random.default_rng(7)
    boxes, flips = [], []
    for image in images:
        _, in_h, in_w = image.shape
        h, w = draw.integers(1, in_h + 1), draw.integers(1, in_w + 1)
        boxes.append((int(draw.integers(0, in_h - h + 1)), int(draw.integers(0, in_w - w + 1)), int(h), int(w)))
        flips.append(bool(draw.integers(2)))
    ours = ops.resize_normalize(
        images,
        boxes,
        (48, 64),
        MEAN,
        STD,
        flips=flips,
        interpolation=interpolation,
        dtype=dtype,
        memory_format=memory_format,
    )
    assert ours.is_contiguous(memory_format=memory_format)
    for out, image, (top, left, h, w), flip in zip(ours, images, boxes, flips, strict=True):
        cut = Image.fromarray(image.permute(1, 2, 0).numpy()).crop((left, top, left + w, top + h))
        small = np.array(cut.resize((64, 48), getattr(Image.Resampling, interpolation.upper())))
        if flip:
            small = small[:, ::-1].copy()
        expected = torch.from_numpy(small.transpose(2, 0, 1).copy()).to(torch.float32).div(255)
        expected = expected.sub(torch.tensor(MEAN).view(3, 1, 1)).div(torch.tensor(STD).view(3, 1, 1))
        assert torch.equal(out, expected.to(dtype))


def test_whole_images_and_one_number_for_a_square() -> None:
    images = torch.stack([torch.arange(3 * 8 * 8, dtype=torch.uint8).reshape(3, 8, 8)] * 2)
    out = ops.resize_normalize(images, None, 8)
    assert torch.equal(out, images.to(torch.float32).div(255))


@pytest.mark.parametrize(
    ("images", "boxes", "error", "words"),
    [
        ([torch.zeros(3, 8, 8)], None, TypeError, "image 0 is torch.float32"),
        ([torch.zeros(8, 8, dtype=torch.uint8)], None, ValueError, r"image 0 has shape \(8, 8\)"),
        ([torch.zeros(3, 8, 8, dtype=torch.uint8)], [(0, 0, 9, 8)], ValueError, "box 0"),
        ([torch.zeros(3, 8, 8, dtype=torch.uint8)], [(0, 0, 0, 8)], ValueError, "box 0"),
        ([torch.zeros(3, 8, 8, dtype=torch.uint8)], [], ValueError, "boxes must hold"),
    ],
)
def test_bad_input_is_one_sentence(
    images: list[torch.Tensor], boxes: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ops.resize_normalize(images, boxes, 4)  # type: ignore[arg-type]

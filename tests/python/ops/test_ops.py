"""headrace.ops equals Pillow and torch to the bit."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headrace.ops import functions as ops

PHOTOS = sorted((Path(__file__).resolve().parents[3] / "python/headrace/_cli/demo/photos").glob("*.jpg"))
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
        h, w = int(draw.integers(1, in_h + 1)), int(draw.integers(1, in_w + 1))
        boxes.append((int(draw.integers(0, in_h - h + 1)), int(draw.integers(0, in_w - w + 1)), h, w))
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


IMAGE = torch.zeros(3, 8, 8, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("images", "boxes", "error", "words"),
    [
        ([torch.zeros(3, 8, 8)], None, TypeError, "image 0 is torch.float32"),
        ([IMAGE.numpy()], None, TypeError, "image 0 is a ndarray; a uint8 tensor is needed"),
        ([IMAGE[0]], None, ValueError, r"image 0 has shape \(8, 8\)"),
        ([IMAGE], [(0, 0, 9, 8)], ValueError, "box 0"),
        ([IMAGE], [(0, 0, 0, 8)], ValueError, "box 0"),
        ([IMAGE], [(0.5, 0, 4, 4)], TypeError, "box 0 must be a whole number, not 0.5"),
        ([IMAGE], torch.tensor([[0.5, 0, 4, 4]]), TypeError, "box 0 must be a whole number, not 0.5"),
        ([IMAGE], [], ValueError, "boxes must hold"),
    ],
)
def test_bad_input_is_one_sentence(images: list[object], boxes: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ops.resize_normalize(images, boxes, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"size": 0}, ValueError, "size must be 1 or more, not 0"),
        ({"size": (4, -1)}, ValueError, "size must be 1 or more, not -1"),
        ({"size": (4, 4, 4)}, ValueError, r"size must be one number or \(height, width\), not \(4, 4, 4\)"),
        ({"size": [4]}, ValueError, "size must be one number or"),
        ({"size": 4.5}, TypeError, "size must be a whole number, not 4.5"),
        ({"size": (4.5, 4)}, TypeError, "size must be a whole number, not 4.5"),
        ({"dtype": torch.uint8}, ValueError, "dtype must be one of torch.float32, torch.float16, torch.bfloat16"),
        ({"dtype": torch.float64}, ValueError, "not torch.float64"),
        ({"memory_format": torch.preserve_format}, ValueError, "memory_format must be torch.contiguous_format or"),
        ({"num_threads": -1}, ValueError, "num_threads must be 0 or more, not -1"),
        ({"num_threads": 1.5}, TypeError, "num_threads must be a whole number, not 1.5"),
    ],
)
def test_bad_options_are_one_sentence(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ops.resize_normalize([IMAGE], None, **{"size": 4, **arguments})  # type: ignore[arg-type]


def test_numpys_numbers_and_tensors_are_numbers() -> None:
    whole = ops.resize_normalize([IMAGE + 7], None, 4)
    assert torch.equal(ops.resize_normalize([IMAGE + 7], torch.tensor([[0, 0, 8, 8]]), np.int64(4)), whole)  # type: ignore[arg-type]
    assert torch.equal(ops.resize_normalize([IMAGE + 7], None, torch.tensor(4)), whole)  # type: ignore[arg-type]
    assert torch.equal(ops.resize_normalize([IMAGE + 7], np.array([[0, 0, 8, 8]]), torch.tensor([4, 4])), whole)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("blobs", "error", "words"),
    [
        (b"abc", TypeError, "blobs must be a list of encoded images, not one bytes; put it into a list"),
        (torch.zeros(9, dtype=torch.uint8), TypeError, "not one Tensor"),
        ("a.jpg", TypeError, "not one str"),
        (["a.jpg"], TypeError, "blob 0 must be bytes or a uint8 tensor of them, not str; files must be read"),
        ([b"", 7], TypeError, "blob 1 must be bytes or a uint8 tensor of them, not int"),
        ([torch.zeros(9)], TypeError, "blob 0 is a tensor of torch.float32; uint8 is needed"),
        ([np.zeros(9)], TypeError, "blob 0 has elements of type 'd'"),
        ([torch.zeros(3, 9, dtype=torch.uint8)], ValueError, r"blob 0 has shape \(3, 9\); \(n,\) is needed"),
    ],
)
def test_what_holds_no_encoded_images_is_one_sentence(blobs: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ops.decode_jpeg(blobs)  # type: ignore[arg-type]


def test_decode_takes_whatever_holds_bytes() -> None:
    data = PHOTOS[0].read_bytes()
    array = np.frombuffer(data, np.uint8)
    for ours in ops.decode_jpeg(iter([bytearray(data), memoryview(data), array, np.repeat(array, 2)[::2]])):  # type: ignore[arg-type]
        assert torch.equal(ours, by_pillow(data))

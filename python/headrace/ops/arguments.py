"""Checks the arguments of `headrace.ops`: each function returns a normalised value, or raises with a clear message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

import torch

from headrace._base.checks import whole_number

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def read_blobs(blobs: Iterable[object]) -> list[bytes]:
    """Returns the bytes of each image.

    Raises:
        TypeError: `blobs` is not a list, or an element is neither bytes nor an array or tensor of uint8.
        ValueError: an array or tensor does not have exactly one dimension.
    """
    if isinstance(blobs, (str, bytes, bytearray, memoryview, torch.Tensor)):
        raise TypeError(f"blobs must be a list of encoded images, not one {type(blobs).__name__}; put it into a list")
    return [_bytes_of_blob(i, blob) for i, blob in enumerate(blobs)]


def _bytes_of_blob(i: int, blob: Any) -> bytes:
    if isinstance(blob, bytes):
        return blob
    if isinstance(blob, torch.Tensor):
        if blob.dtype != torch.uint8:
            raise TypeError(f"blob {i} is a tensor of {blob.dtype}; uint8 is needed")
        blob = blob.cpu().numpy()
    try:
        view = memoryview(blob)
    except TypeError:
        kind = type(blob).__name__
        raise TypeError(f"blob {i} must be bytes or a uint8 tensor of them, not {kind}; files must be read") from None
    if view.format != "B":
        raise TypeError(f"blob {i} has elements of type {view.format!r}; bytes or uint8 are needed")
    if view.ndim != 1:
        raise ValueError(f"blob {i} has shape {view.shape}; (n,) is needed: the bytes of an encoded image")
    return bytes(view)


def output_size(size: Any) -> tuple[int, int]:
    """Returns (height, width). Raises TypeError if a number is not whole, ValueError unless one or two numbers >= 1."""
    try:
        sides = list(size)
    except TypeError:  # one number; numpy's numbers and 0-d tensors raise it, too
        sides = [size, size]
    if len(sides) != 2:
        raise ValueError(f"size must be one number or (height, width), not {size!r}")
    return whole_number("size", sides[0], smallest=1), whole_number("size", sides[1], smallest=1)


def check_dtype(dtype: object) -> None:
    """Raises ValueError if `dtype` is not supported."""
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(str, _DTYPES))}, not {dtype!r}")


def check_counts(
    count: int, boxes: Sequence[Sized] | torch.Tensor | None, flips: Sequence[object] | torch.Tensor | None
) -> None:
    """Raises ValueError unless `boxes` has four numbers and `flips` one value for each of `count` images."""
    if boxes is not None and (len(boxes) != count or any(len(box) != 4 for box in boxes)):
        raise ValueError(f"boxes must hold four numbers for each of {count} images")
    if flips is not None and len(flips) != count:
        raise ValueError(f"flips must hold one value for each of {count} images")


def checked_box(i: int, image: object, box: Sequence[int] | torch.Tensor | None) -> tuple[int, int, int, int]:
    """Returns top, left, height, width of the box in image `i`; for None, the whole image.

    Raises:
        TypeError: the image is not a uint8 tensor, or a number of the box is not whole.
        ValueError: the image's shape is not (3, H, W), or the box is empty or not inside the image.
    """
    if not isinstance(image, torch.Tensor):
        raise TypeError(f"image {i} is a {type(image).__name__}; a uint8 tensor is needed")
    if image.dtype != torch.uint8:
        raise TypeError(f"image {i} is {image.dtype}; uint8 is needed")
    if image.ndim != 3 or image.shape[0] != 3:
        raise ValueError(f"image {i} has shape {tuple(image.shape)}; (3, H, W) is needed")
    in_h, in_w = image.shape[1:]
    numbers = (0, 0, in_h, in_w) if box is None else box.tolist() if isinstance(box, torch.Tensor) else box
    top, left, h, w = (whole_number(f"box {i}", number) for number in numbers)
    if h < 1 or w < 1 or top < 0 or left < 0 or top + h > in_h or left + w > in_w:
        raise ValueError(f"box {i}, {(top, left, h, w)}, is not inside its image of {(in_h, in_w)} pixels")
    return top, left, h, w

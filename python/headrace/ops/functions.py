"""The kernels as functions: decode images; crop, resize and normalise tensors, as torchvision does on PIL images."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from headrace import transforms
from headrace._base.checks import whole_number
from headrace._base.cores import usable_cores
from headrace._base.native import core
from headrace._base.types import Array
from headrace._engine import destination
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.arithmetic.functional_pil import open_rgb
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.byte_table import Pointwise, make_byte_table
from headrace._recipe.steps.steps import FILTERS
from headrace.ops import device_ops
from headrace.ops.arguments import check_counts, check_dtype, checked_box, output_size, read_blobs

__all__ = ["decode_jpeg", "resize_normalize"]

T = TypeVar("T")


def decode_jpeg(
    blobs: Iterable[bytes | torch.Tensor], *, device: torch.device | str | None = None, num_threads: int = 0
) -> list[torch.Tensor]:
    """Decodes images to the bytes that Pillow's ``convert("RGB")`` gives; EXIF orientation is not applied.

    Args:
        blobs: encoded images: bytes, or uint8 tensors (n,) as ``torchvision.io.read_file`` returns them. Images that
            are not clean, plain JPEGs (PNG, CMYK, damaged files, ...) are decoded by Pillow.
        device: device of the result; None for this machine's memory. A GPU computes the pixels from the planes that
            the CPU decoded, on the current stream; the bytes are the same.
        num_threads: number of threads; 0: one for each core that this process may use.

    Returns:
        uint8 tensors (3, H, W) on `device`, one per blob, in order.

    Raises:
        TypeError, ValueError: `blobs` is not a list of encoded images, or `num_threads` is not a whole number >= 0.
        RuntimeError: there is no such device.
        Exception: Pillow's own exception for an image that it cannot read.
    """
    where = destination.resolve_destination(device, "auto" if device in (None, "cpu") else "cpu")
    data, num_threads = read_blobs(blobs), whole_number("num_threads", num_threads, smallest=0)
    if where.way == "memory":
        return _map_in_threads(_decode_one, [(one,) for one in data], num_threads)
    if where.way == "copy":
        return [one.to(where.device) for one in _map_in_threads(_decode_one, [(one,) for one in data], num_threads)]
    on_device, stream = device_ops.find_ops(where), destination.current_stream(where.device)

    def one(blob: bytes) -> torch.Tensor:
        made = on_device.decode(blob, stream)
        return _decode_one(blob).to(where.device) if made is None else made

    return _map_in_threads(destination.bind_stream(where.device, one), [(one,) for one in data], num_threads)


def _decode_one(data: bytes) -> torch.Tensor:
    header = core.jpeg_header(data)
    if header["not_plain"] is None:
        try:
            width, height = header["width"], header["height"]
            rgbx = np.frombuffer(core.decode_crop(data, 0, 0, width, height), np.uint8).reshape(height, width, 4)
            return torch.from_numpy(rgbx[:, :, :3].transpose(2, 0, 1).copy())
        except core.NeedsPillow:
            pass
    return torch.from_numpy(np.asarray(open_rgb(data)).transpose(2, 0, 1).copy())


def resize_normalize(
    images: Sequence[torch.Tensor] | torch.Tensor,
    boxes: Sequence[Sequence[int]] | torch.Tensor | None,
    size: int | Sequence[int],
    mean: Sequence[float] = (0.0, 0.0, 0.0),
    std: Sequence[float] = (1.0, 1.0, 1.0),
    *,
    flips: Sequence[bool] | torch.Tensor | None = None,
    interpolation: str | int | enum.Enum = "bilinear",
    dtype: torch.dtype = torch.float32,
    memory_format: torch.memory_format = torch.contiguous_format,
    num_threads: int = 0,
) -> torch.Tensor:
    """Computes ``normalize(to_tensor(resized_crop(image, *box, size)))`` for images of different sizes in one pass.

    Args:
        images: uint8 tensors (3, H, W) of any sizes, or one tensor (n, 3, H, W); all in this machine's memory or all on
            one GPU, where the work is enqueued on the current stream.
        boxes: (n, 4) ints: top, left, height, width in pixels, as ``RandomResizedCrop.get_params`` returns them; None:
            whole images.
        size: (height, width) of the output, or one number for a square.
        mean, std: one value per channel, in units of [0, 1].
        flips: (n,) bools: whether to mirror each image left to right after the resize.
        interpolation: a Pillow filter, given by name, ``InterpolationMode`` or number.
        dtype: float32, float16 or bfloat16: computed in float32, then converted.
        memory_format: ``torch.contiguous_format`` or ``torch.channels_last``.
        num_threads: number of threads; 0: one for each core that this process may use.

    Returns:
        Tensor (n, 3, height, width) on the images' device, bit for bit equal to torchvision's result on PIL images.

    Raises:
        TypeError: an image is not a uint8 tensor, or a number is not whole.
        ValueError: shapes do not fit, a box is not inside its image, or the size, dtype or memory format is invalid.
    """
    height, width = output_size(size)
    check_dtype(dtype)
    layout = Layout.of(memory_format)
    num_threads = whole_number("num_threads", num_threads, smallest=0)
    filter_number = FILTERS[transforms.filter_name(interpolation)]
    steps = (lambda image: image.to(torch.float32).div(255), transforms.Normalize(mean, std))  # ToTensor, Normalize
    lut = make_byte_table(Pointwise(steps, dtype), 3)
    plans = [one.plan(height, width, filter_number) for one in _make_jobs(images, boxes, flips, height, width)]
    on_gpu = _find_device_ops(images)
    if on_gpu is not None:
        return on_gpu.resize(images, plans, height, width, lut, layout)
    here = [image.cpu() for image in images]
    made = _resize(here, plans, height, width, lut, layout, num_threads)
    return made.to(images[0].device) if len(images) else made


def _make_jobs(
    images: Sequence[torch.Tensor] | torch.Tensor,
    boxes: Sequence[Sequence[int]] | torch.Tensor | None,
    flips: Sequence[bool] | torch.Tensor | None,
    height: int,
    width: int,
) -> list[device_ops.Job]:
    """Returns the job of each image. Raises TypeError or ValueError if an argument does not fit its image."""
    count = len(images)
    check_counts(count, boxes, flips)
    jobs = []
    for i in range(count):
        top, left, h, w = checked_box(i, images[i], None if boxes is None else boxes[i])
        vertical = pillow_rule.vertical_first(h, w, height, width)
        jobs.append(device_ops.Job(left, top, w, h, vertical, bool(flips[i]) if flips is not None else False))
    return jobs


def _resize(
    images: Sequence[torch.Tensor],
    plans: list[device_ops.Plan],
    height: int,
    width: int,
    lut: torch.Tensor,
    layout: Layout,
    num_threads: int,
) -> torch.Tensor:
    """Does what `DeviceOps.resize` does, with threads of this machine."""
    out = torch.empty(
        (len(images), 3, height, width), dtype=lut.dtype, memory_format=layout.memory_format, device="cpu"
    )
    raw = out.permute(0, 2, 3, 1) if layout is Layout.CHANNELS_LAST else out
    words = torch.int16 if lut.dtype.itemsize == 2 else torch.int32
    elements, table = raw.view(words).numpy(), lut.view(words).numpy()

    def one(image: torch.Tensor, plan: device_ops.Plan, into: Array) -> None:
        rgbx = np.empty((*image.shape[1:], 4), np.uint8)
        rgbx[:, :, :3] = image.permute(1, 2, 0).numpy()
        core.fuse(rgbx, plan, table, into, layout.value)

    _map_in_threads(one, list(zip(images, plans, elements, strict=True)), num_threads)
    return out


def _find_device_ops(images: Sequence[torch.Tensor] | torch.Tensor) -> device_ops.DeviceOps | None:
    """Returns the operations of the images' GPU; None if they are not on a GPU, or if it has no native module."""
    if not len(images) or images[0].device.type != "cuda":
        return None
    where = destination.resolve_destination(images[0].device, "cpu")
    return device_ops.find_ops(where) if where.way == "fused" else None


def _map_in_threads(function: Callable[..., T], calls: Sequence[tuple[object, ...]], num_threads: int) -> list[T]:
    threads = min(num_threads or usable_cores(), len(calls))
    if threads <= 1:
        return [function(*call) for call in calls]
    with ThreadPoolExecutor(threads, thread_name_prefix="headrace-ops") as pool:
        return list(pool.map(lambda call: function(*call), calls))

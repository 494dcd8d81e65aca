"""Tensors that torchvision.io and torchcodec make of PNG files: those that are made natively, as a comparison with the
library itself shows.

A file is decoded when the function is called, which shows whether the library would raise an error. What the program
does with one or three channels of bytes is then recorded, as of a JPEG; other tensors get their values at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from headrace._base.native import core
from headrace._base.types import Array
from headrace._loading.doors.opencv_pngs import sample_png
from headrace._loading.doors.tensors.deferred_tensor import defer
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout
from headrace._loading.doors.tensors.recording import Origin, Recording, State, table_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.files.decoded_pixels import DecodedPixels, look_up_colours
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import Door, ImageCounts
from headrace.pillow.recording.lazy_core import MOST_PIXELS, Operation

_PALETTE = 3  # colour type
_LONGEST = 1_000_000  # pixels along an edge, of libpng
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
#: A library's function: of a file's bytes, a mode and maybe more.
Decoder = Callable[..., torch.Tensor]


class Kind(NamedTuple):
    """A kind of PNG, and how it is read.

    Attributes:
        colour, depth: of the file.
        arguments: of the function, after the file's bytes.
    """

    colour: int
    depth: int
    arguments: tuple[Any, ...]


def decode(plain: Decoder, encoded: bytes, arguments: tuple[Any, ...], counts: ImageCounts, door: Door) -> Any:
    """Returns the tensor that a library makes of a PNG; None if it has to make it, which is counted.

    Args:
        plain: the library's own function.
        encoded: the file.
        arguments: of the function, after the file's bytes.
        counts, door: what counts the file, and as what.
    """
    try:
        file = core.PngFile(encoded)
        kind = Kind(file.colour, file.depth, arguments)
        channels, reason = None, _why_library_must_decode(file)
        if reason is None:
            channels = _find_channels(kind, plain)
            reason = "PNG of a kind that is converted" if channels is None else None
        made = None if channels is None else _make(file, channels, counts, door)
        if channels is not None and made is None:
            reason = "PNG with an index beyond its palette"
    except core.NeedsPillow as error:
        made, reason = None, str(error)
    if reason is not None:
        counts.count(reason, door)
    return made


def _why_library_must_decode(file: core.PngFile) -> str | None:
    if file.transparency:  # torchcodec 0.16.0 writes beyond the memory of some of its tensors
        return "PNG with transparency"
    if not file.quiet:
        return "PNG with chunks of which libpng may warn"
    if file.width * file.height > MOST_PIXELS or max(file.width, file.height) > _LONGEST:
        return "huge"
    return None


def _make(file: core.PngFile, channels: int, counts: ImageCounts, door: Door) -> torch.Tensor | None:
    """Returns the tensor of a file; None for an index that the palette does not have."""
    is_deferrable = file.depth < 16 and channels in (1, 3) and min(file.width, file.height) >= FEWEST
    if is_deferrable and checks.look() is None:
        found = _bytes_of(file, channels)
        if found is None:
            return None
        samples, mode, operations = found
        pixels = DecodedPixels(samples, mode, counts, door)
        table = table_of(channels, ())
        state = State(channels, file.height, file.width, Layout.CHANNELS_LAST, torch.uint8, operations, table)
        return defer(Recording(Origin(pixels, _fail), state))
    made = _values_of(file, channels)
    if made is not None:
        counts.count(None, door)
    return made


def _fail() -> torch.Tensor:
    raise AssertionError("a PNG is decoded before there is a tensor of it")


def _bytes_of(file: core.PngFile, channels: int) -> tuple[Array, str, tuple[Operation, ...]] | None:
    """Returns the samples of a file, Pillow's mode of them, and the operations that make one or three channels; None
    for an index that the palette does not have."""
    samples = pixel_memory.empty_for_a_while((file.height, file.width, file.pixel_bytes), np.dtype(np.uint8))
    core.decode_png(file, samples)
    if file.colour == _PALETTE and channels == 3:
        coloured = _colours_of(file, samples)
        return None if coloured is None else (coloured, "RGB", ())
    mode = "RGB" if channels == 3 else "L"
    return samples, _MODES[samples.shape[2]], () if channels == samples.shape[2] else (("convert", mode),)


def _colours_of(file: core.PngFile, indices: Array) -> Array | None:
    """Returns the colours of palette indices, (height, width, 4); None for an index that the palette does not have."""
    entries = np.frombuffer(file.palette, np.uint8).reshape(-1, 3)
    if int(indices.max()) >= len(entries):
        return None
    table = np.full((256, 4), 255, np.uint8)
    table[: len(entries), :3] = entries
    return look_up_colours(indices, table)


def _values_of(file: core.PngFile, channels: int) -> torch.Tensor | None:
    """Returns a tensor with values; None for an index that the palette does not have."""
    dtype = torch.uint16 if file.depth == 16 else torch.uint8
    count = file.whole_bytes // dtype.itemsize
    made = torch.empty((file.height, file.width, channels), dtype=dtype)
    out = made.numpy()
    whole = out if channels == count else np.empty((*out.shape[:2], count), out.dtype)
    core.decode_png(file, whole.view(np.uint8), whole=True)
    if file.colour == _PALETTE and channels > 1:
        coloured = _colours_of(file, whole)
        if coloured is None:
            return None
        out[...] = coloured[..., :channels]
    elif whole is not out:
        _convert(whole, out)
    return made.permute(2, 0, 1)


def _convert(samples: Array, out: Array) -> None:
    """Writes samples to an array with another number of channels: gray as three colours, with alpha or without."""
    count, channels = samples.shape[2], out.shape[2]
    colours = min(channels, 3) if channels > 2 else 1
    out[..., :colours] = samples[..., : 1 if count < 3 else colours]
    if channels % 2 == 0:
        out[..., -1] = samples[..., -1] if count % 2 == 0 else np.iinfo(out.dtype).max


@functools.cache
def _find_channels(kind: Kind, plain: Decoder) -> int | None:
    """Returns the number of channels that a library's function makes of a kind; None if `_make` makes other values."""
    if not hasattr(torch, "uint16"):
        return None
    channels = None
    for seed in range(3):
        encoded = sample_png(kind.colour, kind.depth, seed)
        expected = plain(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), *kind.arguments)
        channels = expected.shape[0]
        file, door = core.PngFile(encoded), Door("", "")
        for made in (_make(file, channels, ImageCounts(), door), _values_of(file, channels)):
            if made is None or (made.dtype, made.shape, made.stride()) != (
                expected.dtype,
                expected.shape,
                expected.stride(),
            ):
                return None
            if not np.array_equal(made.numpy(), expected.numpy()):
                return None
    return channels

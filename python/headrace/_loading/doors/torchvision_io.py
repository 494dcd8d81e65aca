"""Versions of the functions that decode images to tensors, torchvision.io's and torchcodec's: of JPEGs and PNGs,
deferred ones.

What programs call checks its arguments, and calls a function of torch.ops with the file's bytes. That one is replaced;
so errors, warnings, and copies of the public functions that a program has imported stay what they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from headrace._base.native import core
from headrace._base.types import Array
from headrace._loading.doors import torchvision_pngs
from headrace._loading.doors.decoder_probe import OTHER_LIBJPEG, SIGNATURE, agrees, why_library_must_decode
from headrace._loading.doors.opencv_pngs import SIGNATURE as PNG_SIGNATURE
from headrace._loading.doors.tensors.deferred_tensor import defer, is_deferring_possible
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout
from headrace._loading.doors.tensors.recording import Origin, Recording, State, table_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.files.jpeg_pixels import JpegPixels
from headrace.pillow.recording.image_counts import Door, ImageCounts, in_force
from headrace.pillow.recording.lazy_core import Operation
from headrace.pillow.recording.patches import Place, Replacements, Version

_UNCHANGED, _GRAY, _RGB = 0, 1, 3  # ImageReadMode


DECODE_IMAGE = Door("torchvision.io.decode_image", "torchvision")
DECODE_JPEG = Door("torchvision.io.decode_jpeg", "torchvision")
DECODE_PNG = Door("torchvision.io.decode_png", "torchvision")
TORCHCODEC_PNG = Door("torchcodec.decoders.decode_png", "torchcodec")
TORCHCODEC = Door("torchcodec.decoders.decode_jpeg", "torchcodec")

_OF_PNGS = DECODE_IMAGE, DECODE_PNG, TORCHCODEC_PNG


def _decoder(door: Door) -> Version:
    """A version of a function that gets bytes, a mode and maybe whether to apply the EXIF orientation."""

    def version(plain: Any) -> Any:
        @functools.wraps(plain)
        def decode(*args: Any) -> Any:
            counts = in_force.here()
            made = None if counts is None else _decode_deferred(plain, counts, door, args)
            return plain(*args) if made is None else made

        return decode

    return version


def _decode_deferred(
    plain: Callable[..., torch.Tensor], counts: ImageCounts, door: Door, args: tuple[Any, ...]
) -> torch.Tensor | None:
    if not args or type(args[0]) is not torch.Tensor or not is_deferring_possible():
        return None
    data, *arguments = (*args, _UNCHANGED) if len(args) == 1 else args
    if data.dtype != torch.uint8 or data.dim() != 1 or data.device.type != "cpu" or not data.is_contiguous():
        return None
    encoded = data.numpy().tobytes()
    if encoded.startswith(PNG_SIGNATURE):
        return torchvision_pngs.decode(plain, encoded, tuple(arguments), counts, door) if door in _OF_PNGS else None
    if door in _OF_PNGS and door is not DECODE_IMAGE:
        return None
    return _decode_jpeg(plain, encoded, tuple(arguments), counts, door)


def _decode_jpeg(
    plain: Callable[..., torch.Tensor], encoded: bytes, arguments: tuple[Any, ...], counts: ImageCounts, door: Door
) -> torch.Tensor | None:
    mode, *orientation = arguments
    if (checking := checks.look()) is not None:
        counts.count(f"of a program that compares types with `is`, in {checking}", door)
        return None
    if not encoded.startswith(SIGNATURE):
        counts.count("not a JPEG", door)
        return None
    try:
        file = core.JpegFile(encoded)
    except core.NeedsPillow as error:
        counts.count(str(error), door)
        return None
    # torchcodec always applies the orientation.
    reason = why_library_must_decode(file, applies_orientation=door is TORCHCODEC or any(orientation))
    found = _mode_of(file, mode)
    if reason is None and (found is None or min(file.width, file.height) < FEWEST):
        reason = "of a mode or size that is decoded whole"
    if reason is None and not _is_decoder_known(plain):
        reason = OTHER_LIBJPEG
    if reason is not None or found is None:
        counts.count(reason, door)
        return None
    opened, operations, channels = found
    size = file.width, file.height
    state = State(
        channels, file.height, file.width, Layout.CHANNELS_LAST, torch.uint8, operations, table_of(channels, ())
    )

    def make() -> torch.Tensor:
        return plain(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), *arguments)

    pixels = JpegPixels(file, size, opened, counts, door)
    pixels.arguments = arguments
    return defer(Recording(Origin(pixels, make), state))


@functools.cache
def _is_decoder_known(plain: Callable[..., torch.Tensor]) -> bool:
    """Whether the installed library decodes as we do."""

    def decode(encoded: bytes) -> Array:
        data = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
        made: Array = plain(data, _RGB).permute(1, 2, 0).numpy()
        return made

    return agrees(decode)


def _mode_of(file: core.JpegFile, mode: object) -> tuple[str, tuple[Operation, ...], int] | None:
    """Returns Pillow's mode of a file, the operations on its pixels, and the number of channels."""
    if file.components == 1:
        return {_UNCHANGED: ("L", (), 1), _GRAY: ("L", (), 1), _RGB: ("L", (("convert", "RGB"),), 3)}.get(mode)  # type: ignore[call-overload, no-any-return]
    return ("RGB", (), 3) if mode in (_UNCHANGED, _RGB) else None


def _image_operators(_: object) -> object:
    """The namespace torch.ops.image, where the compiled part of torchvision is there."""
    return torch.ops.image if hasattr(torch.ops.image, "decode_image") else None


STEPS = Replacements(
    [
        Place("torchvision.io.image", _image_operators, "decode_image", _decoder(DECODE_IMAGE)),
        Place("torchvision.io.image", _image_operators, "decode_jpeg", _decoder(DECODE_JPEG)),
        Place("torchvision.io.image", _image_operators, "decode_png", _decoder(DECODE_PNG)),
        Place("torchcodec.decoders._image_decoders", lambda module: module, "_decode_jpeg", _decoder(TORCHCODEC)),
        Place("torchcodec.decoders._image_decoders", lambda module: module, "_decode_png", _decoder(TORCHCODEC_PNG)),
    ]
)

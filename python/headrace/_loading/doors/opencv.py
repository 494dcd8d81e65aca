"""Versions of `cv2.imread` and `cv2.imdecode`: a PNG, or an RGB or gray JPEG, is decoded into the array that they
return.

OpenCV decodes all else: other formats, CMYK, turned files, colours to gray, a JPEG at a reduced size, damaged files.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from headrace._base.native import core
from headrace._base.types import Array
from headrace._loading.doors import opencv_pngs
from headrace._loading.doors.decoder_probe import OTHER_LIBJPEG, SIGNATURE, agrees, why_library_must_decode
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import Door, in_force
from headrace.pillow.recording.patches import Replacements, function

IMREAD, IMDECODE = Door("cv2.imread", "OpenCV"), Door("cv2.imdecode", "OpenCV")
_UNCHANGED = -1
_COLOR, _ANYDEPTH, _ANYCOLOR, _IGNORE_ORIENTATION, _RGB = 1, 2, 4, 128, 256
_ANY = (_ANYDEPTH, _ANYCOLOR, _ANYDEPTH | _ANYCOLOR)
_KNOWN = {_UNCHANGED, *(kind | turn for kind in (0, _COLOR, _RGB, *_ANY) for turn in (0, _IGNORE_ORIENTATION))}
_BYTES = np.arange(256, dtype=np.uint8)[None]


def _imread(plain: Any) -> Any:
    @functools.wraps(plain)
    def imread(*args: Any, **kwargs: Any) -> Any:
        made = None
        if in_force.here() is not None and args and isinstance(args[0], (str, os.PathLike)):
            flags = _flags_of(args[1:], kwargs)
            encoded = None if flags is None else _read_known(args[0])
            made = None if flags is None or encoded is None else _decode(encoded, flags, IMREAD)
        return plain(*args, **kwargs) if made is None else made

    return imread


def _imdecode(plain: Any) -> Any:
    @functools.wraps(plain)
    def imdecode(*args: Any, **kwargs: Any) -> Any:
        made = None
        if in_force.here() is not None and len(args) == 2 and not kwargs and type(args[0]) is np.ndarray:
            buffer, flags = args[0], _flags_of(args[1:], kwargs)
            if flags is not None and buffer.dtype == np.uint8 and buffer.ndim == 1 and buffer.size:
                made = _decode(buffer.tobytes(), flags, IMDECODE)
        return plain(*args, **kwargs) if made is None else made

    return imdecode


def _flags_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    """Returns the flags of a call; None if OpenCV has to look at its arguments."""
    if len(args) > 1 or kwargs.keys() - {"flags"} or (args and kwargs):
        return None
    flags = args[0] if args else kwargs.get("flags", _COLOR)
    return flags if type(flags) is int and flags in _KNOWN else None


def _read_known(path: Any) -> bytes | None:
    """Returns the bytes of a JPEG or PNG; None for other files, and what cannot be read."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            begin = file.read(len(opencv_pngs.SIGNATURE))
            return begin + file.readall() if begin.startswith((SIGNATURE, opencv_pngs.SIGNATURE)) else None
    except (OSError, ValueError):
        return None


def _decode(encoded: bytes, flags: int, door: Door) -> Array | None:
    """Returns the pixels as OpenCV would; None if it has to decode the file."""
    counts = in_force.here()
    if counts is not None and encoded.startswith(opencv_pngs.SIGNATURE):
        found = opencv_pngs.decode(encoded, flags, _plain_imdecode())
        counts.count(found if isinstance(found, str) else None, door)
        return None if isinstance(found, str) else found
    if counts is None or not encoded.startswith(SIGNATURE):
        return None
    try:
        file = core.JpegFile(encoded)
        turns = flags != _UNCHANGED and not flags & _IGNORE_ORIENTATION
        reason = why_library_must_decode(file, applies_orientation=turns)
        if reason is None and file.components == 3 and not _keeps_colour(flags):
            reason = "a colour JPEG read as gray"
        if reason is None and not _is_opencv_known():
            reason = OTHER_LIBJPEG
        made = _make_array(file, flags, counts.entry_points) if reason is None else None
    except core.NeedsPillow as error:
        made, reason = None, str(error)
    counts.count(reason, door)
    return made


def _keeps_colour(flags: int) -> bool:
    return flags == _UNCHANGED or bool(flags & (_COLOR | _ANYCOLOR | _RGB))


def _make_array(file: core.JpegFile, flags: int, entry_points: core.EntryPoints | None) -> Array:
    if file.components == 1 and (flags == _UNCHANGED or not flags & (_COLOR | _RGB)):
        gray = np.empty((file.height, file.width), np.uint8)
        plan = {"stages": [], "last": {"box": (0, 0, file.width, file.height)}}
        core.decode_fuse(file, plan, _BYTES, gray[..., None], "channels_last", entry_points)
        return gray
    cv2: Any = sys.modules["cv2"]
    rgbx = pixel_memory.empty_for_a_while((file.height, file.width, 4), np.dtype(np.uint8))
    core.decode_whole(file, rgbx, entry_points)
    # OpenCV's loops for the order of channels: its arrays own their memory, as imread's do.
    made: Array = cv2.cvtColor(rgbx, cv2.COLOR_RGBA2RGB if flags != _UNCHANGED and flags & _RGB else cv2.COLOR_RGBA2BGR)
    return made


@functools.cache
def _is_opencv_known() -> bool:
    """Whether the installed OpenCV decodes as we do."""
    plain = _plain_imdecode()
    return agrees(lambda encoded: plain(np.frombuffer(encoded, np.uint8), _COLOR)[..., ::-1])


def _plain_imdecode() -> Any:
    """OpenCV's own function."""
    cv2: Any = sys.modules["cv2"]
    return getattr(cv2.imdecode, "__wrapped__", cv2.imdecode)


STEPS: Replacements = Replacements(
    [function("cv2", name, version) for name, version in (("imread", _imread), ("imdecode", _imdecode))]
)

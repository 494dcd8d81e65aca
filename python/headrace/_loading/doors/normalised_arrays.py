"""A version of albumentations' `Normalize` for arrays of bytes: a table of its own values, applied in one native pass.

albumentations splits the channels, maps each with `cv2.LUT` and merges them. Its other operations that programs have
after `cv2.imread` (crop, `cv2.resize`, `cv2.flip`, ToTensorV2) are as fast as native ones.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from headrace._base.native import core
from headrace._base.types import Array, Function
from headrace._loading.doors.code_replacement import CodeReplacement
from headrace.pillow.recording.image_counts import in_force

_VERSIONS = ("2.0.", "2.5.")
_CHANNELS = 3
_LEAST = 4096  # pixels of an image: a smaller one costs less than the look for its table


def _apply(plain: Function) -> Function:
    @functools.wraps(plain)
    def apply(self: Any, img: Any, **params: Any) -> Any:
        table = _find_table(plain, self) if in_force.here() is not None and _is_picture(img) else None
        if table is None:
            return plain(self, img, **params)
        made: Array = np.empty(img.shape, np.float32)
        map_bytes(img, table, made)
        return made

    return apply


def _is_picture(img: object) -> bool:
    return (
        type(img) is np.ndarray
        and img.dtype == np.uint8
        and img.ndim == 3
        and img.shape[2] == _CHANNELS
        and img.flags.c_contiguous
        and img.size >= _LEAST * _CHANNELS
    )


def map_bytes(img: Array, table: Array, out: Array) -> None:
    """Writes the entries (3, 256), float32, of the bytes of a contiguous array (H, W, 3) into another one."""
    height, width, _ = img.shape
    plan = {"stages": [], "last": {"box": (0, 0, width, height)}}
    core.fuse(img, plan, table, out, layout="channels_last")


#: What a table depends on -> the table, float32 (3, 256).
_tables: dict[tuple[object, ...], Array] = {}
_MOST_TABLES = 64


def _find_table(plain: Function, normalize: Any) -> Array | None:
    """Returns the values of the 256 bytes; None if they do not define the result."""
    values = vars(normalize)
    mean, denominator = values.get("mean_np"), values.get("denominator")
    known = type(mean) is np.ndarray and type(denominator) is np.ndarray
    if not known or values.get("normalization") != "standard" or not _is_version_known():
        return None
    shapes = {mean.shape, denominator.shape} - {(), (_CHANNELS,)}
    if shapes:  # values that differ between pixels, or another number of channels
        return None
    clip = values.get("clip_range")
    if clip is not None and type(clip) is not tuple:
        return None
    key = (type(normalize), mean.tobytes(), denominator.tobytes(), mean.dtype, denominator.dtype, clip)
    table = _tables.get(key)
    if table is None:
        bytes_ = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], _CHANNELS, axis=2)
        made = plain(normalize, bytes_)
        if type(made) is not np.ndarray or made.dtype != np.float32 or made.shape != bytes_.shape:
            return None
        table = np.ascontiguousarray(made[0].T)
        if len(_tables) >= _MOST_TABLES:
            _tables.clear()
        _tables[key] = table
    return table


@functools.cache
def _is_version_known() -> bool:
    return getattr(sys.modules.get("albumentations"), "__version__", "").startswith(_VERSIONS)


STEPS: CodeReplacement = CodeReplacement("albumentations", "Normalize.apply", _apply)

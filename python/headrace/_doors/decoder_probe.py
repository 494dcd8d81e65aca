"""Whether another library's decoder makes the pixels that ours makes: asked once, with small files.

A build of OpenCV or torchvision may use another libjpeg, whose upsampling or inverse DCT differs.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from headrace._base.native import core
from headrace._base.types import Array

_SIZE = 61, 47  # not a multiple of a block
_SUBSAMPLINGS = (0, 1, 2)  # 4:4:4, 4:2:2, 4:2:0
_QUALITIES = (60, 95)


@functools.cache
def make_probe_files() -> tuple[bytes, ...]:
    """Returns JPEGs of noise at several scales, with each usual subsampling, and a gray one."""
    random = np.random.default_rng(5)
    coarse = Image.fromarray(random.integers(0, 256, (9, 11, 3), dtype=np.uint8)).resize(
        _SIZE, Image.Resampling.BICUBIC
    )
    noise = random.integers(-20, 21, (*_SIZE[::-1], 3))
    image = Image.fromarray(np.clip(np.asarray(coarse).astype(int) + noise, 0, 255).astype(np.uint8))
    kinds = [(image, sampling, quality) for sampling in _SUBSAMPLINGS for quality in _QUALITIES]
    kinds.append((image.convert("L"), 0, 90))
    return tuple(_encode(*kind) for kind in kinds)


def _encode(image: Image.Image, subsampling: int, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", subsampling=subsampling, quality=quality)
    return file.getvalue()


def agrees(decode: Callable[[bytes], Array]) -> bool:
    """Whether a decoder makes our pixels.

    Args:
        decode: returns the RGB pixels of a file, uint8 (height, width, 3).
    """
    for encoded in make_probe_files():
        file = core.JpegFile(encoded)
        ours = np.empty((file.height, file.width, 4), np.uint8)
        core.decode_whole(file, ours)
        if not np.array_equal(decode(encoded), ours[..., :3]):
            return False
    return True

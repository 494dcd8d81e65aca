"""Whether another library's decoder makes the pixels that ours makes: asked once, with small files.

A build of OpenCV or torchvision may use another libjpeg, whose upsampling or inverse DCT differs: torchvision 0.21's
differs for 4:4:0 alone. So only files whose colours are sampled as in the small ones are decoded natively.
"""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable

import numpy as np
from PIL import Image

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.recording.lazy_core import MOST_PIXELS

#: How a JPEG begins.
SIGNATURE = b"\xff\xd8\xff"
#: Why a file is left to its library, of which `agrees` is false.
OTHER_LIBJPEG = "by another libjpeg than ours"
_SIZE = 61, 47  # not a multiple of a block
_SUBSAMPLINGS = (0, 1, 2)  # 4:4:4, 4:2:2, 4:2:0
_QUALITIES = (60, 95)
_SAMPLINGS = tuple(([h, v], [1, 1], [1, 1]) for h, v in ((1, 1), (2, 1), (2, 2)))


@functools.cache
def make_probe_files() -> tuple[bytes, ...]:
    """Returns JPEGs of noise at several scales, with each usual subsampling, and a gray one."""
    random = np.random.default_rng(5)
    coarse = Image.fromarray(random.integers(0, 256, (9, 11, 3), dtype=np.uint8)).resize(
        _SIZE, Image.Resampling.BICUBIC
    )
    noise = random.integers(-20, 21, (*_SIZE[::-1], 3))
    image = Image.fromarray(np.clip(np.asarray(coarse).astype(int) + noise, 0, 255).astype(np.uint8))
    kinds = itertools.product([image], _SUBSAMPLINGS, _QUALITIES, [False, True])
    return tuple(_encode(*kind) for kind in [*kinds, (image.convert("L"), 0, 90, False)])


def _encode(image: Image.Image, subsampling: int, quality: int, progressive: bool) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", subsampling=subsampling, quality=quality, progressive=progressive)
    return file.getvalue()


def why_library_must_decode(file: core.JpegFile, *, applies_orientation: bool) -> str | None:
    """Returns why a plain JPEG is left to its library, whichever that is; None if it is not.

    Args:
        applies_orientation: whether the library turns the image as the file's EXIF orientation says.
    """
    if applies_orientation and file.turned:
        return "turned as its EXIF orientation says"
    if file.components > 1:
        components = core.jpeg_header(file.data)["components"]
        if tuple(sampling for _, *sampling in components) not in _SAMPLINGS:
            return "of unusual sampling"
    return "huge" if file.width * file.height > MOST_PIXELS else None


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

"""The files that doors are compared on."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from headrace._base.native import core
from support import PHOTOS, data_folder, hard_files

FOLDERS = ["photos", "imagenet_dev", "hard_dev"]
_MOST_PIXELS = 50_000_000


def files(folder: str) -> list[Path]:
    """The files of one of FOLDERS, without those that take gigabytes of memory: these decoders have no limit."""
    if folder == "photos":
        return sorted(PHOTOS.glob("*.jpg"))
    found = data_folder(folder)
    if folder == "imagenet_dev":
        return sorted(found.rglob("*.JPEG"))
    return [path for path in hard_files(found) if not _is_bomb(path)]


def _is_bomb(path: Path) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with path.open("rb") as file:
                size = Image.open(file).size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return True
    except Exception:  # compared by the tests
        header = core.jpeg_header(path.read_bytes())
        size = header["width"], header["height"]
    return size[0] * size[1] > _MOST_PIXELS


def opened_jpeg(mode: str = "RGB", size: tuple[int, int] = (61, 47)) -> Image.Image:
    """A smooth image of this (width, height), opened from a JPEG in memory; the same at each call."""
    pixels = np.random.default_rng(size[1]).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).convert(mode).save(file, "JPEG", quality=90)
    return Image.open(file)

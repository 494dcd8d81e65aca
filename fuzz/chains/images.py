"""Collections of images that chains run on; what they need from tests/python is imported here."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "python"))

from support import pictures  # noqa: E402
from torchvision_shim import import_torchvision  # noqa: E402

import_torchvision()

DATA = Path(os.environ.get("HEADRACE_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
EXTREME = ((1, 300), (300, 1), (2, 250), (250, 2), (5, 400), (400, 3), (3, 129), (640, 7))
MOST_PIXELS = 1_500_000  # of a file: the oracle takes too long for larger ones


def _encoded(image: Image.Image, number: int) -> bytes:
    out = BytesIO()
    if number % 3 == 2:
        image.save(out, "PNG")
    else:
        image.save(out, "JPEG", quality=70 + number % 25, subsampling=number % 3, progressive=number % 5 == 4)
    return out.getvalue()


@functools.cache
def _of_sizes(sizes: tuple[tuple[int, int], ...]) -> tuple[bytes, ...]:
    """The photographs, resized to each of these sizes and encoded in several ways; some gray, some of few colours."""
    made, sources = [], [Image.open(BytesIO(data)).convert("RGB") for data in pictures(12)]
    for number, size in enumerate(sizes):
        image = sources[number % len(sources)].resize(size, Image.Resampling.BOX)
        if number % 7 == 3:
            image = image.convert("L")
        elif number % 7 == 5:
            image = image.quantize(2 + number % 4).convert("RGB")
        made.append(_encoded(image, number))
    return tuple(made)


@functools.cache
def _files(folder: str) -> tuple[bytes, ...]:
    found = []
    for path in sorted(path for path in (DATA / folder).rglob("*") if path.is_file() and path.suffix != ".tsv"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                width, height = Image.open(path).size
            except Exception:  # a broken file: the loader must refuse it, too
                width = height = 1
        if width * height <= MOST_PIXELS:
            found.append(path.read_bytes())
    return tuple(found)


@functools.cache
def _pixels(channels: int, sizes: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Arrays of 40 images of one size."""
    made = []
    for number in range(sizes):
        size = (28, 28) if number == 0 else (32, 32) if number == 1 else (5 + 11 * number % 37, 3 + 17 * number % 41)
        small = [Image.open(BytesIO(data)).convert("RGB").resize(size) for data in pictures(24)]
        stack = np.stack([np.asarray(one if channels == 3 else one.convert("L")) for one in small])
        noise = np.random.default_rng(number).integers(0, 256, (16, *stack.shape[1:]), np.uint8)
        made.append(np.concatenate([stack, noise]))
    return tuple(made)


Source = Callable[[tuple[int, ...], Any], Any]


def _encoded_source(blobs: Callable[[], tuple[bytes, ...]], mode: str = "RGB") -> tuple[Callable[[], int], Source]:
    def source(picked: tuple[int, ...], transform: Any) -> Any:
        return headrace.EncodedImages([blobs()[number] for number in picked], None, transform, mode=mode)

    return lambda: len(blobs()), source


def _array_source(channels: int, sizes: int = 8) -> tuple[Callable[[], int], Source]:
    def source(picked: tuple[int, ...], transform: Any) -> Any:
        of_one_size = _pixels(channels, sizes)[picked[0] % sizes]
        return headrace.ImageArray(of_one_size[[number // sizes for number in picked]], None, transform)

    return lambda: 40 * sizes, source


_TINY = tuple((1 + number % 16, 1 + number * 7 // 16 % 16) for number in range(160))

#: Name -> (number of images, a dataset of some of them with a transform).
POOLS: dict[str, tuple[Callable[[], int], Source]] = {
    "photographs": _encoded_source(lambda: pictures(48)),
    "gray": _encoded_source(lambda: pictures(48), "L"),
    "tiny": _encoded_source(lambda: _of_sizes(_TINY)),
    "tiny gray": _encoded_source(lambda: _of_sizes(_TINY), "L"),
    "extreme": _encoded_source(lambda: _of_sizes(EXTREME * 3)),
    "arrays": _array_source(3),
    "gray arrays": _array_source(1),
    "imagenet_dev": _encoded_source(lambda: _files("imagenet_dev")),
    "hard_dev": _encoded_source(lambda: _files("hard_dev")),
}
SHARES = {"photographs": 30, "gray": 8, "tiny": 16, "tiny gray": 5, "extreme": 12, "arrays": 13, "gray arrays": 7}
OF_DATA = {"imagenet_dev": 3, "hard_dev": 6}


def shares() -> dict[str, int]:
    """How often each collection is drawn; without those whose files are missing."""
    return SHARES | {name: share for name, share in OF_DATA.items() if (DATA / name).is_dir()}


def dataset(pool: str, picked: tuple[int, ...], transform: Any) -> Any:
    """Returns a dataset of some images of a pool."""
    return POOLS[pool][1](picked, transform)

"""The images of a soak: small files of several kinds, drawn from a seed, and the datasets that hold them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace

DAMAGED_EVERY = 37  # of the dataset "damaged"


def encoded(number: int) -> bytes:
    """Returns image `number`: waves, some 40 pixels wide and high. Mostly baseline JPEG; some are progressive, gray,
    CMYK, with restart markers, PNG or WebP."""
    draw = np.random.default_rng(number)
    height, width = draw.integers(24, 56, 2)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x * a + y * b + c) for a, b, c in draw.uniform(0.05, 0.9, (3, 3))]
    pixels = np.clip(128 + 90 * np.stack(waves, -1) + draw.normal(0, 12, (height, width, 3)), 0, 255).astype(np.uint8)
    image, out = Image.fromarray(pixels), io.BytesIO()
    options: dict[str, Any] = {"quality": int(draw.integers(60, 96)), "subsampling": number % 3}
    kind = number % 32
    if kind == 5:
        image.save(out, "PNG")
    elif kind == 11:
        image.save(out, "WEBP", lossless=True)
    elif kind == 17:
        image.convert("CMYK").save(out, "JPEG", quality=90)
    elif kind in (3, 19):
        image.convert("L").save(out, "JPEG", quality=90)
    elif kind in (7, 23):
        image.save(out, "JPEG", progressive=True, **options)
    elif kind in (9, 25):
        image.save(out, "JPEG", restart_marker_blocks=2, **options)
    else:
        image.save(out, "JPEG", optimize=kind % 2 == 0, **options)
    return out.getvalue()


class Material:
    """Encoded images in memory, as files and in tar shards, below one folder.

    Args:
        folder: where the files are written, unless they are there.
        count: number of images.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.images = [encoded(number) for number in range(count)]
        self.labels = list(range(count))
        self.paths = [folder / "files" / f"{number:05}.img" for number in range(count)]
        self.shards = [folder / "shards" / f"{number}.tar" for number in range(4)]
        done = folder / f"complete-{count}"
        if not done.exists():
            self._write()
            done.touch()

    def _write(self) -> None:
        for path, data in zip(self.paths, self.images, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        each = -(-self.count // len(self.shards))
        for shard, path in enumerate(self.shards):
            path.parent.mkdir(exist_ok=True)
            with tarfile.open(path, "w") as archive:
                for number in range(shard * each, min(self.count, (shard + 1) * each)):
                    for name, data in ((f"{number:05}.jpg", self.images[number]), (f"{number:05}.cls", b"%d" % number)):
                        member = tarfile.TarInfo(name)
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))

    def damaged(self, index: int) -> bool:
        """Whether the dataset "damaged" holds half of this image only."""
        return index % DAMAGED_EVERY == 0

    def dataset(self, source: str, transform: Any) -> Any:
        """Returns a dataset of all images, whose labels are their numbers."""
        return _SOURCES[source](self, transform)


def _files(material: Material, transform: Any) -> Any:
    return headrace.ImageFiles(material.paths, material.labels, transform)


def _memory(material: Material, transform: Any) -> Any:
    return headrace.EncodedImages(material.images, material.labels, transform)


def _shards(material: Material, transform: Any) -> Any:
    return headrace.TarShards([str(path) for path in material.shards], transform=transform, index=False)


def _indexed_shards(material: Material, transform: Any) -> Any:
    return headrace.TarShards([str(path) for path in material.shards], transform=transform, index=material.folder / "i")


def _damaged(material: Material, transform: Any) -> Any:
    images = [one[: len(one) // 2] if material.damaged(i) else one for i, one in enumerate(material.images)]
    return headrace.EncodedImages(images, material.labels, transform)


_SOURCES: dict[str, Callable[[Material, Any], Any]] = {
    "files": _files,
    "memory": _memory,
    "shards": _shards,
    "indexed shards": _indexed_shards,
    "damaged": _damaged,
}

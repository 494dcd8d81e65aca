"""Changes files at random, many at a time, and keeps those that differ."""

from __future__ import annotations

import hashlib
import io
import random
from pathlib import Path

import numpy as np
from PIL import Image

from fuzz.jpegs.differential import RECIPES, Oracle
from fuzz.jpegs.mutations import mutated
from fuzz.jpegs.structure import Part, joined, parts_of
from headrace._base.native import core

CORPUS = Path(__file__).parents[1] / "corpus"


def seeds() -> list[list[Part]]:
    """Returns the files that changes begin with: the corpus of the parsers, and a few larger ones."""
    found = [path.read_bytes() for path in sorted(CORPUS.glob("*.jpg"))]
    noise = np.random.default_rng(0).integers(0, 256, (40, 56, 3), np.uint8)
    for number in range(6):
        out = io.BytesIO()
        smooth = Image.fromarray(noise).resize((50 + number, 41), Image.Resampling.BICUBIC)
        options = {"restart_marker_blocks": number} if number % 2 else {"optimize": True}
        smooth.save(out, "JPEG", quality=40 + 10 * number, subsampling=number % 3, progressive=number > 3, **options)
        found.append(out.getvalue())
    return [parts_of(data) for data in found]


class Campaign:
    """Compares changed files with Pillow.

    Args:
        seed: of the changes.
        found: folder for files that differ.

    Attributes:
        files: number of changed files; of these `refused` are no images, by Pillow.
        comparisons: files times sets of loops.
        differences: (name in `found`, what differs).
    """

    def __init__(self, seed: int, found: Path) -> None:
        self._draw, self._found, self._seeds = random.Random(seed), found, seeds()
        self.files = self.refused = self.comparisons = 0
        self.differences: list[tuple[str, str]] = []

    def __str__(self) -> str:
        return (
            f"{self.files} files, {self.refused} of them refused by both, {self.comparisons} comparisons; "
            f"{len(self.differences)} differ"
        )

    def round(self, count: int = 128) -> None:
        """Compares `count` more files."""
        draw = self._draw
        files = [joined(mutated(draw, draw.choice(self._seeds), self._seeds)) for _ in range(count)]
        recipe = draw.choice([*RECIPES])
        oracle = Oracle(files, recipe, draw.randrange(2**31))
        self.files, self.refused = self.files + count, self.refused + len(oracle.errors)
        for isa in core.isas():
            self.comparisons += count
            for one in oracle.differences(isa, draw.choice((0, 2))):
                data = files[one.number]
                name = f"{hashlib.sha256(data).hexdigest()[:16]}.jpg"
                self._found.mkdir(parents=True, exist_ok=True)
                (self._found / name).write_bytes(data)
                self.differences.append((name, f"{recipe}, {one.said}"))
                print(f"{self._found / name}: {recipe}, {one.said}", flush=True)

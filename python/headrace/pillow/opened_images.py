"""What became of opened images: how many got native pixels, why others did not, and which have no pixels yet."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ImageCounts:
    """Numbers of images whose pixels were made.

    Attributes:
        native: by headrace.
        by_pillow: by Pillow, keyed by the reason.
    """

    native: int = 0
    by_pillow: Counter[str] = field(default_factory=Counter)

    def add(self, more: ImageCounts) -> None:
        """Adds the counts of other images."""
        self.native += more.native
        self.by_pillow.update(more.by_pillow)

    def __str__(self) -> str:
        total = self.native + self.by_pillow.total()
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.by_pillow.most_common())
        return f"{self.native} of {total} images natively" + (f"; by Pillow: {reasons}" if reasons else "")


class OpenedImages:
    """The images that one opener opens.

    Args:
        tracks: whether `make_all` will be called.

    Attributes:
        counts: of the images since the last `take`.
    """

    def __init__(self, *, tracks: bool) -> None:
        self.counts = ImageCounts()
        self._tracks = tracks
        self._without_pixels: list[weakref.ref[Any]] = []

    def count(self, reason: str | None) -> None:
        """Counts an image with native pixels or, with a reason, one that Pillow decodes."""
        if reason is None:
            self.counts.native += 1
        else:
            self.counts.by_pillow[reason] += 1

    def track(self, lazy: Any) -> None:
        """Remembers an image without pixels, an object with a method ``made()``, by a weak reference."""
        if self._tracks:
            self._without_pixels.append(weakref.ref(lazy))

    def make_all(self) -> None:
        """Makes the pixels of all images that are still in use, as if they had been opened by Pillow.

        Raises:
            OSError: a file is damaged; Pillow's error.
        """
        waiting, self._without_pixels = self._without_pixels, []
        for one in waiting:
            lazy = one()
            if lazy is not None:
                lazy.made()

    def take(self) -> ImageCounts:
        """Returns the counts since the last call."""
        taken, self.counts = self.counts, ImageCounts()
        return taken

"""Counts of opened images: how many got native pixels, and why others did not; and what counts them now."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class ImageCounts:
    """Numbers of images whose pixels were made.

    Attributes:
        native: by headrace.
        by_pillow: by Pillow, keyed by the reason.
        crops_expected: number of crops of the newest file, if it is like the file before.
    """

    native: int = 0
    by_pillow: Counter[str] = field(default_factory=Counter)
    crops_expected: int = field(default=0, compare=False)
    _crops: int = field(default=0, compare=False, repr=False)

    def crop(self, number: int) -> None:
        """Called with the number of a crop of its file, from 1."""
        if number == 1:
            self.crops_expected = self._crops
        self._crops = number

    def count(self, reason: str | None) -> None:
        """Counts an image with native pixels or, with a reason, one that Pillow decodes."""
        if reason is None:
            self.native += 1
        else:
            self.by_pillow[reason] += 1

    def add(self, more: ImageCounts) -> None:
        """Adds the counts of other images."""
        self.native += more.native
        self.by_pillow.update(more.by_pillow)

    @property
    def any(self) -> bool:
        """Whether an image was counted."""
        return bool(self.native or self.by_pillow)

    def take(self) -> ImageCounts:
        """Returns the counts, and begins at 0 again."""
        taken = ImageCounts(self.native, self.by_pillow)
        self.native, self.by_pillow = 0, Counter()
        return taken

    def __str__(self) -> str:
        total = self.native + self.by_pillow.total()
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.by_pillow.most_common())
        return f"{self.native} of {total} images natively" + (f"; by Pillow: {reasons}" if reasons else "")


class InForce:
    """Whether images are opened deferred: in all threads of this process, or in some.

    Attributes:
        uses: number of `deferred` blocks and installations, which hold for all threads.
        counts: of the images opened for these.
        threads: counts of the images opened inside `deferred_here`, by thread.
    """

    def __init__(self) -> None:
        self.uses = 0
        self.counts: ImageCounts = ImageCounts()
        self.threads: dict[int, ImageCounts] = {}

    def here(self) -> ImageCounts | None:
        """Returns what counts the images that this thread opens; None if it opens them as usual."""
        if self.threads:
            found = self.threads.get(threading.get_ident())
            if found is not None:
                return found
        return self.counts if self.uses else None


in_force: InForce = InForce()

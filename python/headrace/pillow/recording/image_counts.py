"""Counts of opened images: how many got native pixels, and why others did not; what counts them now, and what is known
of their rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headrace._base.native import core
from headrace._base.types import State
from headrace._media.video.decoding_cost import say_origins

if TYPE_CHECKING:
    from headrace._storage.video_indexes.shared_indexes import SharedIndexes

T = TypeVar("T")


class Door(NamedTuple):
    """A function through which programs get images, and the library that decodes what headrace does not."""

    name: str
    library: str


PILLOW = Door("PIL.Image.open", "Pillow")
#: Why a worker made pixels where the main process could have made them, if nothing else is known.
LOOKED_AT = "a program has looked at their pixels, or collates them itself"
NO_JPEGS = "their files are not JPEGs"


@dataclass
class ImageCounts:
    """Numbers of images whose pixels were made, for a loader or a worker of it.

    Attributes:
        natively: by headrace, keyed by the name of the door.
        by_others: by other libraries, keyed by the library and the reason.
        here: of `natively`, where images are to be recorded for the main process, those that it does not make; keyed by
            the reason.
        recorded: whose records were sent to the main process, which makes them natively, keyed as `natively`.
        fields: where the images of a batch are made, by the field of the batch: a sentence, of the newest batch.
        keeps_records: whether images are to be recorded as far as possible, for the main process.
        crops_expected: number of crops of the newest file, if it is like the file before.
        origins: numbers of videos that were opened first here, by where their indexes come from: "learned", "memory",
            "folder".
        small_tensors: number of tensors that reached the main process by memory that its workers have mapped, so far;
            these are in no image's count.
        has_large_tensors: whether others came in memory that is used again, so far.
        entry_points: where the rows of JPEGs begin, to use and to learn; None: nothing is learned. Copies have none.
        indexes: of videos, shared with other processes; None: they are not. Copies have none.
    """

    natively: Counter[str] = field(default_factory=Counter)
    by_others: Counter[tuple[str, str]] = field(default_factory=Counter)
    here: Counter[str] = field(default_factory=Counter)
    recorded: Counter[str] = field(default_factory=Counter)
    fields: dict[str, str] = field(default_factory=dict)
    origins: Counter[str] = field(default_factory=Counter)
    small_tensors: int = field(default=0, compare=False)
    has_large_tensors: bool = field(default=False, compare=False)
    keeps_records: bool = field(default=False, compare=False)
    crops_expected: int = field(default=0, compare=False)
    entry_points: core.EntryPoints | None = field(default=None, compare=False, repr=False)
    indexes: SharedIndexes | None = field(default=None, compare=False, repr=False)
    _crops: int = field(default=0, compare=False, repr=False)

    def __getstate__(self) -> State:
        return {**vars(self), "entry_points": None, "indexes": None}

    @property
    def native(self) -> int:
        """Of all doors."""
        return self.natively.total() + self.recorded.total()

    @property
    def total(self) -> int:
        return self.native + self.by_others.total()

    def crop(self, number: int) -> None:
        """Called with the number of a crop of its file, from 1."""
        if number == 1:
            self.crops_expected = self._crops
        self._crops = number

    def count(self, reason: str | None, door: Door = PILLOW, why_here: str = LOOKED_AT) -> None:
        """Counts an image with native pixels or, with a reason, one that the door's library decodes.

        Args:
            why_here: why the main process does not make the native pixels.
        """
        if reason is None:
            self.natively[door.name] += 1
            if self.keeps_records:
                self.here[why_here] += 1
        else:
            self.by_others[door.library, reason] += 1

    def count_index(self, origin: str) -> None:
        """Counts a video by where its index comes from; "": it was known."""
        if origin:
            self.origins[origin] += 1

    def add(self, more: ImageCounts) -> None:
        """Adds the counts of other images."""
        self.natively.update(more.natively)
        self.by_others.update(more.by_others)
        self.here.update(more.here)
        self.recorded.update(more.recorded)
        self.fields.update(more.fields)
        self.origins.update(more.origins)

    @property
    def any(self) -> bool:
        """Whether an image was counted, or an index."""
        return bool(self.natively or self.by_others or self.recorded or self.origins)

    def take(self) -> ImageCounts:
        """Returns the counts, and begins at 0 again."""
        taken = ImageCounts(self.natively, self.by_others, self.here, self.recorded, self.fields, self.origins)
        self.natively, self.by_others, self.here = Counter(), Counter(), Counter()
        self.recorded, self.fields, self.origins = Counter(), {}, Counter()
        return taken

    def by_library(self) -> dict[str, dict[str, int]]:
        """Returns the numbers of images that other libraries decoded, by library and reason, the largest first."""
        found: dict[str, dict[str, int]] = {}
        for (library, reason), count in self.by_others.most_common():
            found.setdefault(library, {})[reason] = count
        return found

    def __str__(self) -> str:
        by_door = self.natively + self.recorded
        doors = ", ".join(f"{count} by {name}" for name, count in by_door.most_common())
        text = f"{self.native} of {self.total} images natively"
        if by_door.keys() - {PILLOW.name}:
            text += f" ({doors})"
        if self.recorded:
            text += f", {self.recorded.total()} of them from records"
        for reason, count in self.here.most_common():
            text += f", {count} where the dataset runs, because {reason}"
        for library, reasons in self.by_library().items():
            text += f"; by {library}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        return text + say_origins(*(self.origins[one] for one in ("learned", "memory", "folder")))


class InForce:
    """Whether images are opened deferred: in all threads of this process, or in some.

    Attributes:
        uses: number of `deferred` blocks and installations, which hold for all threads.
        counts: of the images opened for these.
        threads: counts of the images opened inside `deferred_here`, by thread; None: it opens them as usual.
        asked: how often `here` was called: by each replaced function that may open an image.
    """

    def __init__(self) -> None:
        self.uses: int = 0
        self.asked: int = 0
        self.counts: ImageCounts = ImageCounts()
        self.threads: dict[int, ImageCounts | None] = {}

    def here(self) -> ImageCounts | None:
        """Returns what counts the images that this thread opens; None if it opens them as usual."""
        self.asked += 1
        if self.threads:
            thread = threading.get_ident()
            if thread in self.threads:
                return self.threads[thread]
        return self.counts if self.uses else None

    def call_as_usual(self, function: Callable[[], T]) -> T:
        """Returns what a function returns, which opens images as usual."""
        thread = threading.get_ident()
        before = {thread: self.threads[thread]} if thread in self.threads else {}
        self.threads[thread] = None
        try:
            return function()
        finally:
            self.threads.pop(thread, None)
            self.threads |= before


in_force: InForce = InForce()

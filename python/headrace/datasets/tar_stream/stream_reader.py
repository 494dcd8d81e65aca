"""The samples of a rank's segments, in order, and where the reading is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from headrace._base import messages
from headrace._storage.remote.clients.responses import Stamp
from headrace._storage.remote.remote_files import RemoteFiles
from headrace.datasets.tar_stream.read_ahead import Pieces
from headrace.datasets.tar_stream.shard_plan import Plan, Segment
from headrace.datasets.tar_stream.tar_parser import ShardSamples, StreamSample, Wanted


class At(NamedTuple):
    """Where to read on.

    Attributes:
        segment: number of the segment in the epoch.
        passed: number of its samples that were read, those that it skips included.
        begin: offset of what follows them; 0 if none was read.
        shard: number of the shard that `begin` is in; -1 if none was read.
    """

    segment: int = 0
    passed: int = 0
    begin: int = 0
    shard: int = -1


class Reading:
    """Iterator over samples.

    Args:
        files, stamps: the shards; see Pieces.
        wanted: what of each sample.
        plan, seed, epoch: the segments.
        at: where to begin.

    Attributes:
        at: where the next sample is.
    """

    def __init__(
        self,
        files: RemoteFiles,
        stamps: dict[int, Stamp],
        wanted: Wanted,
        plan: Plan,
        seed: int,
        epoch: int,
        at: At,
    ) -> None:
        self._files, self._wanted, self._plan = files, wanted, plan
        self.at: At = at
        self._segments: dict[int, Segment] = {}
        self._shard: ShardSamples | None = None
        self._pieces = Pieces(files, stamps, _note_segments(plan.segments(seed, epoch), at, self._segments))

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> StreamSample:
        while True:
            if self._shard is not None:
                sample = self._next_in_shard(self._shard)
                if sample is not None:
                    return sample
            piece = next(self._pieces)
            segment = self._segments[piece.segment]
            if self._shard is None:
                shown = self._files.shown_of(segment.shard)
                self._shard = ShardSamples(self._wanted, shown, segment.turn, segment.shard, piece.begin, piece.size)
            self._shard.append(piece.data, piece.size)

    def _next_in_shard(self, shard: ShardSamples) -> StreamSample | None:
        """Returns the shard's next sample of this rank; None: bytes are needed, or the next shard."""
        number = self.at.segment
        segment, each = self._segments[number], self._plan.each
        while True:
            count = None if segment.take is None else segment.skip + segment.take
            to_its_end = each is None or count == each[segment.shard]
            if not to_its_end and self.at.passed == count:
                self._end_segment(number)
                return None
            sample = shard.next()
            if sample is None:
                if not shard.ended:
                    return None
                self._check_end(shard, segment)
                self._end_segment(number)
                return None
            self.at = At(number, self.at.passed + 1, sample.end, segment.shard)
            if each is not None and self.at.passed > each[segment.shard]:
                self._refuse_count(segment, f"more than the {each[segment.shard]}")
            if self.at.passed > segment.skip:
                return sample

    def _end_segment(self, number: int) -> None:
        self._pieces.leave(number)  # what follows is not read: the part of another rank, or padding after the end
        self._shard = None
        self._segments.pop(number - 1, None)
        self.at = At(number + 1)

    def _check_end(self, shard: ShardSamples, segment: Segment) -> None:
        each = self._plan.each
        if each is not None and self.at.passed != each[segment.shard]:
            self._refuse_count(segment, f"{self.at.passed}, not the {each[segment.shard]}")
        if not shard.has_end:
            messages.warn(
                f"{self._files.shown_of(segment.shard)} has no end-of-archive marker: it may have been cut between two "
                "members"
            )

    def _refuse_count(self, segment: Segment, found: str) -> None:
        raise ValueError(
            f"{self._files.shown_of(segment.shard)} has {found} samples that length= says; the ranks would deliver "
            "some samples twice or not at all: count them again"
        )

    def close(self) -> None:
        """Ends the requests."""
        self._pieces.close()


def _note_segments(segments: Iterator[Segment], at: At, noted: dict[int, Segment]) -> Iterator[tuple[int, int, int]]:
    """Yields what Pieces takes, and notes each segment. It does not refer to the Reading, which ends the requests when
    it is dropped."""
    for number, segment in itertools.islice(enumerate(segments), at.segment, None):
        noted[number] = segment
        yield number, segment.shard, at.begin if number == at.segment else 0

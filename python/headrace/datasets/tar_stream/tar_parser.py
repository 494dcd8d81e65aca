"""Samples of a shard, put together as its members arrive."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from headrace._base.native import core
from headrace._storage.remote.clients.responses import UNKNOWN_SIZE
from headrace.datasets.tar_stream.sample_number import MOST_BYTES, StreamPosition


@dataclass(frozen=True, slots=True)
class StreamSample:
    """A sample and its bytes.

    Attributes:
        number: see StreamPosition.
        end: offset after its last member.
        key, extension: the name of its image.
        offset: of the image's bytes in the shard.
        data: the image, encoded.
        labels: the bytes of the wanted labels by their extensions.
    """

    number: int
    end: int
    key: str
    extension: str
    offset: int
    data: core.SharedBytes
    labels: Mapping[str, bytes]


@dataclass(frozen=True)
class Wanted:
    """What of a sample is wanted.

    Attributes:
        images: extensions, the preferred one first.
        labels: extensions, all of which a sample must have.
        skip: whether samples that lack something are left out, instead of being an error.
    """

    images: tuple[str, ...]
    labels: tuple[str, ...]
    skip: bool


class ShardSamples:
    """The samples of a shard, from the bytes that follow each other from `begin` on.

    Args:
        wanted: what of each sample.
        shown: the shard, in messages.
        turn, shard, begin: as in StreamPosition.
        size: of the shard.
    """

    def __init__(self, wanted: Wanted, shown: str, turn: int, shard: int, begin: int, size: int) -> None:
        if size > MOST_BYTES:
            raise ValueError(f"{shown}: a shard has {MOST_BYTES} bytes at most, and this one has {size}")
        self._wanted, self._shown, self._turn, self._shard = wanted, shown, turn, shard
        self._names = [name.encode(errors="surrogateescape") for name in (*wanted.images, *wanted.labels)]
        self._tar = core.ArrivingTar(size, begin, self._names)
        self._size, self._arrived = size, begin
        self._late: deque[tuple[int, bytes | core.SharedBytes]] = deque()  # end, bytes: not passed, size unknown
        self._key, self._begin = b"", begin
        self._members: dict[str, tuple[int, core.SharedBytes]] = {}
        self.ended: bool = False
        self._passed = 0  # members of an archive of unknown size that are macOS's metadata

    @property
    def has_end(self) -> bool:
        """Once it has ended: whether the shard has its marker of the end."""
        return self._tar.has_end

    def append(self, data: bytes | core.SharedBytes, size: int) -> None:
        """Adds the bytes that follow. `size`: of the shard, which may become known with its last bytes."""
        if size == self._size:
            self._tar.append(data)
        if self._size != UNKNOWN_SIZE:
            return
        self._arrived += len(data)
        self._late.append((self._arrived, data))
        while self._late and self._late[0][0] <= self._tar.position:
            self._late.popleft()
        if size != UNKNOWN_SIZE and not self.ended:
            self._set_size(size)

    def _set_size(self, size: int) -> None:
        """Walks on as in an archive of this size."""
        position, self._size = self._tar.position, size
        self._passed = self._tar.passed
        rest = b"".join(bytes(data) for _, data in self._late)
        self._tar = core.ArrivingTar(size, position, self._names)
        self._tar.append(rest[len(rest) - (self._arrived - position) :])
        self._late.clear()

    def next(self, last: bool = False) -> StreamSample | None:
        """Returns the next sample that is complete; None: bytes are needed, or it has ended.

        Args:
            last: whether no more bytes come, so that a sample is complete as it is.

        Raises:
            ValueError: the shard is damaged, or a sample lacks something; the message names the shard and the position.
        """
        while not self.ended:
            try:
                member = self._tar.next()
            except ValueError as error:
                raise ValueError(f"{self._shown}: {error}") from None
            if member is None and not last:
                return None
            if not member:
                from headrace.datasets.tar_shards.tar_index import note_passed_members

                self.ended = True
                note_passed_members(self._shown, self._passed + self._tar.passed)
                made = self._make_sample(self._tar.position)
            else:
                key, extension, begin, offset, data = member
                made = None
                if key != self._key:
                    made = self._make_sample(begin)
                    self._key, self._begin, self._members = key, begin, {}
                if data is not None:
                    self._members[os.fsdecode(extension)] = offset, data
            if made is not None:
                return made
        return None

    def _make_sample(self, end: int) -> StreamSample | None:
        """Returns the sample whose members are known; None: there is none, or it lacks something and is skipped."""
        if not self._key:
            return None
        wanted, members = self._wanted, self._members
        image = next((name for name in wanted.images if name in members), None)
        lacking = wanted.images[:4] if image is None else [name for name in wanted.labels if name not in members]
        key = os.fsdecode(self._key)
        if image is None or lacking:
            if wanted.skip:
                return None
            raise ValueError(
                f"{self._shown}: the sample {key!r} at byte {self._begin} has no {' or '.join(lacking)}; give another "
                '`image` or `label`, or missing="skip"'
            )
        labels = {name: bytes(members[name][1]) for name in wanted.labels}
        number = StreamPosition(self._turn, self._shard, self._begin).number
        return StreamSample(number, end, key, image, *members[image], labels)

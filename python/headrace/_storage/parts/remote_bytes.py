"""A sample's encoded bytes in another machine: an object, or a range of one, of which the needed parts are fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace._storage.parts.sample_bytes import SampleBytes, Span
from headrace._storage.remote.clients.responses import is_strong
from headrace._storage.remote.fetcher import given_up
from headrace._storage.remote.remote_files import RemoteFiles
from headrace._storage.remote.urls import name_object

_BLOCK = 64 << 10  # bytes; what a read that was not announced fetches is a multiple


class RemoteBytes(SampleBytes):
    """An object in another machine, or a range of one. What was fetched stays as long as this does.

    Args:
        files: the objects.
        number: of the object.
        place: the first byte, and the number of bytes; None: the whole object.
        mark: of a tar member's name; 0: none is compared.
    """

    is_far = True

    def __init__(self, files: RemoteFiles, number: int, place: Span | None = None, mark: int = 0) -> None:
        self._files, self._number, self._place, self._mark = files, number, place, mark
        self._begin = 0 if place is None else place[0]
        self.keeps_all = files.cache is not None
        self._is_over: Callable[[], bool] = bool  # of nothing: False
        self._spans: list[tuple[int, bytes]] = []
        self._blocks: dict[int, bytes] = {}

    def open(self, is_over: Callable[[], bool]) -> None:
        files, number, self._is_over = self._files, self._number, is_over
        stamp = files.stamp_of(number, is_over)
        self.size = stamp.size if self._place is None else self._place[1]
        self.key = (files.urls[number], repr(sorted(files.options.items())), stamp, files.owner_of(stamp), self._place)
        self._stamp = stamp

    @property
    def lasting_key(self) -> str | None:
        if not is_strong(self._stamp):
            return None
        named = name_object(self._files.urls[self._number], self._files.options)
        return repr(("object", named, *self._stamp, self._place))

    def check_wanted(self) -> None:
        if self._is_over():
            raise given_up(self._files.shown_of(self._number))

    def check(self) -> None:
        if self._place is not None:
            self._files.check_place(self._number, *self._place, self._mark, self._is_over)

    def fetch(self, spans: Sequence[Span]) -> None:
        wanted = [span for span in spans if span[1] > 0 and self._find_held(*span) is None]
        self._spans += zip([begin for begin, _ in wanted], self._take(wanted), strict=True)

    def read(self, position: int, count: int) -> bytes:
        count = max(0, min(count, self.size - position))
        if count == 0:
            return b""
        if (held := self._find_held(position, count)) is not None:
            return held
        first, last = position // _BLOCK, (position + count - 1) // _BLOCK
        self._fetch_blocks([number for number in range(first, last + 1) if number not in self._blocks])
        made = b"".join(self._blocks[number] for number in range(first, last + 1))
        return made[position - first * _BLOCK : position - first * _BLOCK + count]

    def _find_held(self, position: int, count: int) -> bytes | None:
        for begin, data in self._spans:
            if begin <= position and position + count <= begin + len(data):
                return data[position - begin : position - begin + count]
        return None

    def _fetch_blocks(self, numbers: Sequence[int]) -> None:
        runs: list[tuple[int, int]] = []  # first block, one past the last
        for number in numbers:
            if runs and runs[-1][1] == number:
                runs[-1] = runs[-1][0], number + 1
            else:
                runs.append((number, number + 1))
        spans = [(first * _BLOCK, min(last * _BLOCK, self.size) - first * _BLOCK) for first, last in runs]
        for (first, last), data in zip(runs, self._take(spans), strict=True):
            for number in range(first, last):
                self._blocks[number] = data[(number - first) * _BLOCK : (number - first + 1) * _BLOCK]

    def _take(self, spans: Sequence[Span]) -> list[bytes]:
        places = [(self._begin + begin, count) for begin, count in spans]
        return self._files.take(self._number, places, self._is_over)

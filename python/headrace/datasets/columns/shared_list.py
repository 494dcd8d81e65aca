"""A list whose items are in one buffer: worker processes share its memory, and reading an item writes nothing to it.

Reading an item of Python's list counts a reference in the item, which makes the page of a forked process its own: after
an epoch each worker has a copy of the list. A worker that is spawned has one from the beginning.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, SupportsIndex, TypeVar, overload

import numpy as np

from headrace._base.types import Array

T = TypeVar("T")
_AT_ONCE = 1 << 16  # items that are encoded at a time
_ERRORS = "surrogatepass"  # any str, also names of files that are not UTF-8


class SharedList(Sequence[T]):
    """An immutable list in memory that worker processes share, for a dataset's paths, texts or other samples.

    Items of a list that holds only strings, or only bytes, take their bytes and 8 more. Others are pickled one by one.
    Each access makes a new object, so changes of one are not kept. A slice of consecutive items shares the memory.

    Args:
        items: the items; of a NumPy array, give its ``tolist()``.

    Raises:
        TypeError, AttributeError, pickle.PicklingError: an item cannot be pickled.
    """

    _kind: type  # of the items: str, bytes, or object for any others
    _content: Array
    _ends: Array  # and a zero before them
    _bytes: memoryview  # the same two, quicker than arrays
    _places: memoryview

    def __init__(self, items: Iterable[T]) -> None:
        held = items if isinstance(items, (list, tuple)) else list(items)
        kinds = set(map(type, held))
        self._kind = next(iter(kinds)) if kinds in ({str}, {bytes}) else object
        content, ends = bytearray(), np.zeros(len(held) + 1, np.int64)
        for begin in range(0, len(held), _AT_ONCE):
            encoded = [*map(self._encode, held[begin : begin + _AT_ONCE])]
            ends[begin + 1 : begin + 1 + len(encoded)] = [*map(len, encoded)]
            content += b"".join(encoded)
        self._hold(np.frombuffer(content, np.uint8), np.cumsum(ends, out=ends))

    def _hold(self, content: Array, ends: Array) -> None:
        self._content, self._ends = content, ends
        self._bytes, self._places = content.data, ends.data

    def _encode(self, item: Any) -> bytes:
        if self._kind is str:
            return bytes(item.encode("utf-8", _ERRORS))
        return bytes(item) if self._kind is bytes else pickle.dumps(item, pickle.HIGHEST_PROTOCOL)

    def _at(self, place: int) -> Any:
        found = self._bytes[self._places[place] : self._places[place + 1]]
        if self._kind is str:
            return str(found, "utf-8", _ERRORS)
        return bytes(found) if self._kind is bytes else pickle.loads(found)

    def __len__(self) -> int:
        return len(self._places) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> SharedList[T]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> T | SharedList[T]:
        if isinstance(index, slice):
            return self._slice(range(*index.indices(len(self))))
        place = operator.index(index)
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(f"list index out of range: {index} of {len(self)} items")
        return self._at(place)  # type: ignore[no-any-return]

    def _slice(self, places: range) -> SharedList[T]:
        if places.step != 1:
            return SharedList(map(self._at, places))
        made: SharedList[T] = SharedList(())
        if places:
            ends = self._ends[places.start : places.stop + 1]
            made._kind = self._kind
            made._hold(self._content[ends[0] : ends[-1]], ends - ends[0])
        return made

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Equal to a list or a `SharedList` with equal items."""
        if not isinstance(other, (list, SharedList)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"SharedList([{shown}{', ...' if len(self) > 3 else ''}]), {len(self)} items"

    @property
    def nbytes(self) -> int:
        """Bytes of its memory."""
        return int(self._content.nbytes + self._ends.nbytes)

    def __getstate__(self) -> tuple[type, Array, Array]:
        return self._kind, self._content, self._ends

    def __setstate__(self, state: tuple[type, Array, Array]) -> None:
        self._kind = state[0]
        self._hold(*state[1:])

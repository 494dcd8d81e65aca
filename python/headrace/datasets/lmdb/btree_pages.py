"""Finds the entries of an LMDB database in its file: the pages of its B+ tree, level by level."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._storage.parts.file_reads import stamp_of

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_HEADER = 16  # bytes of a page before the places of its nodes, and of an overflow page before its value
_NODE = 8  # bytes of a node before its key
_BRANCH, _LEAF = 1, 2  # flags of pages
_BIG, _DATABASE, _SEVERAL = 1, 2, 4  # flags of nodes: value on pages of its own, a database, several values
_AT_ONCE = 4096  # pages that are in memory at a time
_EMPTY = 2**64 - 1  # the root of a tree without entries

_TREE = np.dtype(
    {
        "names": ["page_size", "depth", "pages", "entries", "root"],  # pages: branches, leaves, overflow pages
        "formats": ["<u4", "<u2", ("<u8", 3), "<u8", "<u8"],
        "offsets": [0, 6, 8, 32, 40],
    }
)
_META = np.dtype(
    {
        "names": ["magic", "version", "trees", "last", "transaction"],  # trees: free pages, the main database
        "formats": ["<u4", "<u4", (_TREE, 2), "<u8", "<u8"],
        "offsets": [16, 20, 40, 136, 144],
    }
)


class Entries(NamedTuple):
    """All entries of a database, in the order of their keys.

    Attributes:
        keys: the bytes of all keys, concatenated, uint8.
        key_ends: where each key ends in them, int64 (n,).
        offsets, lengths: the place of each value in the file, in bytes, int64 (n,).
        stamp: (size, time of modification in ns) of the file that was read.
    """

    keys: Bytes
    key_ends: Int64s
    offsets: Int64s
    lengths: Int64s
    stamp: tuple[int, int]

    def key(self, number: int) -> bytes:
        return self.keys[self.key_ends[number - 1] if number else 0 : self.key_ends[number]].tobytes()


class _Damaged(ValueError):
    """A page does not say what it must."""


def entries_of(path: str, database: bytes | None) -> Entries:
    """Returns the entries of an LMDB file. Reads the tree's pages; of values on pages of their own, nothing.

    Args:
        path: the data file.
        database: the name of a named database. None: the main one.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no LMDB file of version 1 of a 64-bit little-endian machine, it is damaged, it is written
            to at the same time, or the database has several values a key, or is not there.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a string
        stamp = stamp_of(os.fstat(file.fileno()))
        try:
            found = _Reader(path, file.fileno(), stamp).entries(database)
        except _Damaged as error:
            if stamp_of(os.fstat(file.fileno())) == stamp:
                raise ValueError(f"{path} is damaged: {error}") from None
        if stamp_of(os.fstat(file.fileno())) != stamp:
            raise ValueError(f"{path} is being written to; make the dataset when its writer is done")
    return found


class _Reader:
    def __init__(self, path: str, file: int, stamp: tuple[int, int]) -> None:
        self._path, self._file, self._stamp = path, file, stamp

    def entries(self, database: bytes | None) -> Entries:
        metas = self._meta_pages()
        meta = max(metas, key=lambda one: int(one["transaction"]))
        self._page = int(metas[0]["trees"][0]["page_size"])
        self._last = min(int(meta["last"]), self._stamp[0] // self._page - 1)
        found, flags = self._walk_tree(meta["trees"][1])
        named = {found.key(number): number for number in np.flatnonzero(flags & _DATABASE).tolist()}
        shown = ", ".join(repr(name.decode(errors="backslashreplace")) for name in list(named)[:9])
        if database is not None:
            if database not in named:
                raise ValueError(
                    f"{self._path} has no database {database.decode(errors='backslashreplace')!r}; "
                    + (f"there are {shown}" if named else "it has only the main one: database=None")
                )
            at = int(found.offsets[named[database]])
            found, flags = self._walk_tree(np.frombuffer(self._read(at, _TREE.itemsize), _TREE)[0])
        elif named:
            raise ValueError(f"{self._path} holds named databases; give database= one of {shown}")
        return found

    def _meta_pages(self) -> list[np.void]:
        """Returns the headers of the file, of which the one with the later transaction holds."""
        first = self._read_meta_page(0)
        size = int(first["trees"][0]["page_size"]) if first is not None else 0
        if first is None or size < 512 or size > 1 << 16 or size & (size - 1):
            raise ValueError(f"{self._path} is no LMDB file (data.mdb) of version 1, or of a machine of another kind")
        second = self._read_meta_page(size)
        return [first] if second is None else [first, second]

    def _read_meta_page(self, at: int) -> np.void | None:
        data = os.pread(self._file, _META.itemsize, at)
        if len(data) < _META.itemsize:
            return None
        held: np.void = np.frombuffer(data, _META)[0]
        return held if (held["magic"], held["version"]) == (_MAGIC, _VERSION) else None

    def _walk_tree(self, tree: np.void) -> tuple[Entries, Int64s]:
        """Returns the entries of a tree, and the flags of their nodes."""
        numbers = np.array([] if int(tree["root"]) == _EMPTY else [tree["root"]], np.uint64)
        most = int(tree["pages"][0]) + int(tree["pages"][1])  # branches and leaves
        for _ in range(int(tree["depth"]) - 1):
            below = [_child_pages(pages, self._page) for pages in self._read_pages(numbers, _BRANCH)]
            numbers = np.concatenate(below) if below else numbers
            if len(numbers) > most:
                raise _Damaged("its tree has more pages than its header says")
        nothing = np.zeros(0, np.int64)
        found = [(np.zeros(0, np.uint8), nothing, nothing, nothing, nothing)]
        found += [self._parse_leaves(pages) for pages in self._read_pages(numbers, _LEAF)]
        keys = np.concatenate([one[0] for one in found])
        sizes, offsets, lengths, flags = (np.concatenate([one[part] for one in found]) for part in (1, 2, 3, 4))
        entries = Entries(keys, np.cumsum(sizes), offsets, lengths, self._stamp)
        if len(several := np.flatnonzero(flags & _SEVERAL)):
            key = entries.key(int(several[0]))
            raise ValueError(f"{self._path} has several values of the key {key!r} (MDB_DUPSORT), which is not read")
        if len(offsets) != int(tree["entries"]):
            raise _Damaged(f"its header says {tree['entries']} entries, its tree has {len(offsets)}")
        return entries, flags

    def _read_pages(self, numbers: npt.NDArray[np.uint64], kind: int) -> Iterator[Bytes]:
        """Yields the pages `numbers`, some at a time, checked: uint8 (n, bytes of a page)."""
        if len(numbers) and int(numbers.max()) > self._last:
            raise _Damaged(f"its tree names page {numbers.max()}, after its last one")
        for begin in range(0, len(numbers), _AT_ONCE):
            some = numbers[begin : begin + _AT_ONCE]
            data = b"".join(self._read(number * self._page, self._page) for number in some.tolist())
            pages = np.frombuffer(data, np.uint8).reshape(len(some), self._page)
            if (pages[:, :8].copy().view("<u8")[:, 0] != some).any() or (pages[:, 10] & 3 != kind).any():
                raise _Damaged("a page of its tree is another one than its parent says")
            yield pages

    def _read(self, at: int, count: int) -> bytes:
        data = os.pread(self._file, count, at)
        if len(data) < count:
            raise _Damaged(f"it ends inside the page at byte {at}")
        return data

    def _parse_leaves(self, pages: Bytes) -> tuple[Bytes, Int64s, Int64s, Int64s, Int64s]:
        """Returns of all nodes: the keys, their sizes, the values' places and sizes, the flags."""
        at, heads = _parse_nodes(pages, self._page)
        flat = pages.reshape(-1)
        lengths = heads[:, 0] | heads[:, 1] << 16
        flags, sizes = heads[:, 2], heads[:, 3]
        after_key = at + _NODE + sizes  # the value, or the number of its page
        big = flags & _BIG != 0
        if (after_key + np.where(big, 8, lengths) > (at // self._page + 1) * self._page).any():
            raise _Damaged("an entry is not within its page")
        own = pages[:, :8].copy().view("<i8")[:, 0]  # the pages' numbers
        offsets = own[at // self._page] * self._page + after_key % self._page
        if big.any():
            far = flat[after_key[big][:, None] + np.arange(8)].view("<i8")[:, 0]
            if (far < 0).any() or (far > self._last).any():
                raise _Damaged("a value is after its last page")
            offsets[big] = far * self._page + _HEADER
        if (offsets + lengths > self._stamp[0]).any():
            raise _Damaged("a value is not within the file")
        return flat[_expand_ranges(at + _NODE, sizes)], sizes, offsets, lengths, flags


def _child_pages(pages: Bytes, size: int) -> npt.NDArray[np.uint64]:
    """Returns the numbers of the pages that branches name."""
    _, heads = _parse_nodes(pages, size)
    return (heads[:, 0] | heads[:, 1] << 16 | heads[:, 2] << 32).astype(np.uint64)


def _parse_nodes(pages: Bytes, size: int) -> tuple[Int64s, Int64s]:
    """Returns where the nodes begin, counted from the first page, int64 (n,), and their four numbers, int64 (n, 4)."""
    counts = (pages[:, 12:14].copy().view("<u2")[:, 0].astype(np.int64) - _HEADER) // 2
    if (counts < 0).any() or (_HEADER + 2 * counts > size).any():
        raise _Damaged("a page has more entries than fit")
    flat = pages.reshape(-1)
    starts = np.arange(len(pages)) * size
    inside = flat[_expand_ranges(starts + _HEADER, 2 * counts)].view("<u2").astype(np.int64)
    if (inside + _NODE > size).any():
        raise _Damaged("an entry is not within its page")
    at = np.repeat(starts, counts) + inside
    return at, flat[at[:, None] + np.arange(_NODE)].view("<u2").astype(np.int64)


def _expand_ranges(begins: Int64s, counts: Int64s) -> Int64s:
    """Returns begins[i], begins[i] + 1, ... for counts[i] numbers each."""
    firsts = np.cumsum(counts) - counts
    numbers: Int64s = np.arange(int(counts.sum())) + np.repeat(begins - firsts, counts)
    return numbers

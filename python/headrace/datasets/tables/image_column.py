"""Locates the encoded images of an Arrow column: spans of its buffers, or files and members of zip archives that it
names. Nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.types import Array
from headrace._storage.parts.sample_bytes import HeldBytes, SampleBytes
from headrace.datasets.sources.packed_paths import PackedPaths
from headrace.datasets.tables.access.zip_paths import is_member, spans_of_members
from headrace.datasets.tables.binary_values import BinaryValues, values_of

Int64s = npt.NDArray[np.int64]

# In `ImageColumn.which`: the row names a file; it has neither bytes nor a path; it names a member of a zip archive.
_FILE, _NOTHING, _MEMBER = -1, -2, -3


class ImageColumn:
    """Rows of an Arrow column of images, in a given order.

    The images are bytes, or structs of the fields `bytes` and `path` as Hugging Face's datasets write them. Where
    `bytes` is null, the file `path` is the image, or the stored member of an archive: ``zip://member::archive.zip``.

    Args:
        name: the column's name, for messages.
        column: a ``pyarrow.ChunkedArray``. Its buffers are used in place.
        rows: the rows wanted, int64 (n,), in their order; None: all.
        remedy: what to do about rows without an image, for the message.

    Attributes:
        buffers: the Arrow buffers that hold the images.
        which: int32 (n,), the number of each row's buffer; negative: none.
        begins, sizes: int64 (n,), the place in this buffer, in bytes.

    Raises:
        TypeError: the column holds no encoded images, or several a row.
        ValueError: a row has neither bytes nor a path, or names a file on another machine, or a member that is missing
            or compressed.
    """

    def __init__(self, name: str, column: Any, rows: Int64s | None, remedy: str) -> None:
        self.name = name
        check_type(name, column.type)
        self.buffers: list[Any] = []
        parts = [self._spans_of_chunk(chunk) for chunk in column.chunks]
        empty = [np.empty(0, np.int64)]
        which, begins, sizes = (np.concatenate(arrays) for arrays in zip(*parts, strict=True)) if parts else 3 * empty
        chosen = slice(None) if rows is None else rows
        self.which: npt.NDArray[np.int32] = which[chosen].astype(np.int32, copy=False)
        self.begins: Int64s = begins[chosen]
        self.sizes: Int64s = sizes[chosen]
        self._check_nulls(remedy)
        named = np.flatnonzero(self.which == _FILE)
        paths = self._paths_of(column, named, rows)
        in_zip = np.array([is_member(path) for path in paths], np.bool_)
        self._named, self._zipped = named[~in_zip], named[in_zip]
        self.which[self._zipped] = _MEMBER
        self._paths = PackedPaths(path for path, zipped in zip(paths, in_zip, strict=True) if not zipped)
        members = [path for path, zipped in zip(paths, in_zip, strict=True) if zipped]
        self._members = spans_of_members(name, self._zipped, members)
        # For messages and identities: the names of images whose bytes are in the table are read when they are wanted.
        self._column, self._rows = column, rows

    def __len__(self) -> int:
        return len(self.which)

    def _spans_of_chunk(self, chunk: Any) -> tuple[Array, Array, Array]:
        """Returns (which, begins, sizes) of the rows of one chunk."""
        held = _field_of_chunk(chunk, "bytes")
        nothing = np.full(len(chunk), _NOTHING, np.int64)
        found = BinaryValues(nothing, nothing * 0, nothing * 0, []) if held is None else values_of(held)
        which = np.where(found.which < 0, _NOTHING, found.which + len(self.buffers))
        self.buffers += found.buffers
        if chunk.type.num_fields > 0:
            if (which < 0).any() and (paths := _field_of_chunk(chunk, "path")) is not None:
                which[(which < 0) & paths.is_valid().to_numpy(zero_copy_only=False)] = _FILE
            if chunk.null_count > 0:  # a null struct has children, but they mean nothing
                which[chunk.is_null().to_numpy(zero_copy_only=False)] = _NOTHING
        return which, found.begins, found.sizes

    def _check_nulls(self, remedy: str) -> None:
        missing = np.flatnonzero(self.which == _NOTHING)
        if len(missing):
            others = f" and {len(missing) - 1} other rows" if len(missing) > 1 else ""
            have = "have" if others else "has"
            raise ValueError(f"row {missing[0]}{others} of column {self.name!r} {have} no image (null); {remedy}")

    def _paths_of(self, column: Any, named: Int64s, rows: Int64s | None) -> list[str]:
        """Returns the paths of the rows that name a file."""
        import pyarrow as pa

        if len(named) == 0:
            return []
        held = pa.chunked_array([_field_of_chunk(chunk, "path") for chunk in column.chunks])
        paths: list[str] = held.take(pa.array(named if rows is None else rows[named])).to_pylist()
        for row, path in zip(named, paths, strict=True):
            if "://" in path and not is_member(path):
                raise ValueError(
                    f"row {row} of column {self.name!r} names {path}, which is not a file of this machine; store the "
                    "images' bytes in the table, or download them first"
                )
        return paths

    def path(self, index: int) -> str | None:
        """Returns the file that holds the image alone; None: its bytes are in the table, or in an archive."""
        if self.which[index] != _FILE:
            return None
        return self._paths[int(np.searchsorted(self._named, index))]

    def name_of(self, index: int) -> str | None:
        """Returns the row's `path`, also where its bytes are in the table."""
        if (path := self.path(index)) is not None:
            return path
        scalar = self._column[index if self._rows is None else int(self._rows[index])]
        held = scalar.as_py().get("path") if scalar.type.num_fields > 1 else None
        return None if held is None else str(held)

    def bytes(self, index: int) -> memoryview:
        """Returns the image's bytes; for one in a file or an archive, they are read."""
        if (path := self.path(index)) is not None:
            return memoryview(Path(path).read_bytes())
        if self.which[index] == _MEMBER:
            return self._members.bytes(int(np.searchsorted(self._zipped, index)))
        begin = int(self.begins[index])
        return memoryview(self.buffers[self.which[index]])[begin : begin + int(self.sizes[index])]

    def part(self, index: int) -> SampleBytes:
        """Returns the image's bytes, of which parts can be read."""
        if self.which[index] == _MEMBER:
            return self._members.part(int(np.searchsorted(self._zipped, index)))
        return HeldBytes(self.bytes(index))

    def table(
        self,
        of_spans: Callable[..., core.BlobTable] = core.BlobTable.of_spans,
        of_files: Callable[..., core.BlobTable] = core.BlobTable.of_files,
    ) -> core.BlobTable:
        """Returns the native core's table of the rows. `of_spans`, `of_files`: make it of its two kinds of rows."""
        if len(self._named) == 0 and len(self._zipped) == 0:
            return of_spans(self.buffers, self.which, self.begins, self.sizes)
        held = np.flatnonzero(self.which >= 0)
        spans = of_spans(self.buffers, self.which[held], self.begins[held], self.sizes[held])
        files = of_files(self._paths.packed, self._paths.offsets)
        rows = np.empty(len(self), np.int64)
        rows[held] = np.arange(len(held))
        rows[self._named] = len(held) + np.arange(len(self._named))
        rows[self._zipped] = len(held) + len(self._named) + np.arange(len(self._zipped))
        parts = [spans, files] if len(self._zipped) == 0 else [spans, files, self._members.table()]
        return core.BlobTable.of_rows(core.BlobTable.of_parts(parts), rows)


def check_type(name: str, kind: Any) -> None:
    """Raises TypeError unless a column of this Arrow type holds one encoded image a row."""
    import pyarrow.types as types

    if types.is_struct(kind):
        fields = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
        right = {"bytes": _is_binary, "path": _is_text}
        known = {field: fields[field] for field in right if field in fields}
        if known and all(types.is_null(held) or right[field](held) for field, held in known.items()):
            return
    elif _is_binary(kind):
        return
    elif types.is_nested(kind):
        raise TypeError(
            f"column {name!r} is {kind}; one image a row is needed: bytes, or a struct of bytes and path. Make a row "
            f"of each image, or, with from_hf, name one of each row: image='{name}.0' of a list, '{name}.field' of a "
            "struct"
        )
    raise TypeError(
        f"column {name!r} is {kind}, which holds no encoded images: these are bytes (JPEG, PNG, ...), or structs with "
        "the fields bytes and path"
    )


def _is_binary(kind: object) -> bool:
    import pyarrow.types as types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_text(kind: object) -> bool:
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _field_of_chunk(chunk: Any, field: str) -> Any:
    """Returns a field of a chunk of structs, or `bytes` of a chunk of bytes; None if there is none, or all are null."""
    import pyarrow.types as types

    if not types.is_struct(chunk.type):
        return chunk if field == "bytes" else None
    number = chunk.type.get_field_index(field)
    if number < 0 or types.is_null(chunk.type.field(number).type):
        return None
    return chunk.field(number)

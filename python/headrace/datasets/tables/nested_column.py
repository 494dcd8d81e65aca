"""A column inside a column of an Arrow table: fields of structs and elements of lists, whose bytes are not copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

_NONE = -1  # in place of a row: the list has no such element


def split_path(name: str, columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the column that a name names, and the path below it. A column of the whole name comes first.

    ``"photo.image"`` is the field `image` of the structs of `photo`, ``"images.0"`` the first element of each list of
    `images`.
    """
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        if (column := ".".join(parts[:count])) in columns:
            return column, tuple(parts[count:])
    return name, ()


def feature_below(feature: Any, name: str, path: Sequence[str]) -> Any:
    """Returns the feature of Hugging Face's datasets at the end of a path.

    Raises:
        ValueError: there is none; the message says what there is.
    """
    for part in path:
        inside = getattr(feature, "feature", None)  # of lists
        if isinstance(feature, dict) and part in feature:
            feature = feature[part]
        elif isinstance(feature, list) and part.isdecimal():  # how older versions write lists
            feature = feature[0]
        elif inside is not None and part.isdecimal():
            feature = inside
        else:
            have = f"there are {', '.join(map(repr, feature))}" if isinstance(feature, dict) else "there are no fields"
            have = "it is a list: give the number of an element" if inside is not None else have
            raise ValueError(f"image={name!r}: there is no {part!r}; {have}")
    return feature


def column_below(name: str, column: Any, rows: Int64s | None, path: Sequence[str]) -> tuple[Any, Int64s | None]:
    """Returns the column at the end of a path, and its rows.

    Args:
        name: for messages.
        column: a ``pyarrow.ChunkedArray``.
        rows: the rows wanted, int64 (n,), in their order; None: all.
        path: names of fields, and numbers of elements counted from 0.

    Returns:
        A ``pyarrow.ChunkedArray`` whose buffers are those of `column`, and the rows of it, int64 (n,), or None.

    Raises:
        ValueError: a row has no such element; the message gives the first such row.
        TypeError: the column has no fields or elements.
    """
    for part in path:
        column, place = _step(name, column, part)
        if place is not None:
            rows = place if rows is None else place[rows]
            missing = np.flatnonzero(rows == _NONE)
            if len(missing):
                others = f" and {len(missing) - 1} other rows have" if len(missing) > 1 else " has"
                raise ValueError(
                    f"row {missing[0]}{others} no element {part} in the list of column {name!r}; leave such rows out "
                    "with dataset.filter"
                )
    return column, rows


def _step(name: str, column: Any, part: str) -> tuple[Any, Int64s | None]:
    """Returns the column one step below, and which row of it belongs to each row; None: the same."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    kind = column.type
    if types.is_struct(kind) and kind.get_field_index(part) >= 0:
        # struct_field gives the nulls of the structs to their fields; the values are not copied.
        chunks = [pc.struct_field(chunk, [part]) for chunk in column.chunks]
        return pa.chunked_array(chunks, kind.field(part).type), None
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)) or not part.isdecimal():
        raise TypeError(f"column {name!r} has {kind} where {part!r} is looked for: structs and lists have parts")
    places, base, element = [np.empty(0, np.int64)], 0, int(part)
    for chunk in column.chunks:
        if types.is_fixed_size_list(kind):
            begins = (np.arange(len(chunk), dtype=np.int64) + chunk.offset) * kind.list_size
            lengths = np.full(len(chunk), kind.list_size, np.int64)
        else:
            offsets = chunk.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
            begins, lengths = offsets[:-1], np.diff(offsets)
        there = (lengths > element) & chunk.is_valid().to_numpy(zero_copy_only=False)
        places.append(np.where(there, base + begins + element, _NONE))
        base += len(chunk.values)
    return pa.chunked_array([chunk.values for chunk in column.chunks], kind.value_type), np.concatenate(places)

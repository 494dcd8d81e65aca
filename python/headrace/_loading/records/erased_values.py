"""What RandomErasing writes to the images of records: boxes of constant values, which an engine knows beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace._base.types import Array
from headrace._loading.doors.tensors.recording import Erasing, State
from headrace._loading.records.record_batch import Box

_MOST = 4  # values of one kind of images: each new one makes an engine in the main process


class ErasedValues:
    """The values that a worker has met. Once met, they are sent with all images of the same channels and dtype: those
    without a box need no engine of their own."""

    def __init__(self) -> None:
        self._rows: dict[Any, list[bytes]] = {}

    def find_all(self, states: Sequence[State]) -> tuple[list[list[tuple[Box, int]]], Array] | str:
        """Returns the boxes of images that are alike, (left, top, width, height) and the row of the values, and the
        values, (rows, C); or why they cannot be sent."""
        first = states[0]
        rows = list(self._rows.get((first.channels, first.dtype), ()))
        boxes: list[list[tuple[Box, int]]] = []
        for one in states:
            boxes.append([])
            if not isinstance(one.finish, Erasing):
                continue
            values = one.finish.constants(one.channels, one.dtype)
            if values is None:
                return "they are erased with values that differ from pixel to pixel"
            row = values.numpy().tobytes()
            if row not in rows:
                rows.append(row)
            top, left, height, width = one.finish.box
            boxes[-1].append(((left, top, width, height), rows.index(row)))
        if len(rows) > _MOST:
            return "they are erased with many values"
        if rows:
            self._rows[first.channels, first.dtype] = rows
        return boxes, np.frombuffer(b"".join(rows), first.table.dtype).reshape(len(rows), first.channels)

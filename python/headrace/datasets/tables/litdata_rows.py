"""Chunks of litdata that hold an Arrow table, as it writes dicts of bytes, texts and numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from headrace._storage.remote.remote_files import RemoteFiles
from headrace.datasets.tables.access.remote_reads import RangeFile
from headrace.datasets.tables.converted_files import pyarrow
from headrace.datasets.tables.file_spans import map_file
from headrace.datasets.tables.indexed_shards import Shard

_END = b"LDARW01\0"  # of a chunk with an Arrow file, or stream, after its samples or in their place
_TAIL = 12  # bytes of the size of the Arrow file, and of this end


def holds_rows(path: str) -> bool:
    """Whether the samples of a chunk are in an Arrow table at its end: then their places are all the same."""
    with Path(path).open("rb") as file:
        return _holds_rows(file)


def far_holds_rows(files: RemoteFiles) -> bool:
    """The same of an object in another machine."""
    return _holds_rows(RangeFile(files))


def _holds_rows(file: BinaryIO | RangeFile) -> bool:
    begin = file.read(12)  # the number of samples, and two places
    file.seek(-min(len(_END), file.seek(0, os.SEEK_END)), os.SEEK_END)
    return file.read() == _END and begin[4:8] == begin[8:]


def rows_of(shards: Sequence[Shard]) -> Any:
    """Returns the ``pyarrow.Table`` of all chunks, over their mapped bytes.

    Raises:
        ImportError: pyarrow is not installed.
        OSError: a chunk cannot be read.
        ValueError: a chunk is damaged or compressed, has no such table, or other columns than the first.
    """
    pa = pyarrow()
    tables: list[Any] = []
    for shard in shards:
        if not holds_rows(shard.path):
            raise ValueError(f"{shard.path} keeps its samples in another way than {shards[0].path}")
        data = memoryview(map_file(shard.path))
        size = int.from_bytes(data[-_TAIL : -len(_END)], "little")
        if size > len(data) - _TAIL:
            raise ValueError(f"{shard.path} is damaged: its table is not within it")
        held = pa.py_buffer(data[len(data) - _TAIL - size : len(data) - _TAIL])
        try:
            reader = pa.ipc.open_file(held) if held[:6].to_pybytes() == b"ARROW1" else pa.ipc.open_stream(held)
            tables.append(reader.read_all())
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{shard.path} is damaged: {error}") from error
        if tables[-1].num_rows != shard.samples:
            raise ValueError(f"{shard.path} is damaged: it has {tables[-1].num_rows} rows, not {shard.samples}")
        if not tables[-1].schema.equals(tables[0].schema):
            raise ValueError(f"{shard.path} has other columns than {shards[0].path}; all must have the same")
        _check_mapped(shard.path, tables[-1], np.frombuffer(data, np.uint8).ctypes.data, len(data))
    return pa.concat_tables(tables)


def _check_mapped(path: str, table: Any, begin: int, size: int) -> None:
    """Raises ValueError if large values are elsewhere than in the file, which is so if they were decompressed."""
    for column in table.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None and buffer.size > 4096 and not begin <= buffer.address <= begin + size:
                    raise ValueError(
                        f"the table of {path} is compressed, so its images cannot be mapped; write the chunks without "
                        "compression"
                    )

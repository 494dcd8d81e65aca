"""Arrow files as a dataset: mapped; images are decoded in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.types import State
from headrace._storage.local_cache.local_caches import open_cache, tended_bytes
from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.urls import all_urls, redact_url
from headrace.datasets.tables.access.location import FileLocation, find_remote_files
from headrace.datasets.tables.converted_files import cache_folder, pyarrow
from headrace.datasets.tables.file_spans import FileSpans, Stamp
from headrace.datasets.tables.image_column import ImageColumn
from headrace.datasets.tables.table_source import LabelColumns, TableSource, checked_names, whole_numbers

Int64s = npt.NDArray[np.int64]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_REMEDY = "leave such rows out when the files are written"


class Arrow(TableSource):
    """Encoded images in a column of Arrow IPC files or streams, such as those in the cache of Hugging Face's datasets.

    The files are mapped into memory, and images are decoded in place. Samples are (image, label). A file that is
    truncated while it is mapped ends the process.

    Args:
        files: one file or several, whose rows follow each other, or URLs, which fsspec reads. All have the same
            columns. Of a URL a copy is made once, in `cache`.
        image: the column of images: bytes, or structs of `bytes` and `path`.
        label: the column of labels, as Python values. A list of names: dicts of the columns' values. None: samples are
            images without labels.
        transform, target_transform, mode: as in `EncodedImages`.
        upright: whether to rotate or mirror images as their EXIF orientation says, as Hugging Face's datasets do.
        cache: ``"memory:8 GB"`` or a `Cache`: as in `ImageFiles`; the images are read then, not mapped, and a file that
            changes is an error. A folder: for copies of URLs, as in `Parquet`.
        storage_options, network: of URLs, as in `ImageFiles`.

    Raises:
        ImportError: pyarrow is not installed.
        OSError: a file cannot be read.
        TypeError: the column holds no images, or several a row.
        ValueError: a file is no Arrow file, is compressed, or has other columns than the first; there is no such column
            or mode; a row has no image.
    """

    def __init__(
        self,
        files: Paths,
        image: str = "image",
        label: LabelColumns = "label",
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        mode: str = "RGB",
        upright: bool = False,
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        self.files: list[str]
        self._urls, self.files = list_files(files)
        self._access = Access(None, storage_options, network)
        self._cache, copies = open_cache(cache)
        self._kept = cache_folder(copies)
        if not self._urls:
            self._access.check_local("these are files")
        self._stamps = [] if self._urls else [Stamp.of(path) for path in self.files]
        self._image, self._label, self._upright = image, label, upright
        self._table, spans = self._map_table()
        names = checked_names(self._table.column_names, image, label)
        labels = labels_of(self._table, label, names)
        super().__init__(labels, transform, target_transform, mode)
        self._images = self._locate()  # finds unusable rows now
        if any(not any(begin <= one.address <= end for begin, end in spans) for one in self._images.buffers):
            raise ValueError(
                "the files are compressed, so their images cannot be mapped; write them without compression "
                "(pyarrow.ipc.IpcWriteOptions(compression=None)), or as Parquet"
            )

    @property
    def upright(self) -> bool:
        return self._upright

    def _map_table(self) -> tuple[Any, list[tuple[int, int]]]:
        """Returns the table of all rows and the addresses of the mapped files."""
        paths = self._mapped_files()
        self._files = [Stamp.of(path) for path in paths]
        table, spans = mapped_table(paths)
        self._begins = np.array([begin for begin, _ in spans], np.int64)
        return table, spans

    def blob_table(self) -> core.BlobTable:
        images = self.images
        if self._cache is None or not isinstance(images, ImageColumn):
            return super().blob_table()
        return images.table(self._cached_spans, self._cache.files)

    def _cached_spans(
        self, buffers: list[Any], which: npt.NDArray[np.int32], begins: Int64s, sizes: Int64s
    ) -> core.BlobTable:
        """Returns the table of spans of buffers, which are in mapped files, as ranges of these files."""
        addresses = np.array([one.address for one in buffers], np.int64)
        order = np.argsort(self._begins)
        files = order[np.searchsorted(self._begins[order], addresses, side="right") - 1]
        offsets = (addresses - self._begins[files])[which] + begins
        return FileSpans(self._files, files[which], offsets, sizes, self._cache).table()

    @property
    def ahead_bytes(self) -> int:
        return tended_bytes(self._cache)

    def expect(self, indices: object, wait: bool = False) -> int:
        if self._cache is not None:
            self._cache.maintain_folder()
        return 0

    def _mapped_files(self) -> list[str]:
        """Returns the Arrow files or streams that hold the rows."""
        return [location.here(self._kept) for location in self._locations()]

    def _locations(self) -> list[FileLocation]:
        """Returns the locations of the files. Raises OSError."""
        return (
            find_remote_files(self._urls, self._access) if self._urls else [FileLocation(path) for path in self.files]
        )

    def _locate(self) -> ImageColumn:
        return ImageColumn(self._image, self._table.column(self._image), None, _REMEDY)

    def __getstate__(self) -> State:
        table_labels = isinstance(self._labels, TableLabels)
        state = {**super().__getstate__(), "_table": None}
        return {**state, "_labels": (self._labels.names, self._labels.several)} if table_labels else state

    def __setstate__(self, kept: State) -> None:
        self.__dict__.update(kept)
        for stamp in self._stamps:
            if Stamp.of(stamp.path) != stamp:
                raise ValueError(f"{stamp.path} has changed since the dataset was made; make a new one")
        self._table, _ = self._map_table()
        if isinstance(self._labels, tuple):
            self._labels = TableLabels(self._table, *self._labels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows of {len(self.files)} files)"


class TableLabels:
    """The labels of an Arrow table's rows, as Python values.

    Args:
        names: their columns.
        several: whether a label is a dict of the columns' values; otherwise it is the value of the only one.
    """

    def __init__(self, table: Any, names: Sequence[str], several: bool) -> None:
        self._columns = table.select(list(names))
        self.names: list[str] = list(names)
        self.several = several

    def __len__(self) -> int:
        return int(self._columns.num_rows)

    def __getitem__(self, index: int) -> object:
        return self.take([index])[0]

    def take(self, indices: Sequence[int]) -> Sequence[object]:
        rows: list[dict[str, object]] = self._columns.take(np.asarray(indices, np.int64)).to_pylist()
        if self.several:
            return rows
        return [row[self.names[0]] for row in rows]


def labels_of(table: Any, label: LabelColumns, names: list[str]) -> Int64s | TableLabels | None:
    """Returns the labels in the columns `names` of an Arrow table, in the form that TableSource takes."""
    if not names:
        return None
    if isinstance(label, str) and (numbers := whole_numbers(table.column(label))) is not None:
        return numbers
    return TableLabels(table, names, not isinstance(label, str))


def list_files(files: Paths) -> tuple[list[str], list[str]]:
    """Returns the URLs of several files, or none, and their paths, absolute, or what may be shown of the URLs. Raises
    ValueError if there is none."""
    several = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not several:
        raise ValueError("files is empty; at least one file is needed")
    if all_urls(several):
        urls = [str(url) for url in several]
        return urls, [redact_url(url) for url in urls]
    return [], [str(Path(path).absolute()) for path in several]


def mapped_table(paths: Sequence[str]) -> tuple[Any, list[tuple[int, int]]]:
    """Returns the ``pyarrow.Table`` of Arrow files or streams, over their mapped bytes, and the addresses (first, one
    past the last) of these.

    Raises:
        ImportError, OSError, ValueError: as for `Arrow`.
    """
    pa = pyarrow()
    tables: list[Any] = []
    spans = []
    for path in paths:
        with pa.memory_map(path) as mapped:
            whole = mapped.read_buffer()
            spans.append((whole.address, whole.address + whole.size))
            mapped.seek(0)
            try:
                tables.append(pa.ipc.open_file(mapped).read_all())
            except pa.ArrowInvalid:
                mapped.seek(0)
                try:
                    tables.append(pa.ipc.open_stream(mapped).read_all())
                except (pa.ArrowInvalid, OSError) as error:
                    raise ValueError(f"{path} is no Arrow file or stream, or it is damaged: {error}") from error
        if not tables[-1].schema.equals(tables[0].schema):
            raise ValueError(f"{path} has other columns than {paths[0]}; all files must have the same")
    return pa.concat_tables(tables), spans

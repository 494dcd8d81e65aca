"""Parquet files as a dataset: converted once to Arrow files in a cache, which are mapped."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from headrace.tables.arrow import Arrow, Paths, listed, pyarrow
from headrace.tables.cached import cache_folder, made_once
from headrace.tables.image_column import check_type
from headrace.tables.source import LabelColumns, checked_names

_VERSION = 2  # of the files in the cache
_ROWS = 256  # of a record batch: what is in memory at a time


class Parquet(Arrow):
    """Encoded images in a column of Parquet files. Samples are (image, label).

    Parquet has no random access to single values, so the columns that are needed are written once to uncompressed Arrow
    files in a folder, as Hugging Face's datasets do. Later runs map these, until the size or the time of the Parquet
    file changes; then they are replaced. The cache takes about as much space as the images.

    Args:
        files: one file or several, whose rows follow each other. All have the same columns.
        image: the column of images: bytes, or structs of `bytes` and `path`.
        label: the column of labels, as Python values. A list of names: dicts of the columns' values. None: samples are
            images without labels.
        transform, target_transform, mode: as in `Blobs`.
        upright: whether to rotate or mirror images as their EXIF orientation says, as Hugging Face's datasets do.
        cache: the folder of the Arrow files. None: ``headrace/tables`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``.
            Several processes may share it.

    Raises:
        ImportError: pyarrow is not installed.
        OSError: a file cannot be read, or the cache cannot be written.
        TypeError: the column holds no images, or several a row.
        ValueError: a file is no Parquet file, is damaged, or has other columns than the first; there is no such column
            or mode; a row has no image.
    """

    def __init__(
        self,
        files: Paths,
        image: str = "image",
        label: LabelColumns = "label",
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        mode: str = "RGB",
        upright: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self._cache = cache_folder(cache)
        self._label = label
        super().__init__(files, image, label, transform, target_transform, mode=mode, upright=upright)

    def _mapped_files(self) -> list[str]:
        wanted = [_checked(path, self._image, self._label) for path in listed(self.files)]
        return [
            made_once(path, (_VERSION, columns), ".arrow", self._cache, partial(_convert, path, columns))
            for path, columns in zip(self.files, wanted, strict=True)
        ]


def _opened(path: str) -> Any:
    pa = pyarrow()
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        _raise(path, error)


def _raise(path: str, error: Exception) -> NoReturn:
    """Raises pyarrow's error about a file's content as a ValueError; the system's errors as they are."""
    if getattr(error, "errno", None) is not None:
        raise error
    raise ValueError(f"{path} is no Parquet file, or it is damaged: {error}") from error


def _checked(path: str, image: str, label: LabelColumns) -> list[str]:
    """Returns the columns that are needed of a file. Raises TypeError or ValueError if they do not serve."""
    with _opened(path) as file:
        schema = file.schema_arrow
    names = checked_names(schema.names, image, label)
    check_type(image, schema.field(image).type)
    return list(dict.fromkeys([image, *names]))


def _convert(path: str, columns: list[str], target: str) -> None:
    """Writes some columns of a Parquet file to an Arrow file."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    pa = pyarrow()
    with _opened(path) as file, pa.OSFile(target, "wb") as sink:
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
        rows = file.metadata.num_rows
        bar = tqdm(total=rows, desc=f"headrace: {Path(path).name} to Arrow", unit=" rows", leave=False)
        with pa.ipc.new_file(sink, schema) as writer, bar:
            for batch in _batches(path, file, columns):
                writer.write_batch(batch.select(columns))
                bar.update(batch.num_rows)


def _batches(path: str, file: Any, columns: list[str]) -> Any:
    pa = pyarrow()
    try:
        yield from file.iter_batches(_ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        _raise(path, error)

"""Parquet files as a dataset: converted once to Arrow files in a cache, which are mapped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from headrace.datasets.tables.access.location import FileLocation
from headrace.datasets.tables.arrow import Arrow
from headrace.datasets.tables.converted_files import made_once, pyarrow
from headrace.datasets.tables.image_column import check_type
from headrace.datasets.tables.table_source import LabelColumns, checked_names

_VERSION = 2  # of the files in the cache
_ROWS = 256  # of a record batch: what is in memory at a time


class Parquet(Arrow):
    """Encoded images in a column of Parquet files. Samples are (image, label).

    Parquet has no random access to single values, so the columns that are needed are written once to uncompressed Arrow
    files in a folder, as Hugging Face's datasets do. Later runs map these, until the size or the time of the Parquet
    file changes; then they are replaced. The cache takes about as much space as the images.

    Args:
        files: one file or several, whose rows follow each other, or URLs, which fsspec reads. All have the same
            columns. Of a URL the footer and the columns that are needed are read, by ranges.
        image: the column of images: bytes, or structs of `bytes` and `path`.
        label: the column of labels, as Python values. A list of names: dicts of the columns' values. None: samples are
            images without labels.
        transform, target_transform, mode: as in `EncodedImages`.
        upright: whether to rotate or mirror images as their EXIF orientation says, as Hugging Face's datasets do.
        cache: ``"memory:8 GB"`` or a `Cache`: as in `Arrow`. A folder, or that of a `Cache`: for the Arrow files. None:
            ``headrace/tables`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``. Several processes may share it.
        storage_options, network: of URLs, as in `ImageFiles`.

    Raises:
        ImportError: pyarrow is not installed.
        OSError: a file cannot be read, or the cache cannot be written.
        TypeError: the column holds no images, or several a row.
        ValueError: a file is no Parquet file, is damaged, or has other columns than the first; there is no such column
            or mode; a row has no image.
    """

    def _mapped_files(self) -> list[str]:
        locations = self._locations()
        wanted = [_check_columns(location, self._image, self._label) for location in locations]
        return [
            made_once(
                location.name,
                (_VERSION, columns),
                ".arrow",
                self._kept,
                partial(_convert_to_arrow, location, columns),
                location.stamp,
                location.shown,
            )
            for location, columns in zip(locations, wanted, strict=True)
        ]


def _open_file(location: FileLocation) -> Any:
    pa = pyarrow()
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(location.open(), pre_buffer=location.far)
    except (pa.ArrowException, OSError) as error:
        _raise_as_value_error(location.shown, error)


def _raise_as_value_error(path: str, error: Exception) -> NoReturn:
    """Raises pyarrow's error about a file's content as a ValueError; the system's errors as they are."""
    if getattr(error, "errno", None) is not None:
        raise error
    raise ValueError(f"{path} is no Parquet file, or it is damaged: {error}") from error


def _check_columns(location: FileLocation, image: str, label: LabelColumns) -> list[str]:
    """Returns the columns that are needed of a file. Raises TypeError or ValueError if they do not serve."""
    with _open_file(location) as file:
        schema = file.schema_arrow
    names = checked_names(schema.names, image, label)
    check_type(image, schema.field(image).type)
    return list(dict.fromkeys([image, *names]))


def _convert_to_arrow(location: FileLocation, columns: list[str], target: str) -> None:
    """Writes some columns of a Parquet file to an Arrow file."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    pa = pyarrow()
    with _open_file(location) as file, pa.OSFile(target, "wb") as sink:
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
        rows = file.metadata.num_rows
        bar = tqdm(total=rows, desc=f"headrace: {Path(location.shown).name} to Arrow", unit=" rows", leave=False)
        with pa.ipc.new_file(sink, schema) as writer, bar:
            for batch in _read_batches(location.shown, file, columns):
                writer.write_batch(batch.select(columns))
                bar.update(batch.num_rows)


def _read_batches(path: str, file: Any, columns: list[str]) -> Iterator[Any]:
    pa = pyarrow()
    try:
        yield from file.iter_batches(_ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        _raise_as_value_error(path, error)

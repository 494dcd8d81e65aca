"""Parquet files as a dataset: converted once to Arrow files in a cache, which are mapped."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from headrace.tables.arrow import Arrow, Paths, Stamp, listed, pyarrow
from headrace.tables.image_column import check_type
from headrace.tables.source import LabelColumns, checked_names

_VERSION = 1  # of the files in the cache
_ROWS = 256  # of a record batch: what is in memory at a time


class Parquet(Arrow):
    """Encoded images in a column of Parquet files. Samples are (image, label).

    Parquet has no random access to single values, so the columns that are needed are written once to uncompressed Arrow
    files in a folder, as Hugging Face's datasets do. Later runs map these, until the size or the time of the Parquet
    file changes. The cache takes about as much space as the images.

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
        self._cache = _default_cache() if cache is None else Path(cache).absolute()
        self._label = label
        super().__init__(files, image, label, transform, target_transform, mode=mode, upright=upright)

    def _mapped_files(self) -> list[str]:
        wanted = [_checked(path, self._image, self._label) for path in listed(self.files)]
        self._cache.mkdir(parents=True, exist_ok=True)
        made = []
        for path, columns in zip(self.files, wanted, strict=True):
            target = self._cache / _name(path, columns)
            if not target.exists():
                _convert(path, columns, target)
            made.append(str(target))
        return made


def _default_cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "headrace" / "tables"


def _name(path: str, columns: Sequence[str]) -> str:
    """Returns the name of the Arrow file of some columns of a Parquet file as it is now."""
    digest = hashlib.sha256(repr((_VERSION, tuple(Stamp.of(path)), list(columns))).encode(errors="surrogateescape"))
    return f"{Path(path).stem[:80]}-{digest.hexdigest()[:24]}.arrow"


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


def _convert(path: str, columns: list[str], target: Path) -> None:
    """Writes some columns of a Parquet file to an Arrow file, which appears whole or not at all."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    pa = pyarrow()
    number, unfinished = tempfile.mkstemp(dir=target.parent, prefix=target.stem, suffix=".unfinished")
    os.close(number)
    try:
        with _opened(path) as file, pa.OSFile(unfinished, "wb") as sink:
            schema = pa.schema([file.schema_arrow.field(name) for name in columns])
            bar = tqdm(
                total=file.metadata.num_rows, desc=f"headrace: {Path(path).name} to Arrow", unit=" rows", leave=False
            )
            with pa.ipc.new_file(sink, schema) as writer, bar:
                for batch in _batches(path, file, columns):
                    writer.write_batch(batch.select(columns))
                    bar.update(batch.num_rows)
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _batches(path: str, file: Any, columns: list[str]) -> Any:
    pa = pyarrow()
    try:
        yield from file.iter_batches(_ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        _raise(path, error)

"""Chunks of Lightning's litdata as a dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from headrace.tables.arrow import labels_of
from headrace.tables.cached import cache_folder, decompressed
from headrace.tables.file_spans import FileSpans, Stamp
from headrace.tables.image_column import ImageColumn
from headrace.tables.litdata_rows import holds_rows, rows_of
from headrace.tables.shards import Column, Decoder, Shard, ShardSource, number, text
from headrace.tables.source import LabelColumns, TableSource, checked_names

_IMAGES = ("jpeg", "image", "bytes")
_DECODERS: dict[str, Decoder] = {
    "int": partial(number, "<i8"),
    "float": partial(number, "<f8"),
    "bool": partial(number, "?"),
    "str": text,
    "bytes": bytes,
}
_REMEDY = "leave such rows out when the chunks are written"
_LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


class LitData(ShardSource):
    """Encoded images in chunks that Lightning's litdata (`optimize`) wrote of dicts. Samples are (image, label).

    Images are read where they lie in the chunks, and opened by the rules of `ImageFolder`: as Pillow opens them. Chunks
    that are compressed as a whole (zstd) are decompressed once into a folder. A chunk that changes after the dataset
    was made is an error of the samples that are read then. Chunks with tables of Arrow, which litdata makes of dicts of
    bytes, texts and numbers, are mapped; one that is truncated while it is mapped ends the process.

    Args:
        folder: a local folder with ``index.json`` and its chunks.
        image: the key of the images, written as JPEG, as an image file, or as bytes.
        label: the key of the labels: numbers, text or bytes, as Python values. A list of keys: dicts of their values.
            None: samples are images without labels.
        transform, target_transform, mode: as in `Blobs`.
        cache: the folder of decompressed copies, as in `Parquet`.

    Raises:
        OSError: the index or a chunk cannot be read.
        ImportError: pyarrow, which decompresses chunks, is not installed.
        TypeError: the column of a table of Arrow holds no images, or several a row.
        ValueError: the index or a chunk is damaged, encrypted, or of another layout; the samples are not dicts; a key
            is missing, or its values are not read: pickles could run any code.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        image: str,
        label: LabelColumns = None,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        mode: str = "RGB",
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        shards = _shards(Path(folder).absolute(), cache_folder(cache))
        self._has_rows = bool(shards) and holds_rows(shards[0].path)
        if self._has_rows:
            self._init_rows(shards, image, label, transform, target_transform, mode)
        else:
            super().__init__(shards, _IMAGES, _DECODERS, image, label, transform, target_transform, mode)

    def _init_rows(self, shards: list[Shard], image: str, label: LabelColumns, *others: Any) -> None:
        """Instead of the constructor of the base class, for chunks with a table of Arrow."""
        self._shards, self._image = shards, image
        self._stamps = [Stamp.of(shard.path) for shard in shards]
        table = rows_of(shards)
        names = checked_names(table.column_names, image, label)
        TableSource.__init__(self, labels_of(table, label, names), *others)
        self._images = self._locate()  # finds unusable rows now

    def _locate(self) -> ImageColumn | FileSpans:
        if not self._has_rows:
            return super()._locate()
        self._check_stamps()
        return ImageColumn(self._image, rows_of(self._shards).column(self._image), None, _REMEDY)


def _shards(folder: Path, cache: Path) -> list[Shard]:
    """Reads the index of a folder."""
    index = folder / "index.json"
    try:
        held = json.loads(index.read_bytes())
        config, chunks = held["config"], held["chunks"]
        for name in ("encryption", "compression_level"):  # the level is there if samples are compressed, not chunks
            if config.get(name):
                raise ValueError(
                    f"the chunks of {folder} have {name} ({config[name]}), which is not read; write them without"
                )
        if config.get("item_loader") not in (None, "PyTreeLoader"):
            raise ValueError(f"the chunks of {folder} are for {config['item_loader']}; those for PyTreeLoader are read")
        how = config.get("compression")
        files = [_file(folder, chunk, how, cache) for chunk in chunks]
        columns = {} if files and holds_rows(files[0]) else _columns(folder, config)
        sizes = [int(chunk["chunk_size"]) for chunk in chunks]
        return [Shard(path, samples, columns) for path, samples in zip(files, sizes, strict=True)]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of litdata's chunks, or it is damaged: {error!r}") from error


def _file(folder: Path, chunk: dict[str, Any], compression: str | None, cache: Path) -> str:
    """Returns the path of a chunk; of a compressed one, that of its decompressed copy."""
    path = _inside(folder, chunk["filename"])
    if not compression or f".{compression}." not in Path(path).name:
        return path
    return decompressed(path, compression, int(chunk["chunk_bytes"]), cache)


def _columns(folder: Path, config: dict[str, Any]) -> dict[str, Column]:
    """Returns the keys of the samples, which have to be flat dicts; each size is written in the sample."""
    _, spec = json.loads(config["data_spec"])
    if spec["type"] != "builtins.dict" or any(child != _LEAF for child in spec["children_spec"]):
        raise ValueError(f"the samples in {folder} are no flat dicts; {spec['type']} has no keys that name a column")
    names = json.loads(spec["context"])
    formats = [one.partition(":")[0] for one in config["data_format"]]
    return {name: Column(how, None) for name, how in zip(names, formats, strict=True)}


def _inside(folder: Path, name: str) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the index of {folder} names {name!r}, which is not in the folder")
    return str(folder / name)

"""Chunks of Lightning's litdata as a dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.urls import is_url
from headrace.datasets.tables.access.fetched_labels import Decoder
from headrace.datasets.tables.access.remote_spans import FarSpans
from headrace.datasets.tables.access.shard_folders import Folder
from headrace.datasets.tables.arrow import labels_of
from headrace.datasets.tables.file_spans import FileSpans, Stamp
from headrace.datasets.tables.image_column import ImageColumn
from headrace.datasets.tables.indexed_shards import ColumnEncoding, Shard, ShardSource, number, text
from headrace.datasets.tables.inflated_chunks import inflate_chunk
from headrace.datasets.tables.litdata_rows import far_holds_rows, holds_rows, rows_of
from headrace.datasets.tables.table_source import LabelColumns, TableSource, checked_names

_IMAGES = ("jpeg", "image", "bytes")
_DECODERS: dict[str, Decoder] = {
    "int": partial(number, "<i8"),
    "float": partial(number, "<f8"),
    "bool": partial(number, "?"),
    "str": text,
    "bytes": bytes,
}
_LEVEL = "compression_level"  # what is compressed: chunks as a whole, several samples together, or each
_LEVELS = ("chunk", "batch", "sample")
_REMEDY = "leave such rows out when the chunks are written"
_LEAF: dict[str, object] = {"type": None, "context": None, "children_spec": []}


class LitData(ShardSource):
    """Encoded images in chunks that Lightning's litdata (`optimize`) wrote of dicts. Samples are (image, label).

    Images are read in place from the chunks, and opened by the rules of `ImageFolder`: as Pillow opens them. Chunks
    that are compressed (zstd: as a whole, in batches or by sample) are decompressed once into a folder. A chunk that
    changes after the dataset was made is an error of the samples that are read then. Chunks with tables of Arrow, which
    litdata makes of dicts of bytes, texts and numbers, are mapped; one that is truncated while it is mapped ends the
    process.

    Args:
        folder: the folder with ``index.json`` and its chunks, or its URL, which fsspec reads.
        image: the key of the images, written as JPEG, as an image file, or as bytes.
        label: the key of the labels: numbers, text or bytes, as Python values. A list of keys: dicts of their values.
            None: samples are images without labels.
        transform, target_transform, mode: as in `EncodedImages`.
        cache: ``"memory:8 GB"`` or a `Cache`: as in `ImageFiles`. A folder: for decompressed copies, as in `Parquet`,
            and of a URL for the samples as well.
        storage_options, network: of a URL, as in `ImageFiles`.

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
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        mode: str = "RGB",
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        held = Folder(folder, Access(cache, storage_options, network))
        shards, self._has_rows = _read_index(held)
        if self._has_rows:
            if held.local is not None:
                raise ValueError(
                    f"the chunks of {held} hold tables of Arrow, whose images are not read but mapped, so a cache has "
                    "nothing to keep; give a folder, for copies, or leave `cache` out"
                )
            self._init_rows(shards, image, label, transform, target_transform, mode)
        else:
            super().__init__(shards, _IMAGES, _DECODERS, image, label, transform, target_transform, mode, held)

    def _init_rows(
        self,
        shards: list[Shard],
        image: str,
        label: LabelColumns,
        transform: Callable[[Any], object] | None,
        target_transform: Callable[[Any], object] | None,
        mode: str,
    ) -> None:
        """Instead of the constructor of the base class, for chunks with a table of Arrow."""
        self._shards, self._image = shards, image
        self._stamps = [Stamp.of(shard.path) for shard in shards]
        table = rows_of(shards)
        names = checked_names(table.column_names, image, label)
        TableSource.__init__(self, labels_of(table, label, names), transform, target_transform, mode)
        self._images = self._locate()  # finds unusable rows now

    def _locate(self) -> ImageColumn | FileSpans | FarSpans:
        if not self._has_rows:
            return super()._locate()
        self._check_stamps()
        return ImageColumn(self._image, rows_of(self._shards).column(self._image), None, _REMEDY)


def _read_index(folder: Folder) -> tuple[list[Shard], bool]:
    """Reads the index of a folder; returns the shards, and whether they hold tables of Arrow."""
    index = f"{folder}/index.json"
    try:
        held = json.loads(folder.read("index.json"))
        config, chunks = held["config"], held["chunks"]
        if config.get("encryption"):
            raise ValueError(
                f"the chunks of {folder} have encryption ({config['encryption']}), which is not read; write them "
                "without"
            )
        if config.get(_LEVEL) not in (None, "", *_LEVELS):
            raise ValueError(
                f"the chunks of {folder} have compression_level ({config[_LEVEL]}); {', '.join(_LEVELS)} are read"
            )
        if config.get("item_loader") not in (None, "PyTreeLoader"):
            raise ValueError(f"the chunks of {folder} are for {config['item_loader']}; those for PyTreeLoader are read")
        files = [_path_of_chunk(folder, chunk, config) for chunk in chunks]
        rows = bool(files) and _holds_rows(folder, files[0])
        if rows and is_url(files[0]):  # columns of several batches: copies are mapped
            files = [folder.here(chunk["filename"]) for chunk in chunks]
        columns = {} if rows else _columns_of_samples(folder, config)
        sizes = [int(chunk["chunk_size"]) for chunk in chunks]
        return [Shard(path, samples, columns) for path, samples in zip(files, sizes, strict=True)], rows
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of litdata's chunks, or it is damaged: {error!r}") from error


def _holds_rows(folder: Folder, path: str) -> bool:
    if folder.access is None or not is_url(path):
        return holds_rows(path)
    return far_holds_rows(folder.access.files([path]))


def _path_of_chunk(folder: Folder, chunk: dict[str, Any], config: dict[str, Any]) -> str:
    """Returns the path or the URL of a chunk; of a compressed one, the path of its decompressed copy."""
    name, compression, level = chunk["filename"], config.get("compression"), config.get(_LEVEL)
    path = folder.path(name)
    if compression and level in ("batch", "sample"):
        if compression.partition(":")[0] != "zstd":
            raise ValueError(f"the samples of {name} are compressed with {compression}; zstd is read")
        return inflate_chunk(folder.here(name), level, int(chunk["chunk_size"]), folder.kept)
    if not compression or f".{compression}." not in PurePosixPath(name).name:
        return path
    return folder.decompress(name, compression, int(chunk["chunk_bytes"]))


def _columns_of_samples(folder: Folder, config: dict[str, Any]) -> dict[str, ColumnEncoding]:
    """Returns the keys of the samples, which have to be flat dicts; each size is written in the sample."""
    _, spec = json.loads(config["data_spec"])
    if spec["type"] != "builtins.dict" or any(child != _LEAF for child in spec["children_spec"]):
        raise ValueError(f"the samples in {folder} are no flat dicts; {spec['type']} has no keys that name a column")
    names = json.loads(spec["context"])
    formats = [one.partition(":")[0] for one in config["data_format"]]
    return {name: ColumnEncoding(how, None) for name, how in zip(names, formats, strict=True)}

"""Shards of MosaicML's streaming library (MDS) as a dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access
from headrace.datasets.tables.access.fetched_labels import Decoder
from headrace.datasets.tables.access.shard_folders import Folder
from headrace.datasets.tables.indexed_shards import ColumnEncoding, Shard, ShardSource, number, text
from headrace.datasets.tables.table_source import LabelColumns

_IMAGES = ("jpeg", "png", "bytes")
_NUMBERS = {"int": "<i8"} | {
    f"{kind}{8 * size}": f"<{letter}{size}"
    for kind, letter, sizes in (("uint", "u", (1, 2, 4, 8)), ("int", "i", (1, 2, 4, 8)), ("float", "f", (2, 4, 8)))
    for size in sizes
}
# Python's int and float read text, as bytes too.
_DECODERS: dict[str, Decoder] = {
    **{name: partial(number, dtype) for name, dtype in _NUMBERS.items()},
    **{"str": text, "str_int": int, "str_float": float, "json": json.loads, "bytes": bytes},
}


class MDS(ShardSource):
    """Encoded images in shards that MosaicML's `MDSWriter` wrote. Samples are (image, label).

    Images are read in place from the shards. Compressed shards (zstd, gz, br, bz2) are decompressed once into a
    folder, unless streaming has left decompressed ones beside them. A shard that changes after the dataset was made is
    an error of the samples that are read then.

    Args:
        folder: the folder with ``index.json`` and its shards, or its URL, which fsspec reads.
        image: the column of images, of the encodings jpeg, png or bytes.
        label: the column of labels: numbers, text or JSON, as Python values. A list of names: dicts of the columns'
            values. None: samples are images without labels.
        transform, target_transform, mode: as in `EncodedImages`.
        cache: ``"memory:8 GB"`` or a `Cache`: as in `ImageFiles`. A folder: for decompressed copies, as in `Parquet`,
            and of a URL for the samples as well.
        storage_options, network: of a URL, as in `ImageFiles`.

    Raises:
        OSError: the index or a shard cannot be read.
        ImportError: pyarrow, which decompresses shards, is not installed.
        ValueError: the index or a shard is damaged, of another format or of a compression that is not read; a column is
            missing, or has an encoding that is not read: ``pkl`` could run any code.
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
        shards = _read_index(held)
        super().__init__(shards, _IMAGES, _DECODERS, image, label, transform, target_transform, mode, held)


def _read_index(folder: Folder) -> list[Shard]:
    """Reads the index of a folder."""
    index = f"{folder}/index.json"
    try:
        held = json.loads(folder.read("index.json"))
        shards = [_read_shard(folder, one) for one in held["shards"]]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of MDS shards, or it is damaged: {error!r}") from error
    return shards


def _read_shard(folder: Folder, held: dict[str, Any]) -> Shard:
    if held["format"] != "mds" or held["version"] != 2:
        raise ValueError(f"{folder} has shards of format {held['format']!r} {held['version']}; mds, version 2, is read")
    raw = held["raw_data"]["basename"]
    path = folder.path(raw)
    if held["compression"] and not folder.has(raw):  # streaming keeps decompressed shards beside the others
        packed = held["zip_data"]["basename"]
        path = folder.decompress(packed, held["compression"], int(held["raw_data"]["bytes"]))
    columns = zip(
        held["column_names"], map(ColumnEncoding, held["column_encodings"], held["column_sizes"]), strict=True
    )
    return Shard(path, int(held["samples"]), dict(columns))

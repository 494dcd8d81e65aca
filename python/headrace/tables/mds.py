"""Shards of MosaicML's streaming library (MDS) as a dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from headrace.tables.cached import cache_folder, decompressed
from headrace.tables.shards import Column, Decoder, Shard, ShardSource, number, text
from headrace.tables.source import LabelColumns

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

    Images are read where they lie in the shards. Compressed shards (zstd, gz, br, bz2) are decompressed once into a
    folder, unless streaming has left decompressed ones beside them. A shard that changes after the dataset was made is
    an error of the samples that are read then.

    Args:
        folder: a local folder with ``index.json`` and its shards.
        image: the column of images, of the encodings jpeg, png or bytes.
        label: the column of labels: numbers, text or JSON, as Python values. A list of names: dicts of the columns'
            values. None: samples are images without labels.
        transform, target_transform, mode: as in `Blobs`.
        cache: the folder of decompressed copies, as in `Parquet`.

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
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        mode: str = "RGB",
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        shards = _shards(Path(folder).absolute(), cache_folder(cache))
        super().__init__(shards, _IMAGES, _DECODERS, image, label, transform, target_transform, mode)


def _shards(folder: Path, cache: Path) -> list[Shard]:
    """Reads the index of a folder."""
    index = folder / "index.json"
    try:
        held = json.loads(index.read_bytes())
        shards = [_shard(folder, one, cache) for one in held["shards"]]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of MDS shards, or it is damaged: {error!r}") from error
    return shards


def _shard(folder: Path, held: dict[str, Any], cache: Path) -> Shard:
    if held["format"] != "mds" or held["version"] != 2:
        raise ValueError(f"{folder} has shards of format {held['format']!r} {held['version']}; mds, version 2, is read")
    path = _inside(folder, held["raw_data"]["basename"])
    if held["compression"] and not Path(path).exists():  # streaming keeps decompressed shards beside the others
        packed = _inside(folder, held["zip_data"]["basename"])
        path = decompressed(packed, held["compression"], int(held["raw_data"]["bytes"]), cache)
    columns = zip(held["column_names"], map(Column, held["column_encodings"], held["column_sizes"]), strict=True)
    return Shard(path, int(held["samples"]), dict(columns))


def _inside(folder: Path, name: str) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the index of {folder} names {name!r}, which is not in the folder")
    return str(folder / name)

"""Shards of MosaicML's streaming library (MDS) as a dataset, mapped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

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

    The shards are mapped into memory, and images are decoded where they lie. A shard that is truncated while it is
    mapped ends the process.

    Args:
        folder: a local folder with ``index.json`` and its shards.
        image: the column of images, of the encodings jpeg, png or bytes.
        label: the column of labels: numbers, text or JSON, as Python values. A list of names: dicts of the columns'
            values. None: samples are images without labels.
        transform, target_transform, mode: as in `Blobs`.

    Raises:
        OSError: the index or a shard cannot be read.
        ValueError: the index or a shard is damaged, compressed or of another format; a column is missing, or has an
            encoding that is not read: ``pkl`` could run any code.
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
    ) -> None:
        shards = _shards(Path(folder).absolute())
        super().__init__(shards, _IMAGES, _DECODERS, image, label, transform, target_transform, mode)


def _shards(folder: Path) -> list[Shard]:
    """Reads the index of a folder."""
    index = folder / "index.json"
    try:
        held = json.loads(index.read_bytes())
        shards = [_shard(folder, one) for one in held["shards"]]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of MDS shards, or it is damaged: {error!r}") from error
    return shards


def _shard(folder: Path, held: dict[str, Any]) -> Shard:
    if held["format"] != "mds" or held["version"] != 2:
        raise ValueError(f"{folder} has shards of format {held['format']!r} {held['version']}; mds, version 2, is read")
    name = held["raw_data"]["basename"]
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the index of {folder} names {name!r}, which is not in the folder")
    path = folder / name
    if held["compression"] and not path.exists():
        raise ValueError(
            f"the shards of {folder} are compressed ({held['compression']}); decompress them first, or let streaming "
            "keep its decompressed copies"
        )
    columns = zip(held["column_names"], map(Column, held["column_encodings"], held["column_sizes"]), strict=True)
    return Shard(str(path), int(held["samples"]), dict(columns))

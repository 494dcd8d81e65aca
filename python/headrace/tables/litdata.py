"""Chunks of Lightning's litdata as a dataset, mapped."""

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

_IMAGES = ("jpeg", "image", "bytes")
_DECODERS: dict[str, Decoder] = {
    "int": partial(number, "<i8"),
    "float": partial(number, "<f8"),
    "bool": partial(number, "?"),
    "str": text,
    "bytes": bytes,
}
_ARROW_ROWS = b"LDARW01\0"  # the end of a chunk with an Arrow table behind its samples, or in their place
_LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


class LitData(ShardSource):
    """Encoded images in chunks that Lightning's litdata (`optimize`) wrote of dicts. Samples are (image, label).

    The chunks are mapped into memory, and images are decoded where they lie, by the rules of `ImageFolder`: as Pillow
    opens them. Chunks that are compressed as a whole (zstd) are decompressed once into a folder. A chunk that is
    truncated while it is mapped ends the process.

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
        ValueError: the index or a chunk is damaged, encrypted, or of another layout, such as the Arrow
            tables that litdata makes of dicts of bytes and numbers; the samples are not dicts; a key is missing, or its
            values are not read: pickles could run any code.
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
        for shard in shards:
            _check_rows(shard.path)
        super().__init__(shards, _IMAGES, _DECODERS, image, label, transform, target_transform, mode)


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
        columns = _columns(folder, config)
        how = config.get("compression")
        return [Shard(_file(folder, chunk, how, cache), int(chunk["chunk_size"]), columns) for chunk in chunks]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of litdata's chunks, or it is damaged: {error!r}") from error


def _file(folder: Path, chunk: dict[str, Any], compression: str | None, cache: Path) -> str:
    """Returns the path of a chunk; of a compressed one, that of its decompressed copy."""
    path = _inside(folder, chunk["filename"])
    if not compression or f".{compression}." not in Path(path).name:
        return path
    return decompressed(path, compression, int(chunk["chunk_bytes"]), cache)


def _check_rows(path: str) -> None:
    """Raises ValueError for a chunk whose samples lie in an Arrow table at its end: their places are all the same."""
    with Path(path).open("rb") as file:
        begin = file.read(12)  # the number of samples, and two places
        file.seek(-min(8, file.seek(0, os.SEEK_END)), os.SEEK_END)
        if file.read() == _ARROW_ROWS and begin[4:8] == begin[8:]:
            raise ValueError(
                f"{path} keeps its samples in an Arrow table, as litdata writes dicts of bytes and numbers; such "
                "chunks are not read: write the images as PIL images"
            )


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

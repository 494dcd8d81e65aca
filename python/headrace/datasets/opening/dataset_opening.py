"""Opens the dataset that a command line names: a folder, shards, a table, an archive, or an object of a module."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable
from pathlib import Path

from headrace.datasets.opening.named_objects import is_object, named_object
from headrace.datasets.opening.table_columns import columns_of_index, columns_of_schema, schema_of
from headrace.datasets.sources import ImageFiles, ImageFolder
from headrace.datasets.sources.image_folder import EXTENSIONS
from headrace.datasets.tables.arrow import Arrow
from headrace.datasets.tables.litdata import LitData
from headrace.datasets.tables.mds import MDS
from headrace.datasets.tables.parquet import Parquet
from headrace.datasets.tables.zip_archive import Zip
from headrace.datasets.tar_shards.shard_urls import shard_paths
from headrace.datasets.tar_shards.tar_dataset import IMAGES, TarShards
from headrace.datasets.tar_shards.tar_index import index_of

_TABLES: dict[str, Callable[..., Arrow]] = {".arrow": Arrow, ".parquet": Parquet}
_SHARDS = (".tar", *_TABLES)
_FORMS = (
    "a folder of images, .tar shards, .parquet, .arrow or .zip files, a folder of MDS or litdata shards, or "
    "module:object"
)


def open_dataset(text: str) -> object:
    """Returns the dataset that a text names, without a transform unless an object of the user's has one.

    Args:
        text: a folder of class folders (`ImageFolder`); a folder of images (`ImageFiles`, without labels); tar shards
            as `TarShards` takes them; a Parquet, Arrow or zip file, or a pattern of them; a folder of tar shards, of
            Parquet or Arrow files, of MDS or litdata shards; ``module:object`` or ``file.py:object``, a dataset or a
            function that returns one.

    Raises:
        ValueError: there is no such thing, or it is no dataset; one sentence.
        OSError: a file cannot be read.
        ImportError: the library that reads the format is not installed.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        return _open_folder(path)
    if path.is_file():
        return _open_files([path], str(path))
    if is_object(text):
        return _check_dataset(text, named_object(text))
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", text) and not text.startswith("file://"):
        raise ValueError(f"{text} is not a file of this machine; copy it to a disk first, or name it as module:object")
    if text.endswith(".tar") and re.search(r"[*?\[{]|::", text):
        return _open_tars(text)
    found = sorted(Path(one) for one in glob.glob(text)) if glob.has_magic(text) else []  # noqa: PTH207 - any root
    if not found:
        raise ValueError(f"{text} does not exist; a dataset is {_FORMS}")
    return _open_files(found, text)


def _check_dataset(text: str, dataset: object) -> object:
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise ValueError(f"{text} is no map-style dataset but {type(dataset).__name__}: it needs [index] and len()")
    return dataset


def _open_folder(folder: Path) -> object:
    if (folder / "index.json").is_file():
        kind, image, label = columns_of_index(folder)
        return MDS(folder, image, label) if kind == "mds" else LitData(folder, image, label)
    entries = sorted(folder.iterdir())
    images = [one for one in entries if one.name.lower().endswith(EXTENSIONS)]
    if not images:
        if (state := folder / "state.json").is_file() and (folder / "dataset_info.json").is_file():
            return _open_saved(folder, state)
        for suffix in _SHARDS:
            if shards := [one for one in entries if one.suffix == suffix]:
                return _open_files(shards, str(folder))
        if any(one.is_dir() for one in entries):
            dataset = ImageFolder(folder, allow_empty=True)
            if len(dataset):
                return dataset
        raise ValueError(f"{folder} holds no images, and no shards that headrace reads; a dataset is {_FORMS}")
    return ImageFiles(sorted(one for one in folder.rglob("*") if one.name.lower().endswith(EXTENSIONS)))


def _open_saved(folder: Path, state: Path) -> Arrow:
    """Returns what ``save_to_disk`` of Hugging Face's datasets wrote."""
    try:
        names = [one["filename"] for one in json.loads(state.read_bytes())["_data_files"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{state} is not what save_to_disk writes, or it is damaged: {error!r}") from error
    return _open_table([folder / Path(name).name for name in names], Arrow)


def _open_files(paths: list[Path], text: str) -> object:
    suffixes = {one.suffix.lower() for one in paths}
    if len(suffixes) > 1:
        raise ValueError(f"{text} names files of several formats ({', '.join(sorted(suffixes))}); name those of one")
    suffix = suffixes.pop()
    if suffix == ".tar":
        return _open_tars(*paths)
    if suffix in _TABLES:
        return _open_table(paths, _TABLES[suffix])
    if suffix == ".zip":
        if len(paths) > 1:
            raise ValueError(f"{text} names {len(paths)} zip files; one at a time is read")
        return Zip(paths[0])
    if suffix in EXTENSIONS:
        return ImageFiles(paths)
    if suffix == ".py":
        raise ValueError(
            f"{text} is a program: add the name of a dataset in it, or of a function that makes one: {text}:NAME"
        )
    raise ValueError(f"{text} is no dataset that headrace reads; a dataset is {_FORMS}")


def _open_tars(*urls: str | Path) -> TarShards:
    """Returns tar shards with the labels ``cls``, ``json`` or ``txt``, whichever the first shard has."""
    known = set(index_of(shard_paths(urls)[0], None).extension_numbers())
    if not known & set(IMAGES):
        raise ValueError(f"{shard_paths(urls)[0]} holds no images but {', '.join(sorted(known)) or 'nothing'}")
    return TarShards(urls, label=next((one for one in ("cls", "json", "txt") if one in known), None))


def _open_table(paths: list[Path], kind: Callable[..., Arrow]) -> Arrow:
    schema = schema_of(paths[0])
    image, label = columns_of_schema(str(paths[0]), schema)
    # Hugging Face's datasets turn images by their EXIF orientation, and leave their name in the files that they write.
    return kind(paths, image, label, upright=b"huggingface" in (schema.metadata or {}))

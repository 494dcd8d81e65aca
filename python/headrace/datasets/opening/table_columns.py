"""Chooses the column of images and that of labels of a table by their types and usual names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.datasets.tables.converted_files import pyarrow
from headrace.datasets.tables.image_column import check_type

_IMAGES = ("image", "img", "jpg", "jpeg", "png", "picture", "photo", "x")
_LABELS = ("label", "labels", "fine_label", "target", "cls", "class", "y")
_IMAGE_ENCODINGS = ("jpeg", "png", "image", "bytes")  # of MDS and litdata, the most certain first


def columns_of_schema(where: str, schema: Any) -> tuple[str, str | None]:
    """Returns the columns of images and labels of a ``pyarrow.Schema``.

    Args:
        where: the file, for messages.

    Raises:
        ValueError: no column holds images, or several do and none has a usual name.
    """
    images = [name for name in schema.names if _holds_images(name, schema.field(name).type)]
    return _choose_image_column(where, images, schema.names), _choose_label_column(schema.names)


def schema_of(path: Path) -> Any:
    """Returns the ``pyarrow.Schema`` of a Parquet file, an Arrow file or an Arrow stream.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: the file is none of these.
    """
    pa = pyarrow()
    try:
        if path.suffix == ".parquet":
            from pyarrow.parquet import read_schema

            return read_schema(path)
        with pa.memory_map(str(path)) as file:
            try:
                return pa.ipc.open_file(file).schema
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).schema
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is no {path.suffix[1:].capitalize()} file, or it is damaged: {error}") from error


def _holds_images(name: str, kind: object) -> bool:
    try:
        check_type(name, kind)
    except TypeError:
        return False
    return True


def columns_of_index(folder: Path) -> tuple[str, str, str | None]:
    """Returns ("mds" or "litdata", column of images, column of labels) of a folder with such shards.

    Raises:
        ValueError: its index is of neither format, or no column holds images.
    """
    index = folder / "index.json"
    try:
        held = json.loads(index.read_bytes())
        if "shards" in held:
            kind, first = "mds", held["shards"][0]
            encodings = dict(zip(first["column_names"], first["column_encodings"], strict=True))
        else:
            kind, config = "litdata", held["config"]
            names = json.loads(json.loads(config["data_spec"])[1]["context"])
            encodings = dict(zip(names, (one.partition(":")[0] for one in config["data_format"]), strict=True))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{index} is neither an index of MDS shards nor one of litdata's chunks: {error!r}") from error
    for wanted in _IMAGE_ENCODINGS:
        if images := [name for name, encoding in encodings.items() if encoding == wanted]:
            return (
                kind,
                _choose_image_column(str(index), images, list(encodings)),
                _choose_label_column(list(encodings)),
            )
    return kind, _choose_image_column(str(index), [], list(encodings)), None


def _choose_image_column(where: str, images: Sequence[str], names: Sequence[str]) -> str:
    usual = [name for wanted in _IMAGES for name in images if name.lower() == wanted]
    if usual or len(images) == 1:
        return (usual or images)[0]
    columns = f"its columns are {', '.join(names)}"
    if images:
        raise ValueError(
            f"{where} has several columns of images ({', '.join(images)}); write a function that returns the dataset "
            "with image=..., and name it as module:function"
        )
    raise ValueError(f"{where} has no column of encoded images; {columns}")


def _choose_label_column(names: Sequence[str]) -> str | None:
    return next((name for wanted in _LABELS for name in names if name.lower() == wanted), None)

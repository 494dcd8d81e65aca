"""Compares what two loaders deliver, without tolerance, and says where the first difference is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image


def difference(ours: Any, theirs: Any, where: str = "it") -> str | None:
    """Returns where and how two values differ; None if they are equal in structure, types and values."""
    if isinstance(theirs, Image.Image) and isinstance(ours, Image.Image):
        return _first(_facts(ours), _facts(theirs), where)
    if type(ours) is not type(theirs):
        return f"{where}: {type(ours)}, expected {type(theirs)}"
    if isinstance(theirs, torch.Tensor):
        return _first(_of_tensor(ours), _of_tensor(theirs), where)
    if isinstance(theirs, np.ndarray) and theirs.dtype != object:
        return _first(_of_array(ours), _of_array(theirs), where)
    if isinstance(theirs, Mapping):
        if list(ours) != list(theirs):
            return f"{where}: keys {list(ours)}, expected {list(theirs)}"
        return _first(dict(ours), dict(theirs), where)
    if (isinstance(theirs, Sequence) and not isinstance(theirs, (str, bytes))) or isinstance(theirs, np.ndarray):
        if len(ours) != len(theirs):
            return f"{where}: {len(ours)} elements {ours!r:.500}, expected {len(theirs)}: {theirs!r:.500}"
        return _first(dict(enumerate(ours)), dict(enumerate(theirs)), where)
    if isinstance(theirs, float):
        ours, theirs = ours.hex(), theirs.hex()  # 0.0 == -0.0, and nan != nan
    equal = ours is theirs or ours == theirs
    return None if equal else f"{where}: {ours!r:.500}, expected {theirs!r:.500}"


def _first(ours: dict[Any, Any], theirs: dict[Any, Any], where: str) -> str | None:
    for key, value in theirs.items():
        found = difference(ours[key], value, f"{where}[{key!r}]")
        if found:
            return found
    return None


def _of_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    plain = tensor.detach().as_subclass(torch.Tensor)
    return {
        "dtype": plain.dtype,
        "shape": tuple(plain.shape),
        "stride": plain.stride(),
        "held": {key: str(value) for key, value in vars(tensor).items()},  # of tv_tensors
        "bytes": plain.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b"",
    }


def _of_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": array.shape, "bytes": array.tobytes(), "strides": array.strides}


def _facts(image: Image.Image) -> dict[str, Any]:
    """What a program can see of an image, once it has pixels: until then a deferred image is of another class."""
    assert image.im is not None
    return {
        "mode": image.mode,
        "size": image.size,
        "pixels": image.tobytes(),
        "palette": None if image.palette is None else (image.palette.mode, image.getpalette()),
        "info": image.info,
        "format": image.format,
        "exif": _exif(image),
        "filename": getattr(image, "filename", None),
        "attributes": sorted(vars(image).keys() - {"map"}),  # see test_attributes_of_a_loaded_file
        "class": type(image),
    }


def _exif(image: Image.Image) -> Any:
    try:
        return dict(image.getexif())
    except Exception as error:  # damaged
        return type(error), str(error)

"""webdataset's image handlers that give tensors with three colours, `torchrgb8`, `torchrgb` and `torch`: deferred ones.

webdataset opens the image with Pillow and copies an array of it, channel by channel; of floats, divided by 255.
"""

from __future__ import annotations

import functools
import io
import re
import sys
from typing import Any

import numpy as np
import torch
from PIL import Image

from headrace._base.types import Array, Function
from headrace._loading.doors.image_to_tensor import defer_tensor
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recorded_functions import record_values
from headrace._loading.doors.tensors.recording import ValueStep
from headrace.pillow.recording.image_counts import in_force
from headrace.pillow.recording.patches import Replacements, method

_MODULE = "webdataset.autodecode"
_KINDS = {"uint8": np.uint8, "float": np.float32}


def _defer_image(plain: Function) -> Function:
    @functools.wraps(plain)
    def decode(self: Any, key: Any, data: Any) -> Any:
        kind = None
        if in_force.here() is not None and type(data) is bytes and isinstance(key, str):
            kind = _kind_of(self, key)
        return plain(self, key, data) if kind is None else _open(data, kind)

    return decode


def _kind_of(handler: Any, key: str) -> str | None:
    """Returns the type of the values, uint8 or float, if a handler makes an RGB tensor of a file of this name."""
    if re.sub(r".*[.]", "", key).lower() not in handler.extensions:
        return None
    specs: Any = getattr(sys.modules[_MODULE], "imagespecs", {})
    found = specs.get(handler.imagespec)
    if not isinstance(found, tuple) or len(found) != 3:
        return None
    made, kind, mode = found
    return kind if made == "torch" and mode == "rgb" and kind in _KINDS else None


def _open(data: bytes, kind: str) -> torch.Tensor:
    """Returns the tensor of a file. Errors and warnings are Pillow's, as in webdataset."""
    with io.BytesIO(data) as stream:
        image: Image.Image = Image.open(stream)
        image.load()
        image = image.convert("RGB")
    tensor = defer_tensor(image, Layout.PLANAR, _bytes_of)
    if tensor is None:
        tensor = _bytes_of(image)
        return tensor if kind == "uint8" else _to_floats(tensor)
    if kind == "uint8":
        return tensor
    mapped = record_values(tensor, ValueStep("webdataset", _to_floats))
    return _to_floats(tensor) if mapped is None else mapped


def _bytes_of(image: Image.Image) -> torch.Tensor:
    values: Array = np.asarray(image)
    return torch.from_numpy(values.transpose(2, 0, 1).copy())


def _to_floats(values: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(values.numpy().astype(np.float32) / 255.0)


STEPS: Replacements = Replacements([method(_MODULE, "ImageHandler", "__call__", _defer_image)])

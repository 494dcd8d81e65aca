"""What a program can see of an image that it opens: after each of some steps, or the error; and the warnings."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageOps

STEPS: list[Callable[[Any], Any]] = [
    lambda image: image,
    lambda image: image.convert("RGB"),
    lambda image: image.convert("L"),
    lambda image: image.convert("RGBA"),
    lambda image: image.convert("P"),
    lambda image: image.convert("1"),
    lambda image: image.crop((1, 0, max(2, image.width // 2), image.height)),
    lambda image: image.resize((17, 13)),
    lambda image: image.resize((17, 13), Image.Resampling.NEAREST),
    lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    lambda image: image.transpose(Image.Transpose.TRANSPOSE),
    lambda image: image.convert("RGB").resize((20, 9), Image.Resampling.BICUBIC),
    lambda image: image.convert("RGB").crop((0, 0, max(1, image.width // 2), image.height)).resize((9, 9)),
    lambda image: image.convert("L").transpose(Image.Transpose.FLIP_TOP_BOTTOM),
    lambda image: image.copy().convert("RGB"),
    lambda image: image.rotate(30),
    lambda image: image.getchannel(0),
    ImageOps.exif_transpose,
    lambda image: np.array(image),
    lambda image: (image.load(), image.putpixel((0, 0), 1 if len(image.getbands()) == 1 else (1,) * 4), image)[2],
]


#: Of images of files.
_ATTRIBUTES = ("text", "tile", "is_animated", "n_frames", "format", "readonly")


def shown(image: Any) -> Any:
    """All that a program can see."""
    if not isinstance(image, Image.Image):
        return image.dtype.str, image.shape, image.tobytes()
    values = np.asarray(image)
    palette = image.getpalette() if image.mode == "P" else None
    return image.mode, image.size, repr(image.info), image.tobytes(), palette, values.dtype.str, values.tobytes()


def outcome(opens: Callable[..., Any], data: bytes, step: Callable[[Any], Any]) -> Any:
    """What a step on a file shows, or the error; and the warnings."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            image = opens(io.BytesIO(data))
            made = shown(step(image))
            found = [getattr(image, name, None) for name in _ATTRIBUTES]
            result = made, found, image.fp is None, image.tell(), shown(image)
        except Exception as error:
            result = type(error), re.sub(r"0x[0-9a-f]+", "", str(error))  # type: ignore[assignment]
    return result, [str(one.message) for one in issued]

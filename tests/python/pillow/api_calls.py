"""A call of each public method and attribute of Pillow's image classes, with arguments drawn at random."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageFilter

Call = Callable[[Any, random.Random], Any]

#: Why a public name is not called.
LEFT_OUT = {
    "apply_transparency": "does nothing to an image without transparency, so it would show nothing",
    "getim": "a capsule with an address",
    "load_djpeg": "runs another program",
    "load_prepare": "a step of load: allocates the pixels, which load fills",
    "load_read": "a step of load: reads the open file",
    "show": "opens a window",
    "toqimage": "needs Qt",
    "toqpixmap": "needs Qt",
}


def _box(image: Any, draw: random.Random) -> tuple[int, int, int, int]:
    width, height = image.size
    left, top = draw.randint(-2, max(width - 1, 0)), draw.randint(-2, max(height - 1, 0))
    return left, top, left + draw.randint(-1, width), top + draw.randint(0, height)


def _size(draw: random.Random) -> tuple[int, int]:
    return draw.randint(0, 60), draw.randint(1, 60)


def _other(image: Any) -> Any:
    return Image.new(image.mode, (5, 4))


def _saved(image: Any, draw: random.Random) -> bytes:
    stream = io.BytesIO()
    image.save(stream, draw.choice(["PNG", "JPEG", "BMP", "nothing"]), quality=draw.choice([50, "keep"]))
    return stream.getvalue()


def _loaded(image: Any, draw: random.Random) -> Any:
    access, at = image.load(), (draw.randint(-2, 20), draw.randint(0, 20))
    value = access[at]
    if draw.random() < 0.3:
        access[at] = 7
    return value, access[at]


CALLS: dict[str, Call] = {
    "alpha_composite": lambda i, d: i.alpha_composite(Image.new("RGBA", (5, 4))),
    "close": lambda i, d: i.close(),
    "convert": lambda i, d: i.convert(d.choice(["RGB", "L", None, "RGBA", "CMYK", "P", "1", "YCbCr", "F", "no"])),
    "copy": lambda i, d: i.copy(),
    "crop": lambda i, d: i.crop(d.choice([None, _box(i, d), _box(i, d), (0.5, 1.5, 20.5, 9.4), (5, 5, 2, 9), "ab"])),
    "draft": lambda i, d: i.draft(d.choice([None, "L", "RGB"]), d.choice([None, (60, 60), (20, 10)])),
    # Of I;16 it writes half of each row; the rest is what was in memory.
    "effect_spread": lambda i, d: None if i.mode == "I;16" else i.effect_spread(0),
    "entropy": lambda i, d: repr(i.entropy()),  # NaN differs from itself
    "filter": lambda i, d: i.filter(d.choice([ImageFilter.BLUR, ImageFilter.GaussianBlur(1), ImageFilter.MinFilter])),
    "format": lambda i, d: i.format,
    "format_description": lambda i, d: i.format_description,
    "frombytes": lambda i, d: i.frombytes(bytes(d.choice([5, i.width * i.height * len(i.getbands())]))),
    "get_child_images": lambda i, d: i.get_child_images(),
    "get_flattened_data": lambda i, d: i.get_flattened_data(d.choice([None, 0])),
    "get_format_mimetype": lambda i, d: i.get_format_mimetype(),
    "getbands": lambda i, d: i.getbands(),
    "getbbox": lambda i, d: i.getbbox(),
    "getchannel": lambda i, d: i.getchannel(d.choice([0, "G", 9])),
    "getcolors": lambda i, d: i.getcolors(d.choice([256, 100_000])),
    "getdata": lambda i, d: list(i.getdata(d.choice([None, 0]))),
    "getexif": lambda i, d: dict(i.getexif()),
    "getextrema": lambda i, d: i.getextrema(),
    "getpalette": lambda i, d: i.getpalette(),
    "getpixel": lambda i, d: i.getpixel((d.randint(-3, 40), d.randint(0, 40))),
    "getprojection": lambda i, d: i.getprojection(),
    "getxmp": lambda i, d: i.getxmp(),
    "has_transparency_data": lambda i, d: i.has_transparency_data,
    "height": lambda i, d: i.height,
    "histogram": lambda i, d: i.histogram(),
    "im": lambda i, d: (i.im.mode, i.im.size),
    "load": _loaded,
    "load_end": lambda i, d: i.load_end(),
    "mode": lambda i, d: i.mode,
    "paste": lambda i, d: i.paste(d.choice([3, "red", _other(i)]), (d.randint(-3, 9), 2)),
    "point": lambda i, d: i.point(d.choice([lambda value: 255 - value, [0] * 5])),
    "putalpha": lambda i, d: i.putalpha(9),
    "putdata": lambda i, d: i.putdata([i.getpixel((0, 0))] * d.choice([3, 100_000])),
    "putpalette": lambda i, d: i.putpalette(bytes(range(256)) * 3),
    "putpixel": lambda i, d: i.putpixel((d.randint(0, 60), 2), d.choice([7, (1, 2, 3)])),
    "quantize": lambda i, d: i.quantize(16),
    "readonly": lambda i, d: i.readonly,
    "reduce": lambda i, d: i.reduce(d.choice([1, 2, (3, 1), 0]), d.choice([None, (0, 0, 9, 9)])),
    "remap_palette": lambda i, d: i.remap_palette([0, 1]),
    "resize": lambda i, d: i.resize(
        _size(d),
        d.choice([None, *range(6), 17]),
        d.choice([None, None, (0, 0, i.width / 2, i.height), (1, 1, 1, 5), _box(i, d)]),
        d.choice([None, None, 1.2, 3.0, 0.5]),
    ),
    "rotate": lambda i, d: i.rotate(d.choice([0, 90, 180, 270, 13]), expand=d.random() < 0.5),
    "save": _saved,
    "seek": lambda i, d: i.seek(d.randint(0, 1)),
    "size": lambda i, d: i.size,
    "split": lambda i, d: i.split(),
    "tell": lambda i, d: i.tell(),
    "thumbnail": lambda i, d: i.thumbnail(_size(d), d.choice([1, 3]), d.choice([None, 1.1, 2.0])),
    "tobitmap": lambda i, d: i.tobitmap(),
    "tobytes": lambda i, d: i.tobytes(*d.choice([(), ("raw", "BGR"), ("raw", "no")])),
    "transform": lambda i, d: i.transform((20, 10), Image.Transform.EXTENT, (0, 0, 30, 30), 2),
    "transpose": lambda i, d: i.transpose(d.choice([*Image.Transpose, 9])),
    "verify": lambda i, d: i.verify(),
    "width": lambda i, d: i.width,
}

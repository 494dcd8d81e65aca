"""What is made of a deferred image and kept does not change when the image, its file or its object goes on to change.

Random programs: they make views, results and enhancers of an image, change it in place, close it, drop it, overwrite
its file, and then look at everything that they kept. Pillow says what they have to see.
"""

from __future__ import annotations

import gc
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import sound_files
from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageMath, ImageOps, ImageSequence, ImageStat
from PIL.JpegImagePlugin import JpegImageFile

import headrace
from png_samples import KINDS, png

PROGRAMS = int(os.environ.get("HEADRACE_PROGRAMS", "300"))
Step = Callable[[Any, random.Random], Any]


def _enhancer(image: Any, draw: random.Random) -> Any:
    made = getattr(ImageEnhance, draw.choice(["Color", "Contrast", "Brightness", "Sharpness"]))(image)
    return draw.choice([lambda: made, lambda: made.degenerate, lambda: made.enhance(draw.choice([0, 0.5, 1.7]))])()


#: What is kept, of an image that may be in use elsewhere.
KEPT: dict[str, Step] = {
    "load": lambda i, d: i.load(),
    "enhancer": _enhancer,
    "another enhancer": _enhancer,
    "core": lambda i, d: i.im if d.random() < 0.3 else None,
    "getdata": lambda i, d: i.getdata(d.choice([None, 0])),
    "copy": lambda i, d: i.copy(),
    "crop": lambda i, d: i.crop((2, 1, 30, 20)),
    "convert": lambda i, d: i.convert(d.choice(["L", "RGB", "HSV", "P"])),
    "resize": lambda i, d: i.resize((17, 13), d.choice([0, 2, 3])),
    "transpose": lambda i, d: i.transpose(d.randrange(7)),
    "rotate": lambda i, d: i.rotate(20, fillcolor=d.choice([None, 9])),
    "transform": lambda i, d: i.transform((20, 10), Image.Transform.AFFINE, (1.1, 0, 2, 0, 0.9, 1), 2),
    "split": lambda i, d: i.split(),
    "getchannel": lambda i, d: i.getchannel(0),
    "array": lambda i, d: np.asarray(i),
    "interface": lambda i, d: i.__array_interface__,
    "filter": lambda i, d: i.filter(ImageFilter.SMOOTH),
    "draw": lambda i, d: ImageDraw.Draw(i),
    "stat": lambda i, d: ImageStat.Stat(i),
    "chops": lambda i, d: ImageChops.offset(i, 3),
    "blend": lambda i, d: Image.blend(i, i.transpose(0), 0.3),
    "invert": lambda i, d: ImageOps.invert(i.convert("RGB")),
    "exif": lambda i, d: i.getexif(),
    "sequence": lambda i, d: ImageSequence.Iterator(i),
    "math": lambda i, d: getattr(ImageMath, "lambda_eval", lambda *_, **__: None)(lambda a: a["i"], i=i.convert("L")),
    "itself": lambda i, d: i,
}


def _file(image: Any, draw: random.Random) -> None:
    image.info["program"] = 1
    if isinstance(image, JpegImageFile) and image.filename:
        Path(os.fsdecode(image.filename)).write_bytes(b"no image any more" * 500)


#: What happens to it.
CHANGES: dict[str, Step] = {
    "thumbnail": lambda i, d: i.thumbnail(d.choice([(9, 9), (25, 40), (900, 900)])),
    "paste": lambda i, d: i.paste(d.choice([5, Image.new(i.mode, (9, 9))]), (3, 2)),
    "rectangle": lambda i, d: ImageDraw.Draw(i).rectangle((0, 0, 12, 9), fill=200),
    "pixel": lambda i, d: i.putpixel((1, 1), 77),
    "access": lambda i, d: i.load().__setitem__((2, 2), 99),
    "putalpha": lambda i, d: i.putalpha(9),
    "putdata": lambda i, d: i.putdata([(1, 2, 3) if i.mode == "RGB" else 4] * 40),
    "putpalette": lambda i, d: i.putpalette(bytes(range(256)) * 3),
    "frombytes": lambda i, d: i.frombytes(bytes(i.width * i.height * len(i.getbands()))),
    "close": lambda i, d: i.close(),
    "leave": lambda i, d: i.__exit__(None, None, None),
    "draft": lambda i, d: i.draft(d.choice(["L", "RGB"]), d.choice([(20, 20), (60, 60)])),
    "load": lambda i, d: i.load() and None,
    "seek": lambda i, d: i.seek(0),
    "verify": lambda i, d: i.verify(),
    "tile": lambda i, d: setattr(i, "tile", d.choice([[], [("raw", (0, 0, 9, 9), 0, (i.mode, 0, 1))]])),
    "fp": lambda i, d: setattr(i, "fp", io.BytesIO(bytes(90))),
    "decoderconfig": lambda i, d: setattr(i, "decoderconfig", d.choice([(1, 0), ()])),
    "readonly": lambda i, d: setattr(i, "readonly", 1),
    "info": lambda i, d: i.info.update(program=2),
    "prepare": lambda i, d: i.load_prepare(),
    "im": lambda i, d: setattr(i, "im", Image.new(i.mode, i.size, 3).im),
    "file": _file,
}


def shown(value: Any) -> Any:
    """What can be seen of something that was kept."""
    if isinstance(value, Image.Image):
        return (
            type(value).__name__,
            value.mode,
            value.size,
            value.tobytes(),
            sorted(map(str, value.info)),
            value.readonly,
        )
    if isinstance(value, ImageEnhance._Enhance):
        names = sorted(value.__dict__)
        return type(value), names, *map(shown, (value.degenerate, value.image, value.enhance(0.4)))
    if isinstance(value, (tuple, list)):
        return [shown(one) for one in value]
    if isinstance(value, np.ndarray):
        # Before Pillow 11 an image that has been closed is an object for NumPy.
        return value.shape, value.dtype, None if value.dtype == object else value.tobytes()
    if isinstance(value, ImageDraw.ImageDraw):
        value.line((0, 0, 5, 5), fill=3)
        return value.im.size, value.im.mode
    if isinstance(value, ImageStat.Stat):
        return value.mean, value.extrema
    if isinstance(value, ImageSequence.Iterator):
        return shown(value[0])
    if isinstance(value, Image.Exif):
        return sorted(value.items())
    if hasattr(value, "__getitem__") and "Access" in type(value).__name__:
        value[4, 4] = 50
        return [value[at] for at in ((0, 0), (4, 4), (5, 3), (-1, -1))]
    if hasattr(value, "bands"):  # a native image
        return value.mode, value.size, value.getpixel((2, 2)), value.histogram()[:40]
    return value


def done(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error).split(" at 0x")[0]


def seen_by(open_: Any, data: bytes, folder: Path, seed: int) -> list[Any]:
    draw = random.Random(seed)
    file = folder / "a.jpg"
    file.write_bytes(data)
    image = open_(file if draw.random() < 0.5 else io.BytesIO(data))
    if draw.random() < 0.6:
        image = done(lambda: draw.choice(list(KEPT.values())[5:11])(image, draw))
    kept: list[Any] = []
    for _ in range(draw.randint(2, 6)):
        name = draw.choice([*KEPT, *CHANGES])
        step = KEPT.get(name) or CHANGES[name]
        if name in KEPT and draw.random() < 0.2 and kept:
            image_of = [one for _, one in kept if isinstance(one, Image.Image)]
            image = draw.choice(image_of) if image_of else image
        made = done(lambda step=step, image=image: step(image, draw))  # type: ignore[misc]
        kept.append((name, made))
    if draw.random() < 0.3:
        del image
        gc.collect()
    return [(name, done(lambda one=one: shown(one))) for name, one in kept]  # type: ignore[misc]


@pytest.fixture(scope="module")
def files(photographs: list[Path]) -> list[bytes]:
    return [*sound_files(photographs)[:-1], *(png(60, 50, colour, depth) for colour, depth in KINDS)]


def different(files: list[bytes], folder: Path, seeds: range) -> list[Any]:
    found: list[Any] = []
    for seed in seeds:
        data = files[seed % len(files)]
        with headrace.pillow.deferred():
            ours = seen_by(Image.open, data, folder, seed)
        theirs = seen_by(Image.open, data, folder, seed)
        if ours != theirs:
            step = next(number for number, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
            names = [name for name, _ in theirs]
            found.append((seed, names, step, str(ours[step])[:300], str(theirs[step])[:300]))
    return found


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Hides what earlier tests have left from the collector: the programs call it often."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as conftest.py does


@pytest.mark.usefixtures("few_objects")
@pytest.mark.filterwarnings("ignore")
def test_random_programs_see_what_pillow_shows(files: list[bytes], tmp_path: Path) -> None:
    assert different(files, tmp_path, range(PROGRAMS))[:3] == []

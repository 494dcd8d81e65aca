"""Small files of images that programs open: made once, in a folder that the processes of a campaign share."""

from __future__ import annotations

import functools
import io
import os
import shutil
import signal
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

#: Names the folder, for the processes of a campaign.
VARIABLE = "HEADRACE_PROGRAM_FILES"
CLASSES, EACH = 3, 4
#: Makes each process of a campaign write its threads' stacks.
DUMP = signal.SIGUSR2


def stacks(process: int) -> Path:
    """The file that a process of a campaign, and those that it starts, write their stacks into."""
    return Path(os.environ.get(VARIABLE, tempfile.gettempdir())) / f"stacks-{process}.txt"


def encoded(seed: int, size: tuple[int, int], mode: str = "RGB", form: str = "JPEG", **options: object) -> bytes:
    """An image of smooth noise, encoded. Its first pixel is dark for every third seed, else bright."""
    noise = np.random.default_rng(seed).integers(40, 256, (size[1] // 4 + 2, size[0] // 4 + 2, 3), dtype=np.uint8)
    if seed % 3 == 0:
        noise //= 8
    image = Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)
    out = io.BytesIO()
    (image.quantize(16) if mode == "P" else image.convert(mode)).save(out, form, **options)
    return out.getvalue()


def _plain(number: int) -> tuple[str, bytes]:
    return "jpg", encoded(number, (10 + number * 7 % 23, 9 + number * 5 % 19))


def _same(number: int) -> tuple[str, bytes]:
    return "jpg", encoded(number, (16, 12), quality=95)


def _odd(number: int) -> tuple[str, bytes]:
    mode, form = (("RGB", "PNG"), ("L", "JPEG"), ("P", "PNG"), ("CMYK", "JPEG"), ("RGBA", "PNG"), ("RGB", "JPEG"))[
        number % 6
    ]
    more = {"progressive": True} if number % 12 == 5 else {}
    return form.lower().replace("jpeg", "jpg"), encoded(number, (12 + number % 5, 14), mode, form, **more)


def _broken(number: int) -> tuple[str, bytes]:
    good = encoded(number, (24, 20))
    return "jpg", good[: len(good) // 2] if number == 4 else b"no image" if number == 9 else good


KINDS = {"plain": _plain, "same": _same, "odd": _odd, "broken": _broken}


def prepare(root: Path) -> None:
    """Writes the files."""
    for kind, make in KINDS.items():
        for number in range(CLASSES * EACH):
            suffix, data = make(number)
            path = root / kind / f"class{number % CLASSES}" / f"{number:02}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@functools.cache
def _root() -> Path:
    given = os.environ.get(VARIABLE)
    root = Path(given) if given else Path(tempfile.mkdtemp(prefix="programs-"))
    if not (root / "plain").is_dir():
        prepare(root)
    return root


def folder(kind: str) -> str:
    """A folder of class folders."""
    return str(_root() / kind)


@functools.cache
def _listed(kind: str) -> tuple[str, ...]:
    return tuple(sorted(map(str, (_root() / kind).rglob("*.*"))))


def paths(kind: str) -> list[str]:
    """The files of a folder."""
    return list(_listed(kind))


def blobs(kind: str) -> list[bytes]:
    """The files of a folder, as bytes."""
    return [Path(path).read_bytes() for path in _listed(kind)]


class Copies:
    """Folders whose files a program may change: removed when the run ends."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def __call__(self, kind: str) -> str:
        # Equal names in each run: error messages contain them.
        root = Path(f"{_root()}-copy-{os.getpid()}") / str(len(self._made))
        shutil.copytree(folder(kind), root, copy_function=shutil.copy)
        self._made.append(str(root))
        return str(root)

    def remove(self) -> None:
        """Removes them."""
        for root in self._made:
            shutil.rmtree(root, ignore_errors=True)
        self._made.clear()

"""Makes an ImageFolder of a few hundred different files from the photographs that ship with headrace."""

from __future__ import annotations

import fcntl
import io
import json
import random
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

PHOTOS = Path(__file__).resolve().parent / "photos"

#: The photographs by subject: the classes of the folder.
GROUPS = {
    "animals": ("cat", "crab", "dogs", "hedgehog", "kingfisher", "moose", "redpanda"),
    "buildings": ("archway", "minaret", "pagoda", "palace", "ruins"),
    "flowers": ("bee", "blossom", "dandelion", "tulips"),
    "landscapes": ("canyon", "cliff", "meadow", "stream", "sunset", "trail"),
    "things": ("brushes", "coffee", "drum", "fig", "galaxies", "gravel", "photographer", "rocket"),
}

# (quality, chroma subsampling) as cameras and web sites write them, in turn; 0 is 4:4:4, 1 is 4:2:2, 2 is 4:2:0.
_ENCODINGS = ((95, 0), (85, 2), (90, 0), (75, 2), (92, 1), (88, 0), (80, 2), (93, 2))
_MARKER = "headrace-demo.json"
_VERSION = 1


@dataclass(frozen=True)
class PhotoFolders:
    """Location of the files.

    Attributes:
        train, validation: two ImageFolders with the same classes. The files of both are made from the same photographs.
        files: number of files in both together.
    """

    train: Path
    validation: Path
    files: int


def make_photo_folder(root: str | Path, files: int = 320) -> PhotoFolders:
    """Makes ``root/train/class/*`` and ``root/val/class/*``; does nothing if they are complete.

    Several processes may call it at once, and a folder left incomplete by a killed process is made again.

    The files are the original photographs, and crops of them, some mirrored, in various encodings. They are the same
    every time. One is a PNG; another one is a CMYK JPEG, which Pillow decodes.

    Args:
        files: number of files in both folders; a multiple of the number of classes, at least ten times that number.

    Raises:
        FileExistsError: `root` contains other files.
        ValueError: `files` is not such a number.
    """
    root = Path(root)
    if files % len(GROUPS) or files < 10 * len(GROUPS):
        raise ValueError(f"files must be a multiple of {len(GROUPS)} from {10 * len(GROUPS)} up, not {files}")
    folders = PhotoFolders(root / "train", root / "val", files)
    content = json.dumps({"version": _VERSION, "files": files})
    root.mkdir(parents=True, exist_ok=True)
    there = [path.name for path in root.iterdir()]
    if there and _MARKER not in there:
        raise FileExistsError(
            f"{root} contains other files than the demo's photographs; choose another folder, or an empty one"
        )
    with (root / _MARKER).open("a+") as marker:  # created before the files, to recognise an incomplete folder as ours
        with suppress(OSError):  # a file system without locks
            fcntl.flock(marker, fcntl.LOCK_EX)  # only one of the processes that torchrun starts makes the files
        marker.seek(0)
        if marker.read() != content:
            marker.truncate(0)
            _write_class_folders(folders, files // len(GROUPS))
            marker.write(content)
    return folders


def _write_class_folders(folders: PhotoFolders, each: int) -> None:
    """Makes `each` files per class, and deletes existing ones first."""
    for folder in (folders.train, folders.validation):
        shutil.rmtree(folder, ignore_errors=True)
    for group, names in GROUPS.items():
        for number in range(each):
            name, variant = names[number % len(names)], number // len(names)
            folder = (folders.train if number < 0.8 * each else folders.validation) / group
            folder.mkdir(parents=True, exist_ok=True)
            data, ending = _make_photo_variant(name, variant)
            (folder / f"{name}-{variant:02d}.{ending}").write_bytes(data)


def _make_photo_variant(name: str, number: int) -> tuple[bytes, str]:
    """Returns one file's bytes and its extension."""
    path = PHOTOS / f"{name}.jpg"
    if number == 0:
        return path.read_bytes(), "jpg"
    with Image.open(path) as photograph:
        image = ImageOps.exif_transpose(photograph)
    dice = random.Random(f"{name} {number}")
    area, stretch = dice.uniform(0.5, 1.0), dice.uniform(0.9, 1.1)
    width = min(image.width, round(image.width * area**0.5 * stretch))
    height = min(image.height, round(image.height * area**0.5 / stretch))
    left, top = dice.randint(0, image.width - width), dice.randint(0, image.height - height)
    image = image.crop((left, top, left + width, top + height))
    if dice.random() < 0.5:
        image = ImageOps.mirror(image)
    out = io.BytesIO()
    if (name, number) == ("tulips", 1):
        image.save(out, "PNG")
        return out.getvalue(), "png"
    if (name, number) == ("coffee", 1):
        image = image.convert("CMYK")
    quality, subsampling = _ENCODINGS[dice.randrange(len(_ENCODINGS))]
    if image.mode == "RGB":
        image.save(out, "JPEG", quality=quality, subsampling=subsampling, progressive=number % 10 == 9)
    else:
        image.save(out, "JPEG", quality=quality)
    return out.getvalue(), "jpg"

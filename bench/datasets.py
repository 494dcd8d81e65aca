"""Lays out the data sets as trees of links, which every contender reads as an ImageFolder.

A tree is long enough that few measurements cross the end of an epoch (a set of 160 files is repeated by links) and
small enough for the page cache (a large set is sampled evenly). It holds only what every contender can read: RGB and
gray JPEG files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
OUT = REPOSITORY / "build" / "bench-data"
PHOTOS = REPOSITORY / "python/headrace/_cli/demo/photos"
NAMES = ("imagenet_dev", "large", "q85")
WANTED_IMAGES = 4096
MOST_BYTES = 512 * 2**20
PIXEL_IMAGES = 128


@dataclass(frozen=True)
class Dataset:
    """A tree, its contents, and the batch size of its measurements."""

    name: str
    root: Path
    about: str
    batch_size: int = 64


def data_folder() -> Path:
    return Path(os.environ.get("HEADRACE_BENCH_DATA") or REPOSITORY.parent / "shared" / "data")


def _readable(files: Sequence[Path]) -> list[Path]:
    from PIL import Image

    good = []
    for file in files:
        try:
            with Image.open(file) as image:
                if image.format == "JPEG" and image.mode in ("RGB", "L"):
                    good.append(file)
        except (OSError, SyntaxError):
            continue
    return good


def _sample(folder: Path) -> list[Path]:
    """The JPEG files of a folder, or an even sample of them if they exceed MOST_BYTES."""
    files = sorted(f for f in folder.rglob("*") if f.suffix.lower() in (".jpg", ".jpeg"))
    total = sum(f.stat().st_size for f in files)
    step = max(1, -(-total // MOST_BYTES))
    return _readable(files[::step])


def _link_tree(name: str, files: Sequence[Path], images: int) -> Path:
    """Links class/000123_name.jpg -> file, with the set repeated up to `images`; later runs reuse the tree."""
    total = sum(f.stat().st_size for f in files)
    repeats = max(1, min(-(-images // len(files)), MOST_BYTES // max(total, 1)))
    classes = {f: "all" if name.endswith("pixels") or f.parent.name == name else f.parent.name for f in files}
    links = [(f"{classes[f]}/{k:06d}_{f.name}", f) for k, f in enumerate(list(files) * repeats)]
    digest = sha256(repr([(link, str(f), f.stat().st_size) for link, f in links]).encode()).hexdigest()[:8]
    root = OUT / f"{name}-{digest}"
    if not root.exists():
        unfinished = root.with_name(root.name + ".part")
        for link, file in links:
            path = unfinished / link
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to(file.resolve())
        unfinished.rename(root)
    return root


def _reencode(files: Sequence[Path], name: str) -> list[Path]:
    """The same pictures, written by Pillow at quality 85 with 4:2:0, as is usual on the web."""
    from PIL import Image

    digest = sha256(repr([(str(f), f.stat().st_size) for f in files]).encode()).hexdigest()[:8]
    out = []
    for file in files:
        target = OUT / f"{name}-files-{digest}" / file.parent.name / f"{file.stem}.jpg"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished = target.with_suffix(".part")
            with Image.open(file) as image:
                image.convert("RGB").save(unfinished, format="JPEG", quality=85, subsampling="4:2:0")
            unfinished.rename(target)
        out.append(target)
    return out


def _main_files() -> tuple[str, list[Path]]:
    """The name and the files of the main set: ImageNet files, the given folder, or headrace's photographs."""
    folder = data_folder()
    named = folder / "imagenet_dev"
    if named.is_dir():
        return "imagenet_dev", _sample(named)
    if os.environ.get("HEADRACE_BENCH_DATA") and folder.is_dir():
        return folder.name, _sample(folder)
    return "photos", _readable(sorted(PHOTOS.glob("*.jpg")))


def lay_out(names: Sequence[str]) -> list[Dataset]:
    """The data sets that exist, in the requested order; prints those that are missing."""
    from PIL import Image

    found = []
    main, files = _main_files()
    if not files:
        raise SystemExit("no JPEG files: set HEADRACE_BENCH_DATA to an ImageFolder (see bench/README.md)")
    for name in names:
        if name == "large":
            large = data_folder() / "large"
            sources, label, batch_size = _sample(large) if large.is_dir() else [], "large", 16
        elif name == "q85":
            label = "q85" if main == "imagenet_dev" else f"{main}_q85"
            sources, batch_size = _reencode(files, label), 64
        else:
            sources, label, batch_size = files, main, 64
        if not sources:
            print(f"data set {name}: not there, left out")
            continue
        root = _link_tree(label, sources, WANTED_IMAGES)
        pixels = []
        for source in sources:
            with Image.open(source) as image:
                pixels.append(image.width * image.height)
        megapixels = sum(pixels) / len(sources) / 1e6
        kilobytes = sum(f.stat().st_size for f in sources) / len(sources) / 1e3
        about = f"{len(sources)} JPEG files, mean {megapixels:.2f} MP, {kilobytes:.0f} kB"
        found.append(Dataset(label, root, about, batch_size))
    return found


def pixel_tree() -> Path:
    """The fixed list of images on which pixels are compared."""
    name, files = _main_files()
    step = max(1, len(files) // PIXEL_IMAGES)
    chosen = files[::step][:PIXEL_IMAGES]
    return _link_tree(f"{name}-pixels", chosen, 1)

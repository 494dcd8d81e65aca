"""Compares the batches of each decoder with the oracle's.

    python -m bench.gpu.exactness [--device emulated] [--images DIR] [--hard DIR] [--out FILE.json]

Compares the pixels of the files that nvJPEG takes, without a resize, so differences are grey levels. Files that Pillow
refuses are skipped. `made`: photographs and noise, saved with all relevant qualities, samplings and sizes.
"""

from __future__ import annotations

import argparse
import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from bench.datasets import PHOTOS
from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._engine import destination

EDGE = 128  # of the crop that is compared
FEW = 500  # files: the oracle makes them one by one
MOST_BYTES = 500_000  # of a file: Pillow takes a second for a few million pixels
DECODERS = ("cpu", "hardware", "cuda")


def made() -> list[bytes]:
    """Photographs and noise as JPEG files of many qualities, samplings and sizes."""
    random = np.random.default_rng(0)
    pictures = [Image.open(path).convert("RGB") for path in sorted(PHOTOS.rglob("*.jpg"))[:4]]
    pictures = [picture.resize((300, 220)) for picture in pictures]
    pictures += [Image.fromarray(random.integers(0, 256, (200, 264, 3), np.uint8))]
    files = []

    def add(picture: Image.Image, **options: Any) -> None:
        out = io.BytesIO()
        picture.save(out, "JPEG", **options)
        files.append(out.getvalue())

    for picture in pictures:
        for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
            for quality in (1, 5, 10, 25, 50, 75, 85, 90, 95, 98, 100):
                add(picture, quality=quality, subsampling=subsampling)
            for edge in range(128, 164, 3):
                add(picture.resize((edge, 291 - edge)), quality=90, subsampling=subsampling)
        for quality in (1, 50, 90, 100):
            add(picture.convert("L"), quality=quality)
        add(picture, quality=90, optimize=True)
        add(picture, quality=90, restart_marker_blocks=7)
    return files


def corpora(images: Path | None, hard: Path | None) -> dict[str, list[bytes]]:
    """The files of each corpus, by name."""
    found: dict[str, list[bytes]] = {}
    for name, folder in (("images", images or PHOTOS), ("hard", hard)):
        if folder is not None:
            paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size < MOST_BYTES)
            found[name] = [data for data in (path.read_bytes() for path in paths) if taken(data)]
    return {"made": made()} | found


def taken(data: bytes) -> bool:
    """Whether headrace sends the file to nvJPEG."""
    try:
        return destination.require_gpu().route(data) is None
    except ValueError:  # not a JPEG
        return False


def reference(data: EncodedImages, options: dict[str, Any]) -> dict[int, torch.Tensor]:
    """The oracle's images by number; for more than FEW files those of the CPU path, whose equality the tests check."""
    loader = DataLoader(data, 64, **options)
    batches = loader.reference() if len(data) <= FEW else loader
    return {label: image for images, labels in batches for label, image in zip(labels.tolist(), images, strict=True)}


def compare(loader: DataLoader[Any], exact: dict[int, torch.Tensor]) -> dict[str, Any]:
    """The differences between an epoch of the loader and the oracle's images, in grey levels."""
    seen: set[int] = set()
    differing, greatest, total = [], 0, 0.0
    for images, labels in loader:
        for label, image in zip(labels.tolist(), images.cpu(), strict=True):
            seen.add(label)
            if label not in exact:  # Pillow refuses the file
                continue
            off = (image.int() - exact[label].int()).abs()
            if off.any():
                differing.append(label)
                greatest, total = max(greatest, int(off.max())), total + float(off.sum())
    assert loader._engine is not None
    stages = {stage: items for stage, items, _ in loader._engine.stages()}
    return {
        "images": len(exact),
        "missing": len(set(exact) - seen),
        "refused_by_pillow_alone": len(seen - set(exact)),
        "decoded_by_the_gpu": stages.get("device decode", 0),
        "differing_images": len(differing),
        "first_differing": differing[:20],
        "greatest": greatest,
        "mean": total / max(1, len(exact) * 3 * EDGE * EDGE),
    }


def run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Compares every corpus with every decoder."""
    recipe = T.Compose([T.CenterCrop(EDGE), T.ToImage()])
    for corpus, files in corpora(options.images, options.hard).items():
        data = EncodedImages(files, list(range(len(files))), recipe)
        how: dict[str, Any] = {"num_workers": options.threads, "on_error": "skip", "max_errors": len(files)}
        how["persistent_workers"] = True  # keeps the engine, whose counts are read
        exact = reference(data, how)
        for decoder in DECODERS:
            row: dict[str, Any] = {"corpus": corpus, "decoder": decoder, "files": len(files)}
            try:
                yield row | compare(DataLoader(data, 64, device=options.device, decoder=decoder, **how), exact)
            except RuntimeError as error:
                yield row | {"failed": str(error)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.exactness", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--hard", type=Path, metavar="DIR")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # about skipped samples, and Pillow's about damaged files
    Image.MAX_IMAGE_PIXELS = None
    destination.require_gpu()
    rows = []
    for row in run(options):
        rows.append(row)
        print(json.dumps(row), flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

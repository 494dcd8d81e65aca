"""The ceiling: libjpeg-turbo decodes only the crops, in a native loop, without a loader or tensors.

The crops have the distribution of the train recipe. For the eval recipe they are the pixels under the filter
of Resize(256) + CenterCrop(224). The first crops are compared with Pillow's, byte for byte.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.contenders._common import SHORTER_SIDE, SIZE, Job, Unsupported, run

if TYPE_CHECKING:
    import torch

SOURCE = Path(__file__).parents[1] / "ceiling" / "ceiling.cpp"
CACHE = Path(__file__).parents[2] / "build" / "bench-cache"
FLAGS = ("-O3", "-std=c++17", "-pthread")
CROPS = 4096
CHECKED = 64


def program() -> Path:
    """The program, built by one compiler command whenever the source has changed."""
    binary = CACHE / f"ceiling-{sha256(SOURCE.read_bytes()).hexdigest()[:12]}"
    if not binary.exists():
        compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            raise Unsupported("no C++ compiler found")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [compiler, *FLAGS, str(SOURCE), "-o", str(binary), "-ljpeg"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unsupported(f"not built, libjpeg-turbo's headers may be missing: {done.stderr[:300]}")
    return binary


def _eval_box(width: int, height: int) -> tuple[int, int, int, int]:
    """x, y, w, h of the source pixels that reach the 224x224 in the middle of the image resized to 256."""
    short, long = sorted((width, height))
    resized = {short: SHORTER_SIDE, long: int(SHORTER_SIDE * long / short)}

    def span(size: int) -> tuple[int, int]:
        scale = size / resized[size]
        first = round((resized[size] - SIZE) / 2)
        support = max(scale, 1.0)
        start = max(0, int((first + 0.5) * scale - support + 0.5))
        stop = min(size, int((first + SIZE - 0.5) * scale + support + 0.5))
        return start, stop - start

    (x, w), (y, h) = span(width), span(height)
    return x, y, w, h


def crops(job: Job) -> Path:
    """The list of crops that the program reads, made once with a fixed seed."""
    import torch
    from PIL import Image
    from torchvision.transforms import RandomResizedCrop

    def write(out: Path) -> None:
        torch.manual_seed(0)
        files = job.files()
        lines = []
        for _ in range(math.ceil(CROPS / len(files))):
            for k in torch.randperm(len(files)).tolist() if job.shuffle else range(len(files)):
                with Image.open(files[k]) as image:  # reads the header only
                    if job.recipe == "train":
                        y, x, h, w = RandomResizedCrop.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3))
                    else:
                        x, y, w, h = _eval_box(*image.size)
                lines.append(f"{files[k]} {x} {y} {w} {h}\n")
        out.write_text("".join(lines[:CROPS]))

    return job.derived(f"-{job.recipe}.crops", write)


def _pillow_checksum(listing: Path, count: int) -> int:
    from PIL import Image

    checksum = 1
    for line in listing.read_text().splitlines()[:count]:
        path, *box = line.rsplit(" ", 4)
        x, y, w, h = map(int, box)
        with Image.open(path) as image:
            checksum = zlib.adler32(image.convert("RGB").crop((x, y, x + w, y + h)).tobytes(), checksum)
    return checksum


def prepare(job: Job) -> Path:
    program()
    return crops(job)


def no_batches(_job: Job) -> Iterator[torch.Tensor]:
    yield from ()


def measure(_batches: Iterator[torch.Tensor], job: Job, seconds: float) -> dict[str, Any]:
    listing = crops(job)
    command = [str(program()), str(listing), str(job.cores), str(seconds), str(CHECKED)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line: dict[str, Any] = json.loads(done.stdout)
    line["equal_to_pillow"] = line.pop("adler32") == _pillow_checksum(listing, line.pop("checked"))
    return line


if __name__ == "__main__":
    run(
        "ceiling",
        modules=["torchvision", "PIL"],
        packages=["torchvision", "pillow"],
        batches=no_batches,
        prepare=prepare,
        measure=measure,
    )

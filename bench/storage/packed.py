"""Compares the training recipe on JPEGs with the same JPEGs after `pack_jpeg`, and with entry points.

    python -m bench.storage.packed [--images DIR] [--rounds N] [--out FILE]

Three loaders over the same images in memory, on one native thread: as they are; rewritten without loss, with a restart
marker a row of MCUs; and as they are, with entry points that earlier epochs have learned. Their batches must be equal.
Then they take turns, an epoch each, with the same draws. The figures are ratios of CPU seconds of the process, which
other processes disturb less than wall time: the median and the range over the rounds. Beside them stands the share of
MCUs whose codes are read, over drawn crops.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

import headrace
from bench import datasets
from bench.contenders._common import import_torchvision, torchvision_transform
from headrace._base.native import core

BATCH, LIMIT, CROPS = 32, 64 << 20, 50
NAMES = ("as they are", "packed", "entry points")


def packed(images: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The images that can be rewritten, before and after."""
    before, after = [], []
    for data in images:
        try:
            after.append(core.pack_jpeg(data))
        except core.NeedsPillow:
            continue
        before.append(data)
    return before, after


def shares(images: list[bytes]) -> tuple[float, float]:
    """The share of MCUs read by a decoder from the top down to the crop, and by one that enters at its rows."""
    from torchvision.transforms import RandomResizedCrop

    above = entered = total = 0.0
    for data in images:
        header = core.jpeg_header(data)
        single = len(header["components"]) == 1
        wide, high = (8 if single else 8 * max(c[k] for c in header["components"]) for k in (1, 2))
        width, height = header["width"], header["height"]
        columns, rows = -(-width // wide), -(-height // high)
        for _ in range(CROPS):
            top, left, tall, broad = RandomResizedCrop.get_params(
                torch.empty(1, height, width), [0.08, 1.0], [3 / 4, 4 / 3]
            )
            right = min(left + broad, width - 1) // wide
            last = min(top + tall, height - 1) // high
            above += (last * columns + right + 1) / (rows * columns)
            entered += (last - max(top - 1, 0) // high + 1) * (right + 1) / (rows * columns)
            total += 1
    return above / total, entered / total


def epoch(loader: headrace.DataLoader, number: int) -> list[torch.Tensor]:
    loader.set_epoch(number)
    return [images.clone() for images, _ in loader]


def seconds(loader: headrace.DataLoader, number: int) -> float:
    """CPU seconds of an epoch."""
    loader.set_epoch(number)
    begin = time.process_time()
    for _ in loader:
        pass
    return time.process_time() - begin


def measure(images: list[bytes], rounds: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    import_torchvision()
    before, after = packed(images)
    transform = torchvision_transform("train")

    def loader(data: list[bytes], **options: Any) -> headrace.DataLoader:
        blobs = headrace.EncodedImages(data, [0] * len(data), transform)
        return headrace.DataLoader(blobs, BATCH, True, num_workers=1, seed=0, **options)

    points = headrace.EntryPoints(LIMIT)
    contenders = [loader(before), loader(after), loader(before, entry_points=points)]
    for number in range(4):  # all pages and slots are touched; most rows are learned
        made = [epoch(one, number) for one in contenders]
        if not all(torch.equal(a, b) for other in made[1:] for a, b in zip(made[0], other, strict=True)):
            sys.exit("the batches differ")
    known = points.counts()
    took: list[list[float]] = []
    for number in range(rounds):
        turn = [0.0] * len(contenders)
        for i in range(len(contenders)):
            now = (number + i) % len(contenders)
            turn[now] = seconds(contenders[now], 10 + number) / len(before)
        took.append(turn)
    above, entered = shares(before)
    return {
        "images": len(images),
        "rewritten": len(before),
        "bytes": [sum(map(len, before)), sum(map(len, after))],
        "entry_point_bytes": known.bytes / max(known.images, 1),
        "mcus_read": {"from the top": above, "from the crop's rows": entered},
        "cpu_seconds": took,
    }


def shown(figures: dict[str, Any]) -> str:
    took = figures["cpu_seconds"]
    size = figures["bytes"][1] / figures["bytes"][0]
    lines = [
        f"{figures['rewritten']} of {figures['images']} images; packed: {size:.3f} of the bytes; entry points: "
        f"{figures['entry_point_bytes']:.0f} bytes an image",
        ", ".join(f"MCUs read {name}: {share:.0%}" for name, share in figures["mcus_read"].items()),
    ]
    for i, name in enumerate(NAMES):
        ratios = [turn[0] / turn[i] for turn in took]
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        lines.append(f"{name}: {1e3 * statistics.median(t[i] for t in took):.3f} ms of CPU an image, speed {spread}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.storage.packed", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, default=datasets.data_folder() / "imagenet_dev")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    files = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    figures = measure([path.read_bytes() for path in files], options.rounds)
    print(shown(figures))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

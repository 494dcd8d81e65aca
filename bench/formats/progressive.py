"""Compares headrace with torch's DataLoader on progressive JPEGs.

    python -m bench.formats.progressive [--images DIR] [--rounds N] [--recipe train|eval] [--out FILE]

The files of an ImageFolder are rewritten without loss by libjpeg-turbo's `jpegtran -progressive` in a temporary folder.
headrace's batches of them must equal the oracle's. Then three loaders take turns, an epoch each: torch's without worker
processes, headrace on the progressive files with one native thread, and headrace on the files as they were. The figures
are CPU seconds of the process, which other processes disturb less than wall time: the median and the range over the
rounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

import headrace
from bench import datasets
from bench.contenders._common import import_torchvision, torchvision_transform

BATCH = 32
NAMES = ("torch", "headrace", "headrace, files as they were")


def rewrite(source: Path, target: Path) -> int:
    """Makes progressive copies; returns their number."""
    jpegtran = shutil.which("jpegtran")
    if jpegtran is None:
        sys.exit("bench.formats.progressive needs jpegtran: apt-get install libjpeg-turbo-progs")
    files = sorted(path for path in source.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    for path in files:
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([jpegtran, "-copy", "all", "-progressive", "-outfile", str(to), str(path)], check=True)
    return len(files)


def seconds(loader: Iterable[Any]) -> float:
    """CPU seconds of an epoch."""
    begin = time.process_time()
    for _ in loader:
        pass
    return time.process_time() - begin


def measure(source: Path, rounds: int, recipe: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    import_torchvision()
    from torchvision.datasets import ImageFolder

    transform = torchvision_transform(recipe)
    with tempfile.TemporaryDirectory() as folder:
        images = rewrite(source, Path(folder))
        shuffle = recipe == "train"
        ours = headrace.DataLoader(ImageFolder(folder, transform), BATCH, shuffle, num_workers=1, seed=0)
        loaders = [
            torch.utils.data.DataLoader(ImageFolder(folder, transform), BATCH, shuffle),
            ours,
            headrace.DataLoader(ImageFolder(str(source), transform), BATCH, shuffle, num_workers=1, seed=0),
        ]
        ours.verify(n=-(-images // BATCH))
        for loader in loaders:
            seconds(loader)
        took = []
        for number in range(rounds):
            turn = [0.0] * len(loaders)
            for i in range(len(loaders)):
                now = (number + i) % len(loaders)
                turn[now] = seconds(loaders[now]) / images
            took.append(turn)
    return {"images": images, "recipe": recipe, "names": NAMES, "cpu_seconds": took}


def shown(figures: dict[str, Any]) -> str:
    lines = [f"{figures['images']} images, {figures['recipe']}"]
    for i, name in enumerate(NAMES):
        ratios = [turn[0] / turn[i] for turn in figures["cpu_seconds"]]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        took = statistics.median(turn[i] for turn in figures["cpu_seconds"])
        lines.append(f"{name}: {1e3 * took:.3f} ms of CPU an image, {spread} times torch's speed")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.formats.progressive", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, default=datasets.data_folder() / "imagenet_dev")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--recipe", choices=["train", "eval"], default="train")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    figures = measure(options.images, options.rounds, options.recipe)
    print(shown(figures))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Times the fused kernel and the decoders alone: with CUDA events, a cold cache, and a copy in the same run as a scale.

python -m bench.gpu.kernels [--device emulated] [--images DIR] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.contenders._common import MEAN, STD
from bench.gpu import images
from bench.gpu.turns import spread
from headrace import transforms
from headrace._base.native import core
from headrace._engine import destination
from headrace._recipe.arithmetic import boxes, pillow_rule
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.byte_table import Pointwise, make_byte_table
from headrace._recipe.steps.steps import FILTERS
from headrace.ops.device_ops import Job, Plan

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def plans(files: list[bytes], size: int, seed: int = 0) -> list[Plan]:
    """A random crop of each file, as RandomResizedCrop(size) draws it, and a flip of every second one."""
    random = np.random.default_rng(seed)
    made = []
    for i, data in enumerate(files):
        header = core.jpeg_header(data)
        width, height = header["width"], header["height"]
        areas, ratios = random.uniform(0.08, 1, 10), np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3), 10))
        tries = zip(areas.tolist(), ratios.tolist(), strict=True)
        place = boxes.position_from(random.random())
        top, left, h, w = boxes.random_resized_crop(height, width, (3 / 4, 4 / 3), tries, place, place)
        first = pillow_rule.vertical_first(h, w, size, size)
        made.append(Job(left, top, w, h, first, i % 2 == 0).plan(size, size, FILTERS["bilinear"]))
    return made


def fuse(
    where: destination.Destination, files: list[bytes], size: int, repeats: int, copy_gb_s: float
) -> list[dict[str, Any]]:
    """The fused kernel over a batch, in each dtype and layout."""
    module = destination.require_gpu()
    crops, rows = plans(files, size), []
    for name, dtype in DTYPES.items():
        steps = (lambda image: image.to(torch.float32).div(255), transforms.Normalize(MEAN, STD))
        lut = make_byte_table(Pointwise(steps, dtype), 3).contiguous().view(torch.uint8).numpy()
        for layout in Layout:
            ms, moved = module.time_fuse(where.kind, where.device.index or 0, files, crops, lut, layout.value, repeats)
            took = spread(ms)
            gb_s = moved / took["median"] / 1e6
            rows.append(
                {
                    "part": "fuse",
                    "what": f"fused kernel, {len(files)} crops to {size}, {name}, {layout.value}",
                    "ms": took,
                    "images_per_s": spread([1e3 * len(files) / one for one in ms]),
                    "gb_per_s": gb_s,
                    "of_copy": gb_s / copy_gb_s,
                }
            )
    return rows


#: Threads that call nvJPEG, and images per call. CUDA cores take 0.1 s for any call, so their calls are large.
WAYS = {
    "hardware": [(lanes, group) for lanes in (1, 2, 3) for group in (14, 28, 63, 126)],
    "cuda": [(2, 64), (4, 64), (8, 64), (16, 64), (4, 256), (8, 256)],
}
EMULATED_WAYS = {"hardware": [(1, 8), (2, 8)], "cuda": [(2, 8)]}


def decoders(where: destination.Destination, files: list[bytes], repeats: int) -> Iterator[dict[str, Any]]:
    """nvJPEG alone, from whole images to planes, with calls of several sizes on several threads."""
    module = destination.require_gpu()
    ways = EMULATED_WAYS if where.kind == destination.EMULATED else WAYS
    for decoder in ways:
        for lanes, group in ways[decoder]:
            what = {"part": "decoders", "what": f"nvJPEG {decoder}, {lanes} threads, {group} images a call"}
            try:
                seconds = module.time_decoders(
                    where.kind,
                    where.device.index or 0,
                    decoder,
                    destination.nvjpeg_candidates(),
                    files,
                    lanes,
                    group,
                    repeats + 1,
                )[1:]
            except RuntimeError as error:
                yield what | {"failed": str(error)}
                break
            if min(seconds) <= 0:
                yield what | {"failed": "it refused a file"}
                continue
            yield what | {"images_per_s": spread([len(files) / one for one in seconds])}


def run(device: str, folder: Path | None, batch: int, repeats: int, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the figures one by one."""
    where = destination.resolve_destination(device, "cpu")
    if where.way != "fused":
        raise SystemExit(where.why)
    module = destination.require_gpu()
    files = images.engine_files(images.files(folder, 4 * batch))
    small = 2**24 if where.kind == destination.EMULATED else 2**31
    copied = spread(module.time_copy(where.kind, where.device.index or 0, small, repeats))
    copy_gb_s = 2 * small / copied["median"] / 1e6
    yield {"part": "copy", "what": "copy within the device, read and written", "ms": copied, "gb_per_s": copy_gb_s}
    if "fuse" in parts:
        yield from fuse(where, files[:batch], 224, repeats, copy_gb_s)
    if "decoders" in parts:
        yield from decoders(where, files, min(repeats, 3))


def line(row: dict[str, Any]) -> str:
    """A figure as text."""
    if "failed" in row:
        return f"{row['what']}: {row['failed']}"
    said = [row["what"] + ":"]
    if "images_per_s" in row:
        rate = row["images_per_s"]
        said.append(f"{rate['median']:,.0f} images/s ({rate['least']:,.0f} to {rate['greatest']:,.0f})")
    if "gb_per_s" in row:
        said.append(f"{row['ms']['median']:.4f} ms, {row['gb_per_s']:,.0f} GB/s")
    if "of_copy" in row:
        said.append(f"{row['of_copy']:.2f} of the copy's")
    return " ".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--parts", nargs="+", choices=("fuse", "decoders"), default=("fuse", "decoders"))
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args()
    result: dict[str, list[dict[str, Any]]] = {"copy": [], "fuse": [], "decoders": []}
    for row in run(args.device, args.images, args.batch, args.repeats, args.parts):
        result[row["part"]].append(row)
        print(line(row), flush=True)
        if args.out:
            args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Times the fused kernel and the decoders alone: CUDA events, a cold cache, and a copy in the same run to compare with.

python -m bench.gpu.kernels [--device emulated] [--images DIR] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.contenders._common import MEAN, STD
from bench.gpu import images
from bench.gpu.turns import spread
from headrace import transforms
from headrace.base.native import core
from headrace.engine import destination
from headrace.engine.layout import Layout
from headrace.ops.device_ops import Job, Plan
from headrace.pixels import boxes, pillow_rule
from headrace.recipe.byte_table import Pointwise, table
from headrace.recipe.steps import FILTERS

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def plans(files: list[bytes], size: int, seed: int = 0) -> list[Plan]:
    """A random crop of each file, as RandomResizedCrop(size) draws it, and a flip of every second one."""
    random = np.random.default_rng(seed)
    vertical_first = pillow_rule.ORDERS[pillow_rule.pass_order()]
    made = []
    for i, data in enumerate(files):
        header = core.jpeg_header(data)
        width, height = header["width"], header["height"]
        areas, ratios = random.uniform(0.08, 1, 10), np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3), 10))
        tries = zip(areas.tolist(), ratios.tolist(), strict=True)
        place = boxes.place_at(random.random())
        top, left, h, w = boxes.random_resized_crop(height, width, (3 / 4, 4 / 3), tries, place, place)
        first = h != size and w != size and vertical_first(h, w, size, size)
        made.append(Job(left, top, w, h, bool(first), i % 2 == 0).plan(size, size, FILTERS["bilinear"]))
    return made


def fuse(
    where: destination.Destination, files: list[bytes], size: int, repeats: int, copy_gb_s: float
) -> list[dict[str, Any]]:
    """The fused kernel over a batch, in each dtype and layout."""
    module = destination.required()
    crops, rows = plans(files, size), []
    for name, dtype in DTYPES.items():
        steps = (lambda image: image.to(torch.float32).div(255), transforms.Normalize(MEAN, STD))
        lut = table(Pointwise(steps, dtype), 3).contiguous().view(torch.uint8).numpy()
        for layout in Layout:
            ms, moved = module.time_fuse(where.kind, where.device.index or 0, files, crops, lut, layout.value, repeats)
            took = spread(ms)
            gb_s = moved / took["median"] / 1e6
            rows.append(
                {
                    "what": f"fused kernel, {len(files)} crops to {size}, {name}, {layout.value}",
                    "ms": took,
                    "images_per_s": 1e3 * len(files) / took["median"],
                    "gb_per_s": gb_s,
                    "of_copy": gb_s / copy_gb_s,
                }
            )
    return rows


def decoders(
    where: destination.Destination, files: list[bytes], repeats: int, groups: list[int]
) -> list[dict[str, Any]]:
    """nvJPEG alone, whole images to planes, in calls of several sizes on one and two threads."""
    module = destination.required()
    rows = []
    for decoder in ("hardware", "cuda"):
        for lanes in (1, 2, 3):
            for group in groups:
                what = {"what": f"nvJPEG {decoder}, {lanes} threads, {group} images a call"}
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
                    rows.append(what | {"failed": str(error)})
                    break
                if min(seconds) <= 0:
                    rows.append(what | {"failed": "it refused a file"})
                    continue
                rows.append(what | {"images_per_s": spread([len(files) / one for one in seconds])})
    return rows


def run(device: str, folder: Path | None, batch: int, repeats: int) -> dict[str, Any]:
    """All of it."""
    where = destination.resolve(device, "cpu")
    if where.way != "fused":
        raise SystemExit(where.why)
    module = destination.required()
    files = images.engine_files(images.files(folder, 4 * batch))
    small = 2**24 if where.kind == destination.EMULATED else 2**31
    copied = spread(module.time_copy(where.kind, where.device.index or 0, small, repeats))
    copy_gb_s = 2 * small / copied["median"] / 1e6
    groups = [8] if where.kind == destination.EMULATED else [32, 63, 126, 252]  # 7 JPEG engines on an H200
    return {
        "copy": {"bytes": small, "ms": copied, "gb_per_s": copy_gb_s},
        "fuse": fuse(where, files[:batch], 224, repeats, copy_gb_s),
        "decoders": decoders(where, files, min(repeats, 3), groups),
    }


def markdown(result: dict[str, Any]) -> str:
    """A table for people."""
    lines = [f"copy within the device: {result['copy']['gb_per_s']:,.0f} GB/s (read and written)", ""]
    lines += ["| what | images/s | GB/s | of the copy |", "|---|---|---|---|"]
    for row in result["fuse"]:
        lines.append(f"| {row['what']} | {row['images_per_s']:,.0f} | {row['gb_per_s']:,.0f} | {row['of_copy']:.2f} |")
    for row in result["decoders"]:
        rate = row.get("images_per_s")
        said = f"{rate['median']:,.0f} ({rate['least']:,.0f}-{rate['greatest']:,.0f})" if rate else row["failed"]
        lines.append(f"| {row['what']} | {said} | | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args()
    result = run(args.device, args.images, args.batch, args.repeats)
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(markdown(result))


if __name__ == "__main__":
    main()

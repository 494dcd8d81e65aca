"""Fills the figures of `bench.code` in docs/benchmarks.md, docs/from-your-code.md and bench/results/code.md.

They are those of five runs, each of a part of the programs: see `FILES`.

    python -m bench.code.page

A row of a page is found by the first words of its first cell, or by all of them, where they end with a bar here; its
last two cells are the ratios on one core and on two.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "bench" / "results"
#: Where figures are.
FILES = ("code.json", "doors.json", "pngs.json", "processors.json", "kinds.json", "videos.json")
#: page -> the first words of a row -> the program that it is about
ROWS = {
    "docs/benchmarks.md": {
        "own dataset, RandomResizedCrop": "train",
        "the same with ColorJitter": "ColorJitter",
        "the same with RandAugment": "RandAugment",
        "DINOv2's 2 + 8 views": "DINOv2's recipe",
        "own dataset, Resize": "eval",
        "two views |": "two views",
        "image and PNG mask |": "image and mask",
        "image and PNG mask, [`Fields`]": "image and mask, as Fields",
        "tar file, CLIP": "tar, CLIP",
        "MixUp, CutMix in a collate_fn |": "MixUp, CutMix",
    },
    "docs/from-your-code.md": {
        "a dataset of your own (paths": "train",
        "the same with `Resize`": "eval",
        "two views of an image (SimCLR": "two views",
        "2 + 8 views (DINO)": "DINO's ten views",
        "an image and its PNG mask, ": "image and mask",
        "an image and its PNG mask as [": "image and mask, as Fields",
        "a table whose rows": "table",
        "an `IterableDataset` over a tar file": "tar, CLIP",
        "MixUp and CutMix in a `collate_fn` (": "MixUp, CutMix",
        "the first with `ColorJitter`": "ColorJitter",
        "the first with RandAugment": "RandAugment",
        "SimCLR's recipe": "SimCLR's recipe",
        "DINOv2's recipe": "DINOv2's recipe",
        "a filter of Pillow's after": "Python step",
        "a filter of Pillow's in a": "Python step, in threads",
        "NumPy steps on": "numpy",
        "`torchvision.io.decode_image`, `read_image` or": "decode_image, v2",
        "the same with v2's": "decode_image, v2, eval",
        "the first with torchcodec's": "torchcodec, v2",
        "the first with `Image.open` and `ToImage`": "ToImage, v2",
        "torchcodec's `VideoDecoder`, 16 frames": "VideoDecoder, v2",
        "the first, cropped alone": "VideoDecoder",
        "decord's `VideoReader` as VideoMAE": "decord, v2",
        "the same clips in VP9": "VideoDecoder, VP9",
        "the same clips in AVI": "VideoDecoder, AVI",
        "one frame of the first row": "VideoDecoder, a frame",
        "decord's `VideoReader` without": "decord's threads, v2",
        "`cv2.imread` or `imdecode`, `cv2.resize`": "cv2.imread, cv2.resize",
        "`cv2.imread`, albumentations": "cv2.imread, albumentations",
        "the second as `headrace.ImageFiles`": "albumentations, in threads",
        "a dataset of PNG photographs": "PNG",
        "the same as `headrace.ImageFiles`": "PNG, in threads",
        "the same of palette PNGs": "PNG with a palette",
        "a dataset of WebP photographs": "WebP",
        "these WebPs as": "WebP, in threads",
        "lossless WebPs": "WebP, lossless",
        "depth maps of 16 bits": "depth",
        "the same by `cv2.imread(path": "depth, cv2.imread",
        "a photograph, its depth map": "image, depth and mask",
        "detection: flip": "detection, images",
        "the same after `ToImage`": "detection, tensors",
        "the same with `RandomIoUCrop`": "detection, SSD's crop",
        "the same as [`Fields`](datasets.md#boxes)": "detection, as Fields",
        "encoded images in memory": "encoded images in memory",
        "webdataset's `torchrgb8`": "webdataset's torchrgb8, v2",
        "clips of eight": "clips of JPEG frames",
        "an image and its PNG mask as `tv_tensors": "v2 with masks",
        "Pillow's `resize` to at most": "resize to 448, crop",
        "`ImageOps.exif_transpose`": "exif_transpose, thumbnail, pad",
        "`np.array(Image.open(path))`, v2": "np.array, v2",
        "this array, `torch": "np.array, interpolate",
        "`imageio.v3.imread`, v2": "imageio, v2",
        "`skimage.io.imread`, v2": "skimage, v2",
        "VOC's segmentation": "VOC, v2",
        "a stream of Hugging Face's": "stream, batched map",
        "`ImageFolder(loader=...)` that": "ImageFolder(loader=cv2), albumentations",
        "`ImageFolder`, albumentations in": "ImageFolder, albumentations in a lambda",
        "crops in the dataset, kornia's": "kornia in a collate_fn",
        "TIFFs of 16 bits by": "TIFF of 16 bits",
        "arrays of 32 x 32": "small arrays as images",
        "rows of an array in": "rows of an array",
        "`ElasticTransform`": "ElasticTransform",
    },
    "docs/videos.md": {
        "a clip by torchcodec's": "Videos",
        "the same with `seek_mode": "Videos, approximate",
        "the same by decord": "Videos, decord",
        "two clips of a file": "Videos, two clips",
        "8 frames spread over": "Videos, 8 frames of 60 s",
    },
}
_MEMORY = re.compile(r"took \d\.\d\d to \d\.\d\d times the memory")

Programs = dict[str, dict[str, Any]]


def figures() -> Programs:
    """What was measured: "program, cores" -> figures."""
    made: Programs = {}
    for name in FILES:
        made |= json.loads((RESULTS / name).read_text())["programs"]
    return made


def ratio(found: dict[str, Any]) -> str:
    """Torch's seconds divided by headrace's: median, minimum and maximum of the rounds."""
    ratios = [a / b for a, b in found["seconds"]]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def line(name: str, cores: int, found: dict[str, Any]) -> str:
    """One line of the table of results."""
    rates = [found["images"] / statistics.median(column) for column in zip(*found["seconds"], strict=True)]
    mib = " / ".join("threads" if size is None else f"{size / 2**20:.0f}" for size in found["memory"])
    return f"| {name} | {cores} | {rates[0]:.0f} | {rates[1]:.0f} | {ratio(found)} | {mib} | {found['opened']} |"


def filled(page: str, rows: dict[str, str], programs: Programs) -> str:
    """Returns a page with the ratios of its rows, and with the range of the memory that the processes took.

    Raises:
        ValueError: a row of `rows` does not stand in the page exactly once.
    """
    for words, program in rows.items():
        one, two = (ratio(programs[f"{program}, {cores}"]) for cores in (1, 2))
        begin = re.escape(words.removesuffix(" |")) + ("" if words.endswith(" |") else ".*?")
        row = re.compile(rf"^(\| {begin})( \| [\d.]+ \([^|]*\)){{2}} \|$", re.MULTILINE)
        page, replaced = row.subn(lambda found, ends=f" | {one} | {two} |": found[1] + ends, page)  # type: ignore[misc]
        if replaced != 1:
            raise ValueError(f"{replaced} rows of the page begin with {words!r}")
    shares = [ours / theirs for theirs, ours in (found["memory"] for found in programs.values()) if theirs and ours]
    return _MEMORY.sub(f"took {min(shares):.2f} to {max(shares):.2f} times the memory", page)


def table(text: str, programs: Programs) -> str:
    """Returns the results' page with the lines of all programs below the head of its table."""
    head = text.index("|---")
    keys = (key.rsplit(", ", 1) for key in programs)
    lines = [line(name, int(cores), found) for (name, cores), found in zip(keys, programs.values(), strict=True)]
    return text[: text.index("\n", head) + 1] + "\n".join(lines) + "\n"


def pages(programs: Programs) -> dict[Path, str]:
    """The text that each page should have."""
    made = {REPOSITORY / name: filled((REPOSITORY / name).read_text(), rows, programs) for name, rows in ROWS.items()}
    results = RESULTS / "code.md"
    return made | {results: table(results.read_text(), programs)}


if __name__ == "__main__":
    for path, text in pages(figures()).items():
        path.write_text(text)

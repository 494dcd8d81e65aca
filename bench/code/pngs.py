"""Programs that read PNG files: photographs, masks, and depth maps of 16 bits; and WebP files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset
from torchvision.transforms import functional as F

from bench.contenders._common import MEAN, SIZE, STD

_REGIONS = 21


def as_photograph(image: Image.Image) -> Image.Image:
    """The photograph itself."""
    return image.convert("RGB")


def as_palette(image: Image.Image) -> Image.Image:
    return image.convert("RGB").quantize(256)


def as_depth(image: Image.Image) -> Image.Image:
    """A map of 16 bits that is smooth with some noise, as sensors' maps are."""
    gray = np.asarray(image.convert("L").reduce(4).resize(image.size), np.uint16)
    noise = np.random.default_rng(gray.size).integers(0, 16, gray.shape, np.uint16)
    return Image.fromarray(gray * 200 + noise)


def as_mask(image: Image.Image) -> Image.Image:
    """Regions without noise, as a palette image."""
    regions = np.random.default_rng(image.width).integers(0, _REGIONS, (8, 8), np.uint8)
    mask = Image.fromarray(regions).resize(image.size, Image.Resampling.NEAREST)
    mask.putpalette([(37 * i) % 256 for i in range(3 * _REGIONS)])
    return mask


def write_pngs(paths: list[Path], folder: Path, kind: Callable[[Image.Image], Image.Image]) -> list[Path]:
    """Returns the paths of PNG files made of the images, one for each different path."""
    return _write_files(paths, folder, "png", kind)


def write_webps(paths: list[Path], folder: Path, **options: Any) -> list[Path]:
    """Returns the paths of WebP files made of the images, one for each different path.

    `options` are those of Pillow's `save`.
    """
    return _write_files(paths, folder, "webp", as_photograph, **options)


def _write_files(
    paths: list[Path], folder: Path, ending: str, kind: Callable[[Image.Image], Image.Image], **options: Any
) -> list[Path]:
    made: dict[Path, Path] = {}
    for number, path in enumerate(paths):
        if path not in made:
            made[path] = folder / f"{kind.__name__}-{number}.{ending}"
            with Image.open(path) as image:
                kind(image).save(made[path], **options)
    return [made[path] for path in paths]


class Depth(Dataset[Any]):
    """Depth maps alone, as floats in metres."""

    def __init__(self, paths: list[Path], folder: Path) -> None:
        self.depths = write_pngs(paths, folder, as_depth)

    def __len__(self) -> int:
        return len(self.depths)

    def __getitem__(self, index: int) -> Any:
        depth = torch.from_numpy(np.array(Image.open(self.depths[index])).astype(np.float32) / 1000)
        return nn.functional.interpolate(depth[None, None], (SIZE, SIZE))[0], index


class DepthByOpenCV(Depth):
    """The same, read by OpenCV."""

    def __getitem__(self, index: int) -> Any:
        import cv2

        read: Any = cv2.imread
        values = read(str(self.depths[index]), cv2.IMREAD_UNCHANGED).astype(np.float32) / 1000
        return nn.functional.interpolate(torch.from_numpy(values)[None, None], (SIZE, SIZE))[0], index


class Scenes(Dataset[Any]):
    """Photographs (JPEG) with depth maps of 16 bits and masks (both PNG), with the same crop and flip."""

    def __init__(self, paths: list[Path], folder: Path) -> None:
        self.paths = paths
        self.depths, self.masks = (write_pngs(paths, folder, kind) for kind in (as_depth, as_mask))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        depth, mask = Image.open(self.depths[index]), Image.open(self.masks[index])
        box = _draw_box(image.size)
        image = F.resized_crop(image, *box, [SIZE, SIZE])
        depth = F.resized_crop(depth, *box, [SIZE, SIZE], F.InterpolationMode.NEAREST)
        mask = F.resized_crop(mask, *box, [SIZE, SIZE], F.InterpolationMode.NEAREST)
        if random.random() < 0.5:
            image, depth, mask = F.hflip(image), F.hflip(depth), F.hflip(mask)
        metres = torch.from_numpy(np.array(depth).astype(np.float32) / 1000)
        return F.normalize(F.to_tensor(image), MEAN, STD), metres, torch.from_numpy(np.array(mask, np.int64))


def _draw_box(size: tuple[int, int]) -> tuple[int, int, int, int]:
    width, height = size
    edge = int(min(width, height) * random.uniform(0.5, 1))
    return random.randint(0, height - edge), random.randint(0, width - edge), edge, edge

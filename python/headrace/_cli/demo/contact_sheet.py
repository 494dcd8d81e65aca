"""Draws a batch as a contact sheet: a grid of its images, as the network sees them, with their labels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont

from headrace._cli import recipes
from headrace.datasets.sources import ImageFolder
from headrace.loader import DataLoader

_PAPER, _INK, _FAINT = (250, 249, 246), (34, 34, 34), (120, 118, 112)
_GAP, _MARGIN, _CAPTION, _HEAD = 14, 36, 24, 64  # pixels


def save_sheet(root: Path, path: Path, workers: int, columns: int = 8, rows: int = 4) -> None:
    """Saves one augmented batch of the training recipe as a PNG."""
    dataset = ImageFolder(root, recipes.train(192))
    loader = DataLoader(dataset, batch_size=columns * rows, shuffle=True, num_workers=workers, seed=64)
    images, labels = next(iter(loader))
    loader.close()
    title = f"One batch of headrace: {len(images)} of {len(dataset)} files"
    note = "RandomResizedCrop(192), RandomHorizontalFlip, Normalize; shown denormalised"
    draw_sheet(recipes.denormalise(images), [dataset.classes[int(i)] for i in labels], columns, title, note).save(path)


def draw_sheet(images: torch.Tensor, captions: Sequence[str], columns: int, title: str, note: str) -> Image.Image:
    """Returns a grid of images with captions below them.

    Args:
        images: uint8 (n, 3, H, W).
        captions: n strings.
    """
    count, _, height, width = images.shape
    rows = -(-count // columns)
    sheet_width = 2 * _MARGIN + columns * width + (columns - 1) * _GAP
    sheet_height = _HEAD + _MARGIN + rows * (height + _CAPTION) + (rows - 1) * _GAP
    sheet = Image.new("RGB", (sheet_width, sheet_height), _PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((_MARGIN, _HEAD / 2), title, _INK, _font(26), anchor="lm")
    pen.text((sheet_width - _MARGIN, _HEAD / 2), note, _FAINT, _font(15), anchor="rm")
    for i, caption in enumerate(captions):
        left = _MARGIN + i % columns * (width + _GAP)
        top = _HEAD + i // columns * (height + _CAPTION + _GAP)
        sheet.paste(Image.fromarray(images[i].permute(1, 2, 0).contiguous().numpy()), (left, top))
        pen.text((left, top + height + _CAPTION / 2), caption, _FAINT, _font(15), anchor="lm")
    return sheet


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)

"""A batch's images as pictures for the page: the bytes that the network's values were made from."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO

import torch
from PIL import Image

from headrace._reports.html.report_data import Picture

_MOST = 24
_EDGE = 160  # pixels: longest edge of a picture


def make_pictures(batch: object, lut: torch.Tensor | None, classes: Sequence[str] | None) -> list[Picture]:
    """Returns the first images of a batch with their labels; none if the batch holds no images.

    Args:
        batch: images, or a list or dict whose first part holds them: (n, C, H, W) or (C, H, W), C is 1 or 3.
        lut: (C, 256), the value of each byte, if the recipe has one. Other values are scaled to their own range.
        classes: names of the labels, if known.
    """
    held = list(batch.values()) if isinstance(batch, dict) else batch
    parts = list(held) if isinstance(held, (list, tuple)) and held else [batch]
    images = parts[0]
    while isinstance(images, (list, tuple)) and len(images):  # views: the first one
        images = images[0]
    if not isinstance(images, torch.Tensor) or images.ndim not in (3, 4):
        return []
    images = images[None] if images.ndim == 3 else images
    if images.shape[1] not in (1, 3) or not images.numel():
        return []
    shown = _as_uint8(images[:_MOST].detach().cpu(), lut)
    captions = _captions(parts[1] if len(parts) > 1 else None, len(shown), classes)
    return [Picture(_data_url(one), caption) for one, caption in zip(shown, captions, strict=True)]


def _as_uint8(images: torch.Tensor, lut: torch.Tensor | None) -> torch.Tensor:
    """Returns images as uint8 (n, C, H, W)."""
    if images.dtype == torch.uint8:
        return images
    values = images.double()
    if lut is not None and lut.shape[0] == images.shape[1]:
        made = torch.empty(images.shape, dtype=torch.uint8)
        for channel, entries in enumerate(lut.double()):
            ordered, order = entries.sort()
            nearest = torch.searchsorted(ordered, values[:, channel].contiguous()).clamp(max=255)
            made[:, channel] = order[nearest].to(torch.uint8)
        return made
    low, high = values.amin((0, 2, 3), keepdim=True), values.amax((0, 2, 3), keepdim=True)
    if float(low.min()) >= 0 and float(high.max()) <= 1:
        low, high = torch.zeros_like(low), torch.ones_like(high)
    return ((values - low) / (high - low).clamp(min=1e-12) * 255).round().clamp(0, 255).to(torch.uint8)


def _captions(labels: object, count: int, classes: Sequence[str] | None) -> list[str]:
    if not isinstance(labels, (torch.Tensor, list, tuple)) or len(labels) < count:
        return [""] * count
    found = []
    for label in labels[:count]:
        value = label.tolist() if isinstance(label, torch.Tensor) else label
        if classes is not None and isinstance(value, int) and 0 <= value < len(classes):
            value = classes[value]
        found.append(str(value)[:40])
    return found


def _data_url(image: torch.Tensor) -> str:
    """Returns one image as a ``data:`` address, smaller if it is large."""
    pixels = image.permute(1, 2, 0).contiguous().numpy()
    picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    picture.thumbnail((_EDGE, _EDGE))
    out = BytesIO()
    picture.save(out, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()

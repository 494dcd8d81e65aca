"""headrace.ops returns the same bytes and floats on every device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headrace._engine import destination as destinations
from headrace.ops import device_ops
from headrace.ops import functions as ops
from places import Place
from support import MEAN, STD, pictures


def test_ops(place: Place, photographs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = [path.read_bytes() for path in photographs[:8]] + [pictures()[3]]  # a PNG
    plain = ops.decode_jpeg(encoded)
    images = ops.decode_jpeg(encoded, device=place.name)
    for ours, theirs in zip(images, plain, strict=True):
        assert ours.device.type == ("cuda" if place.name == "cuda" else "cpu") and torch.equal(ours.cpu(), theirs)
    if place.name == "emulated":  # its tensors are in host memory, so `ops` cannot find their device by itself
        emulation = device_ops.find_ops(destinations.resolve_destination("emulated", "cpu"))
        monkeypatch.setattr(ops, "_find_device_ops", lambda images: emulation if images is not plain else None)
    boxes = [(i, 2 * i, 20 + 4 * i, 90 - 4 * i) for i in range(len(images))]
    options: dict[str, Any] = {"flips": [i % 2 == 0 for i in range(len(images))], "interpolation": "bicubic"}
    for memory_format in (torch.contiguous_format, torch.channels_last):
        options["memory_format"] = memory_format
        expected = ops.resize_normalize(plain, boxes, (64, 48), MEAN, STD, **options)
        ours = ops.resize_normalize(images, boxes, (64, 48), MEAN, STD, **options)
        assert torch.equal(ours.cpu(), expected) and ours.stride() == expected.stride()


def test_boxes_that_are_not_resized(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crop of the output's size takes a path without a resize."""
    images = [torch.randint(0, 256, (3, 70, 90), dtype=torch.uint8) for _ in range(3)]
    options: dict[str, Any] = {"boxes": [(1, 2, 32, 48), (0, 0, 64, 48), (5, 9, 32, 48)], "flips": [True, False, False]}
    expected = ops.resize_normalize(images, size=(32, 48), mean=MEAN, std=STD, **options)
    if place.name == "emulated":
        emulation = device_ops.find_ops(destinations.resolve_destination("emulated", "cpu"))
        monkeypatch.setattr(ops, "_find_device_ops", lambda _: emulation)
    elif place.name == "cuda":
        images = [image.cuda() for image in images]
    ours = ops.resize_normalize(images, size=(32, 48), mean=MEAN, std=STD, **options)
    assert torch.equal(ours.cpu(), expected)
    assert pytest.approx(float(images[0][0, 1, 2]) / 255) == float(ours[0, 0, 0, 47].cpu() * STD[0] + MEAN[0])

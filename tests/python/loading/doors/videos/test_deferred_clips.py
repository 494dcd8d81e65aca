"""Chains of functions on the deferred frames of a video: all that a program can see is torch's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tensor_chains import MEAN, STD, Step, apply_chain, make_step
from test_tensor_chains import CHAINS

from headrace._loading.doors.tensors import pixel_snapshots
from headrace._loading.doors.tensors.deferred_tensor import Deferred
from headrace._loading.doors.videos.deferred_clips import defer_frames
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import Door, ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors", "of_any_size")

DOOR = Door("a test", "a library")
Kind = Callable[[Any], Any]


@pytest.fixture
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_snapshots, "LEAST", 1)


def open_clip(count: int, order: str = "NCHW", height: int = 47, width: int = 61) -> torch.Tensor:
    """Frames as a decoder returns them; deferred where the doors are open."""
    pixels = torch.from_numpy(np.random.default_rng(3).integers(0, 256, (count, height, width, 3), np.uint8))
    return defer_frames(pixels.permute(0, 3, 1, 2) if order == "NCHW" else pixels, order, DOOR)


#: What programs have of a decoder.
KINDS: dict[str, Callable[[], Any]] = {
    "frames": lambda: open_clip(4),
    "video": lambda: tv_tensors.Video(open_clip(3)),
    "image": lambda: tv_tensors.Image(open_clip(2)),
    "one frame": lambda: open_clip(1),
    "a video of one": lambda: tv_tensors.Video(open_clip(1)),
    "clips": lambda: open_clip(6).view(2, 3, 3, 47, 61),
    "first clip": lambda: open_clip(6).view(2, 3, 3, 47, 61)[0],
    "a clip of one": lambda: open_clip(3).view(1, 3, 3, 47, 61)[0],
    "one image": lambda: open_clip(3)[1],
    "NHWC": lambda: open_clip(3, "NHWC"),
    "turned": lambda: open_clip(3, "NHWC").permute(0, 3, 1, 2),
}


def make_clip_step(draw: random.Random) -> Step:
    """A function of a clip, and how it is written. Some raise errors for some tensors."""
    begin, end, step = draw.randint(-3, 3), draw.randint(-2, 5), draw.choice([1, 1, 2, -1])
    number, seed = draw.randint(-2, 3), draw.randint(0, 9)
    scaled = {torch.Tensor: torch.float32, "others": None}

    def seeded(transform: Any) -> Callable[[Any], Any]:
        def call(clip: Any) -> Any:
            torch.manual_seed(seed)
            return transform(clip)

        return call

    def write(clip: Any) -> Any:
        clip[..., 1:3, 2:5] = 9
        return clip

    def iterate(clip: Any) -> Any:
        return torch.stack([f2.resize(frame, [13, 11]) for frame in clip])

    recipe = v2.Compose(
        [
            v2.RandomResizedCrop(20, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    steps: list[Step] = [
        (f"[{begin}:{end}]", lambda t: t[begin:end]),
        (f"[::{abs(step) + 1}]", lambda t: t[:: abs(step) + 1]),
        (f"[{number}]", lambda t: t[number]),
        (f"[:, {number}]", lambda t: t[:, number]),
        ("[[1, 0]]", lambda t: t[[1, 0]]),
        (f"select({number})", lambda t: t.select(0, number)),
        ("unbind", lambda t: t.unbind(0)[-1]),
        ("view", lambda t: t.view(-1, *t.shape[-3:])),
        ("view of two", lambda t: t.view(2, -1, *t.shape[-3:])),
        ("reshape", lambda t: t.reshape(t.shape[0], -1)),
        ("flatten", lambda t: t.flatten(0, 1)),
        ("flatten(0, -4)", lambda t: t.flatten(0, -4)),
        ("unflatten", lambda t: t.unflatten(0, (1, -1))),
        ("permute", lambda t: t.permute(1, 0, 2, 3)),
        ("transpose", lambda t: t.transpose(0, 1)),
        ("to channels last", lambda t: t.permute(0, 2, 3, 1)),
        ("from channels last", lambda t: t.permute(0, 3, 1, 2)),
        ("movedim", lambda t: t.movedim(-3, -1)),
        ("unsqueeze(0)", lambda t: t.unsqueeze(0)),
        ("unsqueeze(1)", lambda t: t.unsqueeze(1)),
        ("[None]", lambda t: t[None]),
        ("squeeze(0)", lambda t: t.squeeze(0)),
        ("squeeze", lambda t: t.squeeze()),
        ("contiguous", lambda t: t.contiguous()),
        ("channels last", lambda t: t.contiguous(memory_format=torch.channels_last)),
        ("narrow", lambda t: t.narrow(0, 0, 1)),
        ("stack of one", lambda t: torch.stack([t])),
        ("stack of two", lambda t: torch.stack([t, t])),
        ("cat of one", lambda t: torch.cat([t])),
        ("cat of two", lambda t: torch.cat([t, t])),
        ("last first", lambda t: t.flip(0)),
        ("tv Video", tv_tensors.Video),
        ("subsample", lambda t: f2.uniform_temporal_subsample(t, 2)),
        ("number of frames", lambda t: t * f2.get_num_frames(t)),
        ("five_crop", lambda t: f2.five_crop(t, [9, 8])[number]),
        ("pad", lambda t: torch.nn.functional.pad(t, (1, 2, 3, 0))),
        ("pad frames", lambda t: torch.nn.functional.pad(t, (0, 0, 0, 0, 0, 0, 0, 1))),
        ("interpolate", lambda t: torch.nn.functional.interpolate(t.float(), (9, 12), mode="bilinear", antialias=True)),
        ("ToDtype", v2.ToDtype(scaled, scale=draw.random() < 0.5)),
        ("recipe", seeded(recipe)),
        ("v2.RandomCrop", seeded(v2.RandomCrop(30, padding=draw.choice([None, 3])))),
        ("v2.RandomErasing", seeded(v2.RandomErasing(0.9))),
        ("written", write),
        ("iterated", iterate),
    ]
    return draw.choice(steps)


def run(kind: str, seed: int) -> tuple[list[Any], list[str]]:
    draw = random.Random(seed)
    steps = [make_clip_step(draw) if draw.random() < 0.5 else make_step(draw) for _ in range(draw.randint(1, 5))]
    looks = draw.getrandbits(5) if draw.random() < 0.3 else 0
    torch.manual_seed(7)
    return apply_chain(KINDS[kind](), steps, looks), [name for name, _ in steps]


@pytest.mark.parametrize("kind", KINDS)
def test_chains_are_equal(kind: str) -> None:
    for number in range(CHAINS // 8):
        expected, names = run(kind, number)
        with deferred_here(ImageCounts()):
            assert isinstance(KINDS[kind](), Deferred)
            found, _ = run(kind, number)
        assert found == expected, f"chain {number} of {kind}: {names}"

"""Views and copies of deferred tensors in other orders, and stacks of them: random programs, as torch runs them."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import pad

from headrace._loading.doors.image_to_tensor import defer_tensor
from headrace._loading.doors.tensors.deferred_tensor import recorded_in
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from support import PHOTOS
from torchvision_shim import import_torchvision

import_torchvision()
from torchvision.transforms import functional as v1  # noqa: E402 - after the shim
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

EDGES = 24, 36
PROGRAMS = 60
LENGTH = 7
_SOUND = (PHOTOS / "archway.jpg").read_bytes()
FILES = {"sound": _SOUND, "damaged": _SOUND[:9000] + bytes(500) + _SOUND[9500:]}


def planar(image: Image.Image) -> torch.Tensor:
    """An image's tensor in the order that transformers' `process_image` gives it."""
    made = defer_tensor(image, Layout.PLANAR, from_array)
    return from_array(image) if made is None else made


def from_array(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def patches(t: torch.Tensor) -> torch.Tensor:
    batch, channels, height, width = t.shape
    parts = t.reshape(batch, channels, height // 12, 2, 6, width // 12, 2, 6).permute(0, 2, 5, 3, 6, 1, 4, 7)
    return parts.unsqueeze(6).expand(-1, -1, -1, -1, -1, -1, 2, -1, -1).reshape(batch, -1, channels * 72)


def patches_of_pixels(t: torch.Tensor) -> torch.Tensor:
    """As SigLIP2's: the channels of a pixel are next to each other."""
    channels, height, width = t.shape
    parts = t.reshape(channels, height // 6, 6, width // 6, 6)
    return parts.permute(1, 3, 2, 4, 0).reshape(height // 6 * (width // 6), -1)


def padded(t: torch.Tensor, draw: random.Random) -> torch.Tensor:
    sides = draw.choice([[0, 0] * (t.dim() - 1) + [1, 2], (1, 0, 2, 3), [0, 0, 0, 3], [0, 2], [0, 0], [-1, 0], [1]])
    value = draw.choice([None, 0, 7, 0.5, -0.0, float("nan"), 300, True])
    return pad(t, sides, draw.choice(["constant"] * 9 + ["reflect"]), value)


def frames(t: torch.Tensor) -> torch.Tensor:
    return t.unfold(-2, 12, 12).unfold(-2, 12, 12).contiguous()


#: Called with the tensors so far and a generator; what raises an error must raise torch's.
STEPS: list[Callable[[list[torch.Tensor], random.Random], Any]] = [
    lambda made, draw: made[-1].unsqueeze(draw.randrange(-2, 3)),
    lambda made, draw: made[-1].squeeze(0),
    lambda made, draw: torch.squeeze(made[-1]),
    lambda made, draw: made[-1][draw.choice([0, -1, None, (..., 0), (slice(None), slice(2, 20, 3))])],
    lambda made, draw: made[-1].float(),
    lambda made, draw: f2.normalize(made[-1].to(torch.float32), [0.5] * 3, [0.25] * 3, inplace=True),
    lambda made, draw: f2.resize(made[-1], [24, 36], antialias=True),
    lambda made, draw: patches(made[-1]),
    lambda made, draw: patches_of_pixels(made[-1]),
    lambda made, draw: frames(made[-1]),
    lambda made, draw: padded(made[-1], draw),
    lambda made, draw: padded(made[-1], draw),
    lambda made, draw: made[-1].permute(*draw.sample(range(made[-1].dim()), made[-1].dim())),
    lambda made, draw: made[-1].transpose(0, -1),
    lambda made, draw: torch.movedim(made[-1], 0, -1),
    lambda made, draw: made[-1].reshape(-1, made[-1].shape[-1]),
    lambda made, draw: made[-1].reshape(3, -1),
    lambda made, draw: made[-1].flatten(1),
    lambda made, draw: made[-1].view(-1),
    lambda made, draw: made[-1].contiguous(),
    lambda made, draw: torch.stack([made[-1]]),
    lambda made, draw: torch.stack([made[-1]] * 2, 0, out=None),
    lambda made, draw: torch.stack([made[-1], draw.choice(made)]),
    lambda made, draw: torch.stack([made[-1]] * 3, dim=draw.choice([0, 1])),
    lambda made, draw: torch.cat([made[-1], draw.choice(made)], dim=0),
    lambda made, draw: torch.cat([made[-1]]),
    lambda made, draw: draw.choice(made).add_(1),
    lambda made, draw: draw.choice(made).sum(),
]


def run(number: int, data: bytes) -> list[Any]:
    """What a program of random steps sees: of each step the order in memory, or the error; at the end all values."""
    draw = random.Random(number)
    image = Image.open(io.BytesIO(data)).convert("RGB").resize(EDGES[::-1])
    tensor = v1.pil_to_tensor(image) if draw.random() < 0.5 else planar(image)
    made = [tensor.float() if draw.random() < 0.5 else tensor]
    seen: list[Any] = []
    for step in draw.choices(STEPS, k=LENGTH):
        try:
            after = step(made, draw)
        except Exception as error:
            seen.append((type(error), str(error)))
            continue
        seen.append((after.shape, after.stride(), after.dtype, [after is one for one in made], after.storage_offset()))
        made.append(after)
        if after.dim() == 0:
            break
    order = draw.sample(range(len(made)), len(made))
    return [*seen, *((repr(made[at].tolist()), made[at].is_contiguous()) for at in order)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FILES)
def test_random_programs_see_what_torch_shows(kind: str) -> None:
    data = FILES[kind]
    for number in range(PROGRAMS):
        expected = run(number, data)
        with deferred_here(ImageCounts()):
            assert run(number, data) == expected, f"program {number}"


def test_patches_of_several_images_are_made_in_one_tensor() -> None:
    data = FILES["sound"]

    def opened() -> torch.Tensor:
        return f2.resize(planar(Image.open(io.BytesIO(data)).convert("RGB")), list(EDGES)).float()[None]

    expected = torch.cat([patches(opened())[0] for _ in range(3)])
    counts = ImageCounts()
    with deferred_here(counts):
        parts = [patches(opened())[0] for _ in range(3)]
        assert all(recorded_in(one) is not None for one in parts)
        assert counts.native == 0
        joined = torch.cat(parts)
        assert type(joined) is torch.Tensor
        assert counts.native == 3
        assert torch.equal(joined, expected)
        assert joined.stride() == expected.stride()
        joined.zero_()  # torch's copies: the parts have values of their own
        assert torch.equal(torch.cat(parts), expected)


def test_a_stack_of_one_image_is_deferred() -> None:
    data = FILES["sound"]
    expected = torch.stack([planar(Image.open(io.BytesIO(data)).convert("RGB")).float()])
    with deferred_here(ImageCounts()):
        whole = torch.stack([planar(Image.open(io.BytesIO(data)).convert("RGB")).float()])
        image = whole[0]
        assert recorded_in(image) is not None
        image.add_(1)
        assert torch.equal(whole, expected + 1)
        assert whole.stride() == expected.stride()


def test_padded_patches_of_several_images_are_made_in_one_tensor() -> None:
    """As SigLIP2's processor, BatchFeature and default_collate have them, for images with fewer patches and without."""
    data = FILES["sound"]

    def made(size: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
        image = f2.resize(planar(Image.open(io.BytesIO(data)).convert("RGB")), list(size)).to(dtype)
        few = patches_of_pixels(image)
        return torch.stack([pad(few, [0, 0, 0, 30 - len(few)], value=3)])[0]

    for dtype in torch.float32, torch.uint8:
        sizes = (24, 36), (12, 48), (30, 36)
        expected = torch.stack([made(size, dtype) for size in sizes])
        counts = ImageCounts()
        with deferred_here(counts):
            parts = [made(size, dtype) for size in sizes]
            assert all(recorded_in(one) is not None for one in parts)
            assert counts.native == 0
            joined = torch.stack(parts, 0, out=None)
            assert type(joined) is torch.Tensor
            assert counts.native == 3
            assert torch.equal(joined, expected)
            parts[1].add_(1)  # a copy of its own
            assert torch.equal(torch.stack(parts)[1], expected[1] + 1)
            assert torch.equal(joined, expected)

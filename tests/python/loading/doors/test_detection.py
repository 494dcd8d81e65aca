"""Detection and segmentation with v2: the image is deferred, its boxes, masks and key points are torch's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._loading.doors.tensors.deferred_tensor import make_samples
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from png_samples import png
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
FILL: dict[Any, Any] = {tv_tensors.Image: (123, 117, 104), Image.Image: (123, 117, 104), "others": 0}
FLOATS = [v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True), v2.Normalize(MEAN, STD)]
END = [*FLOATS, v2.SanitizeBoundingBoxes(), v2.ToPureTensor()]
GEOMETRY: dict[str, list[Any]] = {
    "hflip": [v2.RandomHorizontalFlip(0.5)],
    "resize": [v2.RandomHorizontalFlip(0.5), v2.Resize((48, 52), antialias=True)],
    "shortest": [v2.RandomShortestSize([40, 50, 60], max_size=70, antialias=True), v2.RandomVerticalFlip(0.5)],
    "large scale jitter": [
        v2.ScaleJitter((50, 50), antialias=True),
        v2.RandomCrop((50, 50), pad_if_needed=True, fill=FILL),
    ],
    "ssd": [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=FILL), v2.RandomIoUCrop(), v2.Resize((40, 40))],
    "colours": [v2.RandomResizedCrop((33, 44), antialias=True), v2.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "affine": [v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), fill=FILL)],
}
RECIPES = {
    f"{name}, {first}": v2.Compose([*([v2.ToImage(), *steps] if first == "tensors" else [*steps, v2.ToImage()]), *END])
    for name, steps in GEOMETRY.items()
    for first in ("tensors", "images")
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A photograph as a JPEG, and its mask as a palette PNG."""
    folder = tmp_path_factory.mktemp("scene")
    values = np.random.default_rng(0).integers(0, 256, (8, 9, 3), dtype=np.uint8)
    Image.fromarray(values).resize((96, 70), Image.Resampling.BICUBIC).save(folder / "image.jpg", quality=92)
    (folder / "mask.png").write_bytes(png(96, 70, 3, 4))
    return folder / "image.jpg", folder / "mask.png"


def read(paths: tuple[Path, Path]) -> tuple[Any, dict[str, Any]]:
    """A sample as a program for COCO's files makes it."""
    image, mask = Image.open(paths[0]).convert("RGB"), Image.open(paths[1])
    size = (image.height, image.width)
    boxes = torch.tensor([[3.0, 4, 40, 50], [30, 10, 90, 66], [50, 1, 60, 12]])
    points = torch.tensor([[5.0, 6], [44, 33], [95, 69]])
    return image, {
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=size),
        "points": tv_tensors.KeyPoints(points, canvas_size=size),
        "masks": tv_tensors.Mask(torch.from_numpy(np.array(mask)) == torch.tensor([1, 2, 3])[:, None, None]),
        "labels": torch.tensor([7, 8, 9]),
    }


def samples(recipe: str, scene: tuple[Path, Path]) -> list[Any]:
    made = []
    for seed in range(8):
        torch.manual_seed(seed)
        sample = RECIPES[recipe](*read(scene))
        make_samples(sample)
        made.append((*sample, torch.random.get_rng_state()))
    return made


@pytest.mark.parametrize("recipe", RECIPES)
def test_samples_are_those_of_torch(recipe: str, scene: tuple[Path, Path]) -> None:
    if not hasattr(tv_tensors, "KeyPoints"):
        pytest.skip("torchvision before 0.24 has no key points")
    counts = ImageCounts()
    expected = samples(recipe, scene)
    with deferred_here(counts):
        found = samples(recipe, scene)
    assert counts.native == counts.total == 16
    for (image, target, state), (image_, target_, state_) in zip(found, expected, strict=True):
        assert torch.equal(image, image_) and image.stride() == image_.stride()
        assert target.keys() == target_.keys() and torch.equal(state, state_)
        for name, value in target.items():
            assert type(value) is type(target_[name]) and torch.equal(value, target_[name]), name

"""Detection: photographs with boxes, and v2's transforms of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

import headrace
from bench.contenders._common import MEAN, STD

_BOXES = 6
_EDGE = 416
END = [
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize(MEAN, STD),
    v2.SanitizeBoundingBoxes(),
    v2.ToPureTensor(),
]
RESIZE = [v2.RandomHorizontalFlip(0.5), v2.Resize((_EDGE, _EDGE), antialias=True)]
#: As torchvision's references have them: the image as a tensor first, or as Pillow's image up to the end.
ON_TENSORS = v2.Compose([v2.ToImage(), *RESIZE, *END])
ON_IMAGES = v2.Compose([*RESIZE, v2.ToImage(), *END])
SSD = v2.Compose([v2.ToImage(), v2.RandomIoUCrop(), *RESIZE, *END])


class Detection(Dataset[Any]):
    """Samples (image, {"boxes", "labels"})."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        self.paths, self.transform = paths, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        canvas = (image.height, image.width)
        boxes = tv_tensors.BoundingBoxes(_boxes(index, image.size), format="XYXY", canvas_size=canvas)
        return self.transform(image, {"boxes": boxes, "labels": torch.arange(_BOXES)})


def _boxes(index: int, size: tuple[int, int]) -> torch.Tensor:
    """The boxes of an image of this (width, height)."""
    generator, edges = torch.Generator().manual_seed(index), torch.tensor(size)
    corners = torch.rand(_BOXES, 2, generator=generator) * 0.6 * edges
    extents = 10 + torch.rand(_BOXES, 2, generator=generator) * 0.35 * edges
    return torch.cat([corners, corners + extents], 1)


def collate(samples: list[Any]) -> Any:
    """Images of one size as a batch, and their targets in a list."""
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), list(targets)


def collate_fields(samples: list[Any]) -> dict[str, Any]:
    """The same as `fields` have it."""
    images, targets = collate(samples)
    return {"image": images, **{name: [one[name] for one in targets] for name in ("boxes", "labels")}}


def fields(dataset: Detection) -> headrace.Fields:
    """The files, boxes and labels of a dataset with `ON_IMAGES` as headrace's fields."""
    boxes = []
    for index, path in enumerate(dataset.paths):
        with Image.open(path) as image:
            boxes.append(_boxes(index, image.size))
    return headrace.Fields(
        {
            "image": headrace.ImageFiles(dataset.paths, transform=v2.Compose([v2.ToImage(), *END[:2]])),
            "boxes": headrace.Boxes(boxes, "XYXY", labels=["labels"], sanitize=True),
            "labels": [torch.arange(_BOXES)] * len(boxes),
        },
        geometry=v2.Compose(RESIZE),
    )

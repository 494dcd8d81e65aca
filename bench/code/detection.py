"""Detection: photographs with boxes, and v2's transforms of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

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
        size = torch.tensor(image.size)
        generator = torch.Generator().manual_seed(index)
        corners = torch.rand(_BOXES, 2, generator=generator) * 0.6 * size
        extents = 10 + torch.rand(_BOXES, 2, generator=generator) * 0.35 * size
        boxes = tv_tensors.BoundingBoxes(
            torch.cat([corners, corners + extents], 1), format="XYXY", canvas_size=(image.height, image.width)
        )
        return self.transform(image, {"boxes": boxes, "labels": torch.arange(_BOXES)})


def collate(samples: list[Any]) -> Any:
    """Images of one size as a batch, and their targets in a list."""
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), list(targets)

"""The transforms that commands know by name: of training and of evaluation."""

from __future__ import annotations

import torch

from headrace import transforms

#: ImageNet's mean and standard deviation per channel, in units of [0, 1].
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def train(size: int = 224, min_scale: float = 0.08) -> transforms.Compose:
    """Returns a random resized crop with random flip; output: float32 (3, size, size), normalised."""
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(size, scale=(min_scale, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def evaluation(size: int = 224) -> transforms.Compose:
    """Returns a resize of the shorter edge to 8/7 of `size` and a centre crop; float32 (3, size, size), normalised."""
    return transforms.Compose(
        [
            transforms.Resize(size * 8 // 7),
            transforms.CenterCrop(size),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def denormalise(images: torch.Tensor) -> torch.Tensor:
    """Returns normalised images (n, 3, H, W) as uint8 again."""
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return ((images.float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)

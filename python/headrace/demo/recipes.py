"""The two recipes of the demo: how images are made ready for training, and for evaluation."""

from __future__ import annotations

import torch

from headrace import transforms

#: Of ImageNet, a channel, in units of [0, 1].
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def train(size: int = 224, min_scale: float = 0.08) -> transforms.Compose:
    """A crop of random size and place, perhaps mirrored; float32 (3, size, size), normalised."""
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(size, scale=(min_scale, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def evaluation(size: int = 224) -> transforms.Compose:
    """The middle of the image, shorter edge 8/7 of `size`; float32 (3, size, size), normalised."""
    return transforms.Compose(
        [
            transforms.Resize(size * 8 // 7),
            transforms.CenterCrop(size),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def denormalise(images: torch.Tensor) -> torch.Tensor:
    """Bytes (n, 3, H, W) again of normalised images."""
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return ((images.float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)

"""Trains a segmentation of images: an image, its mask and its name per sample, in one loader.

    python examples/segmentation.py [--epochs N] [--workers N]

The masks are made here: PNG files with a palette, whose indices are the classes. Image and mask get the same crop and
flip; the mask takes nearest pixels, so that it holds classes alone.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from headrace import DataLoader, Fields, ImageFiles, transforms
from headrace._cli.demo.photo_folder import make_photo_folder

CLASSES = 3
PALETTE = [0, 0, 0, 200, 80, 0, 0, 80, 200]


def draw_mask(image: Path, mask: Path) -> None:
    """Writes the classes of an image's pixels: dark, medium, bright."""
    with Image.open(image) as opened:
        brightness = np.asarray(opened.convert("L"))
    drawn = Image.fromarray(np.digitize(brightness, [85, 170]).astype(np.uint8))
    drawn.putpalette(PALETTE)
    drawn.save(mask)


def network(width: int = 16) -> nn.Module:
    """Three convolutions from an image to the scores of each class."""
    return nn.Sequential(
        *(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU()),
        nn.Conv2d(width, CLASSES, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        images = sorted(make_photo_folder(Path(temporary) / "set", files=50).train.rglob("*.jpg"))
        masks = [Path(temporary) / f"{number}.png" for number in range(len(images))]
        for image, mask in zip(images, masks, strict=True):
            draw_mask(image, mask)
        dataset = Fields(
            {
                "image": ImageFiles(images, transform=transforms.ToTensor()),
                "mask": ImageFiles(masks, transform=transforms.PILToTensor(), mode="P"),
                "name": [path.name for path in images],
            },
            geometry=transforms.Compose([transforms.RandomResizedCrop(48), transforms.RandomHorizontalFlip()]),
            masks=["mask"],
        )
        loader = DataLoader(dataset, batch_size=8, shuffle=True, seed=0, num_workers=options.workers)
        torch.manual_seed(0)
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for epoch in range(options.epochs):
            losses = []
            for batch in loader:
                target = batch["mask"].squeeze(1).long()  # bytes (n, 1, H, W) -> classes (n, H, W)
                loss = nn.functional.cross_entropy(model(batch["image"]), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} of {len(dataset)} images with masks")


if __name__ == "__main__":
    main()

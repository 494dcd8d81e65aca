"""A transform of one's own in the middle of native ones: it is called in Python, the rest stays native.

    python examples/own_steps.py [FOLDER]

Without a folder it uses the photographs inside headrace. `explain` names the step that is not native, `verify` compares
with plain Pillow and torch, `stats` tells what the step costs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image, ImageFilter

from headrace import DataLoader, ImageFolder, transforms
from headrace._cli.demo.photo_folder import make_photo_folder


class Sharpened:
    """Pillow's unsharp mask, of random strength. It draws from torch, so its numbers follow from the loader's seed."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.UnsharpMask(percent=int(torch.randint(50, 200, ()))))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else make_photo_folder(Path(temporary), files=50).train
        steps = [
            transforms.RandomResizedCrop(96),
            Sharpened(),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
        ]
        loader = DataLoader(ImageFolder(folder, transforms.Compose(steps)), 16, shuffle=True, num_workers=2, seed=0)
        print(loader.explain(), loader.verify(), sep="\n\n", end="\n\n")
        for _images, _labels in loader:
            pass
        print(loader.stats())


if __name__ == "__main__":
    main()

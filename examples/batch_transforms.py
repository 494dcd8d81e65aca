"""Transforms of whole batches, on the device where they are: MixUp and CutMix, or kornia's modules.

    python examples/batch_transforms.py [FOLDER] [--device cuda] [--library torchvision|kornia|none]

Without a folder it uses the photographs inside headrace. `out_transform` gets each batch as it is handed out; what it
draws follows from seed, epoch and batch, so that a resumed run draws the same.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from headrace import DataLoader, ImageFolder, transforms
from headrace._cli.demo.photo_folder import make_photo_folder

Batch = list[torch.Tensor]


def mixing(classes: int):
    """torchvision's MixUp or CutMix; targets become shares of classes, (n, classes)."""
    from torchvision.transforms import v2

    return v2.RandomChoice([v2.MixUp(num_classes=classes), v2.CutMix(num_classes=classes)])


def kornia_modules():
    """Modules of kornia on the images, which are floats in [0, 1] on whatever device."""
    from kornia import augmentation as K

    modules = K.AugmentationSequential(
        K.RandomAffine(degrees=15.0, translate=(0.1, 0.1)), K.RandomErasing(), data_keys=["input"]
    )
    return lambda batch: [modules(batch[0]), batch[1]]


def rolled(batch: Batch) -> Batch:
    """MixUp by hand, for where neither library is installed."""
    images, targets = batch
    return [images.lerp(images.roll(1, 0), 0.2 * float(torch.rand(()))), targets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--library", choices=("torchvision", "kornia", "none"), default="none")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or make_photo_folder(Path(temporary), files=50).train
        steps = [transforms.RandomResizedCrop(96), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        dataset = ImageFolder(folder, transforms.Compose(steps))
        out = {"torchvision": lambda: mixing(len(dataset.classes)), "kornia": kornia_modules, "none": lambda: rolled}
        loader = DataLoader(
            dataset, 16, shuffle=True, num_workers=2, seed=0, device=args.device, out_transform=out[args.library]()
        )
        for number, (images, targets) in enumerate(loader):
            print(f"batch {number}: images {tuple(images.shape)} on {images.device}, targets {tuple(targets.shape)}")


if __name__ == "__main__":
    main()

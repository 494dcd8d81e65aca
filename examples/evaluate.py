"""Evaluates a checkpoint of train.py on a folder of images, class by class.

    python examples/evaluate.py [FOLDER] [--checkpoint run.pt]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked; with
either line the pixels, and so the output, are the same.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from train import network

from headrace import (
    DataLoader,  # was: from torch.utils.data import DataLoader
    ImageFolder,
    transforms,
)
from headrace._cli.demo.photo_folder import make_photo_folder


@torch.inference_mode()
def main() -> None:
    """Prints how many images of each class are named right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder with one sub-folder a class")
    parser.add_argument("--checkpoint", type=Path, default=Path("run.pt"))
    options = parser.parse_args()
    if not options.checkpoint.exists():
        raise SystemExit(f"there is no {options.checkpoint}: run examples/train.py first")
    folder = options.folder or make_photo_folder(Path(tempfile.gettempdir()) / "headrace-example", files=100).validation
    steps = [
        transforms.Resize(73),
        transforms.CenterCrop(64),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
    dataset = ImageFolder(folder, transforms.Compose(steps))
    loader = DataLoader(dataset, batch_size=64, num_workers=2)
    model = network(len(dataset.classes))
    model.load_state_dict(torch.load(options.checkpoint, weights_only=True)["model"])
    model.eval()
    seen, right = torch.zeros(len(dataset.classes)), torch.zeros(len(dataset.classes))
    for images, labels in loader:
        hits = labels[model(images).argmax(1) == labels]
        seen += torch.bincount(labels, minlength=len(seen))
        right += torch.bincount(hits, minlength=len(seen))
    for name, hit, of in zip(dataset.classes, right.tolist(), seen.tolist(), strict=True):
        print(f"{name:<16}{hit:>6.0f} of {of:.0f}")
    print(f"{'all':<16}{right.sum():>6.0f} of {seen.sum():.0f}: {right.sum() / seen.sum():.0%}")


if __name__ == "__main__":
    main()

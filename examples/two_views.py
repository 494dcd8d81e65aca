"""Trains an encoder without labels on two views of each image, as SimCLR does: one decode makes both views.

    python examples/two_views.py [FOLDER] [--epochs 2]

Without a folder it uses the photographs inside headrace. The second loader, of ten views, is what DINO trains on.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch.nn import functional
from train import network

from headrace import DataLoader, ImageFiles, transforms
from headrace._cli.demo.photo_folder import make_photo_folder

END = [transforms.ToTensor(), transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]


def view(size: int, scale: tuple[float, float]) -> transforms.Compose:
    """One random view: a crop, a flip, colours, blur."""
    jitter = transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8)
    blur = transforms.RandomApply([transforms.GaussianBlur(5, (0.1, 2.0))], 0.5)
    crop = transforms.RandomResizedCrop(size, scale)
    return transforms.Compose(
        [crop, transforms.RandomHorizontalFlip(), jitter, transforms.RandomGrayscale(0.2), blur, *END]
    )


def contrast(first: torch.Tensor, second: torch.Tensor, temperature: float = 0.2) -> torch.Tensor:
    """SimCLR's loss of embeddings (n, d): each view must find the other view of its image among all others."""
    both = functional.normalize(torch.cat([first, second]), dim=1)
    likeness = both @ both.T / temperature
    likeness.fill_diagonal_(-torch.inf)
    n = len(first)
    return functional.cross_entropy(likeness, torch.arange(2 * n).roll(n))


def main() -> None:
    """Trains, then takes one batch of ten views."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of images; its sub-folders do not matter")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    folder = options.folder or make_photo_folder(Path(tempfile.gettempdir()) / "headrace-example", files=100).train
    paths = sorted(path for path in folder.rglob("*") if path.is_file())

    two = transforms.Views([view(64, (0.2, 1.0))] * 2)  # each view draws its own random numbers
    loader = DataLoader(ImageFiles(paths, transform=two), 16, shuffle=True, num_workers=2, drop_last=True, seed=0)
    print(loader.verify(1))
    torch.manual_seed(0)
    encoder = network(32)
    optimiser = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    for epoch in range(options.epochs):
        total = 0.0
        for first, second in loader:
            loss = contrast(encoder(first), encoder(second))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")

    ten = transforms.Views([*[view(64, (0.4, 1.0))] * 2, *[view(32, (0.05, 0.4))] * 8])
    crops = next(iter(DataLoader(ImageFiles(paths, transform=ten), 16, num_workers=2, seed=0)))
    print("ten views:", [tuple(one.shape) for one in crops])


if __name__ == "__main__":
    main()

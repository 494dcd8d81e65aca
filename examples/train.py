"""Trains a small residual network on a folder of images, with a checkpoint that resumes in the middle of an epoch.

    python examples/train.py [FOLDER] [--epochs 2] [--checkpoint run.pt]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn

from headrace import (
    DataLoader,  # was: from torch.utils.data import DataLoader
    ImageFolder,
    transforms,
)
from headrace._cli.demo.photo_folder import make_photo_folder


class Block(nn.Module):
    """Two convolutions and a way around them; (n, C, H, W) -> (n, out, H / stride, W / stride)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.around = nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.around(x))


def network(classes: int) -> nn.Sequential:
    """(n, 3, 64, 64) -> (n, classes)."""
    blocks = (Block(3, 16, 2), Block(16, 32, 2), Block(32, 64, 2))
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def main() -> None:
    """Saves model, optimiser and loader every ten batches; started again, it goes on with the very next batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder with one sub-folder a class")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--stop-after", type=int, help="leave after so many batches, as if the job had been killed")
    parser.add_argument("--checkpoint", type=Path, default=Path("run.pt"))
    options = parser.parse_args()
    folder = options.folder or make_photo_folder(Path(tempfile.gettempdir()) / "headrace-example", files=100).train
    steps = [
        transforms.RandomResizedCrop(64, scale=(0.35, 1)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
    ]
    steps.append(transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    dataset = ImageFolder(folder, transforms.Compose(steps))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, drop_last=True, seed=0)
    torch.manual_seed(0)
    model = network(len(dataset.classes))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    first = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        loader.load_state_dict(saved["loader"])
        first = saved["loader"]["epoch"]
        print(f"resumed in epoch {first} after {saved['loader']['position']} batches")
    done = 0
    for epoch in range(first, options.epochs):
        loader.set_epoch(epoch)
        loss = None  # saved after the last batch of an epoch, a run goes on with the nothing that is left of it
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            done += 1
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "loader": loader.state_dict()}
            if done % 10 == 0 or done == options.stop_after:
                torch.save(state, options.checkpoint)
            if done == options.stop_after:
                print(f"left in epoch {epoch}: loss {loss.item():.6f}")
                return
        if loss is not None:
            print(f"epoch {epoch}: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()

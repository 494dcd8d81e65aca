"""Trains a ResNet-18, written out, in plain torch, accumulating gradients; goes on where it was killed.

    python examples/resnet18_accumulate.py [FOLDER] [--epochs 2] [--accumulate 2] [--checkpoint run.pt]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked.
"""

from __future__ import annotations

import shared
import torch
from torch import nn

import headrace


class BasicBlock(nn.Module):
    """Two convolutions and a way around them; (n, C, H, W) -> (n, out, H / stride, W / stride)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.around = nn.Identity()
        if stride != 1 or channels != out:
            self.around = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.around(x))


def resnet18(classes: int) -> nn.Sequential:
    """(n, 3, H, W) -> (n, classes); eighteen layers with weights, eleven million of these, as He and others have it."""
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    stages = []
    for channels, out, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        stages += [BasicBlock(channels, out, stride), BasicBlock(out, out, 1)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def main() -> None:
    """Saves everything after each batch, gradients that are still accumulating among it."""
    parser = shared.resumable(__doc__)
    parser.add_argument("--accumulate", type=int, default=2, help="batches to a step of the optimiser")
    options = parser.parse_args()
    dataset = shared.photographs(options)
    common = {"batch_size": options.batch_size, "shuffle": True, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(dataset, **common)
    loader = headrace.DataLoader(dataset, **common, seed=0)
    torch.manual_seed(0)
    model = resnet18(len(dataset.classes))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    log, first = shared.Log(), 0
    if options.checkpoint and options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        for parameter, gradient in zip(model.parameters(), saved["gradients"], strict=True):
            parameter.grad = gradient
        loader.load_state_dict(saved["loader"])
        log, first = shared.Log(saved["taken"]), saved["loader"]["epoch"]
    for _epoch in range(first, options.epochs):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            (loss / options.accumulate).backward()
            if (log.taken + 1) % options.accumulate == 0:
                optimiser.step()
                optimiser.zero_grad()
            log.step(loss, len(images))
            if options.checkpoint:
                state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
                state["gradients"] = [parameter.grad for parameter in model.parameters()]
                shared.save({**state, "loader": loader.state_dict(), "taken": log.taken}, options.checkpoint)
            if log.taken == options.kill_after:
                shared.end_suddenly()
    log.end()


if __name__ == "__main__":
    main()

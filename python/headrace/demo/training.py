"""Trains a small convolutional network on the photographs, with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from headrace import DataLoader, ImageFolder
from headrace.demo import recipes

SIZE = 96  # pixels


def network(classes: int) -> nn.Sequential:
    """Four convolutions with batch norm, then the mean over the image: (n, 3, H, W) -> (n, classes)."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 24), (24, 48), (48, 96), (96, 128)):
        convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))


def train(train_root: Path, validation_root: Path, epochs: int, workers: int) -> float:
    """Prints loss and accuracy an epoch; returns the share of validation images that were named right."""
    torch.manual_seed(0)
    dataset = ImageFolder(train_root, recipes.train(SIZE, min_scale=0.4))
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers, seed=0)
    evaluation = ImageFolder(validation_root, recipes.evaluation(SIZE))
    model = network(len(dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    print(f"   {len(dataset)} images, {len(dataset.classes)} classes: {', '.join(dataset.classes)}")
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        loss, accuracy = _epoch(model, optimizer, loader, f"   epoch {epoch + 1}/{epochs}")
        print(f"   epoch {epoch + 1}/{epochs}: loss {loss:.3f}, accuracy {accuracy:.0%}", flush=True)
    right = _accuracy(model, DataLoader(evaluation, batch_size=64, num_workers=workers))
    print(f"   {right:.0%} of {len(evaluation)} validation images (other crops of the same photographs) named right")
    return right


def _epoch(model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader, label: str) -> tuple[float, float]:
    model.train()
    seen, right, loss_sum = 0, 0, 0.0
    with tqdm(loader, desc=label, unit="batch", leave=False, file=sys.stdout, disable=not sys.stdout.isatty()) as bar:
        for images, labels in bar:
            scores = model(images)
            loss = nn.functional.cross_entropy(scores, labels, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(labels)
            right += int((scores.argmax(1) == labels).sum())
            loss_sum += loss.item() * len(labels)
            bar.set_postfix(loss=f"{loss_sum / seen:.3f}", accuracy=f"{right / seen:.0%}")
    return loss_sum / seen, right / seen


@torch.no_grad()
def _accuracy(model: nn.Module, loader: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float:
    model.eval()
    seen, right = 0, 0
    for images, labels in loader:
        right += int((model(images).argmax(1) == labels).sum())
        seen += len(labels)
    return right / seen

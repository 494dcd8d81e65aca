"""Trains a small convolutional network on the photographs, with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import RandomSampler
from tqdm import tqdm  # type: ignore[import-untyped]

from headrace._base.cores import usable_cores
from headrace._cli import recipes
from headrace.datasets.sources import ImageFolder
from headrace.loader import DataLoader

SIZE = 96  # pixels
REPEATS = 4  # crops of each file in an epoch


def make_network(classes: int) -> nn.Sequential:
    """Returns four convolutions with batch norm and a mean over the image: (n, 3, H, W) -> (n, classes)."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 24), (24, 48), (48, 96), (96, 128)):
        convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))


def train(train_root: Path, validation_root: Path, epochs: int, workers: int) -> float:
    """Trains and prints loss and accuracy per epoch. Returns the accuracy on the validation images."""
    torch.manual_seed(0)
    dataset = ImageFolder(train_root, recipes.train(SIZE, min_scale=0.4))
    sampler = RandomSampler(dataset, num_samples=REPEATS * len(dataset))
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=workers, seed=0)
    evaluation = ImageFolder(validation_root, recipes.evaluation(SIZE))
    model = make_network(len(dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * len(loader))
    print(f"   {REPEATS} crops of each of {len(dataset)} files per epoch; classes: {', '.join(dataset.classes)}")
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, usable_cores() - 1))  # leaves one core to the loader
    for epoch in range(epochs):
        loss, accuracy = _train_one_epoch(model, optimizer, schedule, loader, f"   epoch {epoch + 1}/{epochs}")
        print(f"   epoch {epoch + 1}/{epochs}: loss {loss:.3f}, accuracy {accuracy:.0%}", flush=True)
    torch.set_num_threads(threads)
    right = _measure_accuracy(model, DataLoader(evaluation, batch_size=64, num_workers=workers))
    print(f"   {right:.0%} of {len(evaluation)} validation images (other crops of the same photographs) recognised")
    return right


def _train_one_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    loader: DataLoader[object],
    label: str,
) -> tuple[float, float]:
    """Trains for one epoch. Returns the mean loss and the accuracy."""
    model.train()
    seen, right, loss_sum = 0, 0, 0.0
    with tqdm(loader, desc=label, unit="batch", leave=False, file=sys.stdout, disable=not sys.stdout.isatty()) as bar:
        for images, labels in bar:
            scores = model(images)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            seen += len(labels)
            right += int((scores.argmax(1) == labels).sum())
            loss_sum += loss.item() * len(labels)
            bar.set_postfix(loss=f"{loss_sum / seen:.3f}", accuracy=f"{right / seen:.0%}")
    return loss_sum / seen, right / seen


@torch.no_grad()
def _measure_accuracy(model: nn.Module, loader: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float:
    model.eval()
    seen, right = 0, 0
    for images, labels in loader:
        right += int((model(images).argmax(1) == labels).sum())
        seen += len(labels)
    return right / seen

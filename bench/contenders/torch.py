"""torch's DataLoader over torchvision's ImageFolder and transforms on Pillow: baseline and reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench.contenders._common import TORCHVISION_RECIPES, Job, run, torchvision_transform

if TYPE_CHECKING:
    import torch


def batches(job: Job) -> Iterator[torch.Tensor]:
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    loader = DataLoader(
        ImageFolder(str(job.root), torchvision_transform(job.recipe)),
        batch_size=job.batch_size,
        shuffle=job.shuffle,
        num_workers=job.cores,
        drop_last=job.shuffle,
        persistent_workers=True,  # otherwise every epoch starts new processes
    )
    for _ in job.epochs():
        for images, _labels in loader:
            yield images


if __name__ == "__main__":
    run(
        "torch",
        modules=["torchvision", "PIL"],
        packages=["torch", "torchvision", "pillow"],
        batches=batches,
        recipes=TORCHVISION_RECIPES,
    )

"""headrace's DataLoader over the same dataset and transform objects as the torch contender."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.contenders._common import TORCHVISION_RECIPES, Job, run, torchvision_transform

if TYPE_CHECKING:
    import torch


def _loader(job: Job) -> Any:
    from torchvision.datasets import ImageFolder

    from headrace import DataLoader

    return DataLoader(
        ImageFolder(str(job.root), torchvision_transform(job.recipe)),
        batch_size=job.batch_size,
        shuffle=job.shuffle,
        num_workers=job.cores,
        drop_last=job.shuffle,
        seed=0,
    )


def batches(job: Job) -> Iterator[torch.Tensor]:
    loader = _loader(job)
    for epoch in job.epochs():
        loader.set_epoch(epoch)
        for images, _labels in loader:
            yield images
    loader.close()


def verify(job: Job) -> str:
    """Raises if a value of two batches differs from torchvision + Pillow with the same draws."""
    loader = _loader(job)
    report = loader.verify(n=2)
    loader.close()
    return str(report)


if __name__ == "__main__":
    run(
        "headrace",
        modules=["torchvision", "headrace"],
        packages=["headrace", "torch", "torchvision", "pillow"],
        batches=batches,
        verify=verify,
        recipes=TORCHVISION_RECIPES,
    )

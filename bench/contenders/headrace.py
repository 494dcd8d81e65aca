"""headrace's DataLoader over the same dataset and transform objects as the torch contender.

Variant `entries`: with `entry_points=`, timed after epochs in which the loader learned where rows of the JPEGs begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.contenders._common import TORCHVISION_RECIPES, Job, run, torchvision_transform

if TYPE_CHECKING:
    import torch


LEARNING_EPOCHS = 4  # by then most images have been decoded down to their lowest rows
ENTRY_POINTS_BYTES = 2**28


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
        entry_points=ENTRY_POINTS_BYTES if job.variant == "entries" else None,
    )


def batches(job: Job) -> Iterator[torch.Tensor]:
    loader = _loader(job)
    if job.variant == "entries":
        for epoch in range(LEARNING_EPOCHS):
            loader.set_epoch(1_000_000 + epoch)  # crops that the timed epochs do not draw again
            for _batch in loader:
                pass
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

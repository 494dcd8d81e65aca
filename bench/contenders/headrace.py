"""headrace's DataLoader over the same dataset and transform objects as the torch contender.

It is timed after epochs in which it has learned where the rows of the JPEGs begin, as in all epochs of a training but
the first. Variant `first`: without these epochs, and with ``entry_points=None``; a first epoch, which also learns,
takes 2 to 4% longer. Variant `kept`: the epochs that learn are those of a loader that has ended, and has left a file.
Variant `raw`: the array of a raw pack, whose pages are mapped in these epochs.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.contenders._common import TORCHVISION_RECIPES, Job, raw_images, run, torchvision_transform

if TYPE_CHECKING:
    import torch


LEARNING_EPOCHS = 2  # of small sets, which are repeated: by then each image has been decoded many times


def _loader(job: Job) -> Any:
    from torchvision.datasets import ImageFolder

    from headrace import DataLoader, ImageArray

    dataset: Any = ImageFolder(str(job.root), torchvision_transform(job.recipe))
    if job.variant == "raw":
        images = np.load(raw_images(job), mmap_mode="r")
        dataset = ImageArray(images, np.array(dataset.targets), dataset.transform)
    return DataLoader(
        dataset,
        batch_size=job.batch_size,
        shuffle=job.shuffle,
        num_workers=job.cores,
        drop_last=job.shuffle,
        seed=0,
        entry_points=None if job.variant == "first" else "auto",
    )


def batches(job: Job) -> Iterator[torch.Tensor]:
    with tempfile.TemporaryDirectory() as folder:
        if job.variant == "kept":
            os.environ["HEADRACE_ENTRY_POINTS_FOLDER"] = folder
        loader = _loader(job)
        if job.variant != "first":
            for epoch in range(LEARNING_EPOCHS):
                loader.set_epoch(1_000_000 + epoch)  # crops that the timed epochs do not draw again
                for _batch in loader:
                    pass
        if job.variant == "kept":
            loader.close()
            while not list(Path(folder).glob("*/*.npz")):  # a thread writes it
                time.sleep(0.01)
            loader = _loader(job)
        yield from _timed(loader, job)


def _timed(loader: Any, job: Job) -> Iterator[torch.Tensor]:
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

"""TurboLoader's fused C++ path over a TAR of the same files, with its own recommended settings.

`train_aug=True` is its RandomResizedCrop + flip; `pin_memory=True` is its ring of reused buffers, so no batch needs
new pages. It decodes at a reduced DCT scale if the target allows, which explains part of its speed and of its pixel
differences. Variant `raw`: its `.tbl` file of pixels. Its one thread pool has the size of the machine whatever
`num_workers` is; the process is pinned to the job's cores. Variant `noaa` resizes without antialias, its default. Its
RandAugment is a transform of single samples, which it cannot combine with that crop: the whole image is resized in
its place.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.contenders._common import RECIPES, SIZE, Job, Unsupported, run

if TYPE_CHECKING:
    import torch


def tar(job: Job) -> Path:
    def write(path: Path) -> None:
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT, dereference=True) as archive:
            for k, file in enumerate(job.files()):
                archive.add(file.resolve(), arcname=f"{k:07d}.jpg")

    return job.derived(".tar", write)


def _raw(job: Job) -> Iterator[torch.Tensor]:
    """Squares of 256 pixels in a `.tbl` file, which it maps into memory."""
    import torch
    from turboloader.tbl import TblRawImageLoader, preprocess_to_tbl

    def write(path: Path) -> None:
        preprocess_to_tbl(str(tar(job)), str(path), image_size=256)

    path = job.derived("-raw256.tbl", write)
    loader = TblRawImageLoader(
        str(path),
        batch_size=job.batch_size,
        image_size=SIZE,
        shuffle=job.shuffle,
        train_aug=job.recipe == "train",
        hflip_prob=0.5 if job.recipe == "train" else 0.0,
        drop_last=job.shuffle,
        prefetch_batches=1,  # its ring of reused buffers needs CUDA here
    )
    for epoch in job.epochs():
        loader.set_epoch(epoch)
        for images, _meta in loader:
            yield torch.from_numpy(images)


def batches(job: Job) -> Iterator[torch.Tensor]:
    import torch
    import turboloader

    if job.recipe == "eval":
        raise Unsupported("its fused path knows neither a resize that keeps the shape nor a centre crop")
    if job.recipe == "randaugment":
        yield from _augmented(job)
        return
    if job.variant == "raw":
        yield from _raw(job)
        return
    files = job.files()
    classes = sorted({file.parent.name for file in files})
    labels = torch.tensor([classes.index(file.parent.name) for file in files])
    loader = turboloader.DataLoader(
        str(tar(job)),
        batch_size=job.batch_size,
        num_workers=job.cores,
        image_size=SIZE,
        output_format="pytorch",
        transform=turboloader.ImageNetNormalize(),
        shuffle=job.shuffle,
        train_aug=job.recipe == "train",
        antialias=job.variant != "noaa",
        drop_last=job.shuffle,
        pin_memory=True,
        prefetch_batches=1,  # one batch ahead keeps the threads busy; a larger ring only uses more cache
    )
    for epoch in job.epochs():
        loader.set_epoch(epoch)
        for images, meta in loader:
            labels[meta["indices"]]
            yield images


def _augmented(job: Job) -> Iterator[torch.Tensor]:
    import numpy as np
    import torch
    import turboloader as turbo

    steps = [turbo.Resize(SIZE, SIZE), turbo.RandomHorizontalFlip(0.5), turbo.RandAugment(num_ops=2, magnitude=9)]
    transform = turbo.Compose([*steps, turbo.ImageNetNormalize()])
    loader = turbo.DataLoader(
        str(tar(job)), job.batch_size, job.cores, shuffle=True, transform=transform, drop_last=True
    )
    for epoch in job.epochs():
        loader.set_epoch(epoch)
        for samples in loader:
            yield torch.from_numpy(np.stack([sample["image"] for sample in samples])).permute(0, 3, 1, 2)


if __name__ == "__main__":
    modules = ["turboloader", "torch"]
    recipes = (*RECIPES, "randaugment")
    run("turboloader", modules=modules, packages=["turboloader"], batches=batches, prepare=tar, recipes=recipes)

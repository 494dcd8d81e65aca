"""NVIDIA DALI, a CPU-only pipeline: crop decoding, antialiased resize, crop_mirror_normalize."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.contenders._common import MEAN, POLICIES, RECIPES, SHORTER_SIDE, SIZE, STD, Job, run

if TYPE_CHECKING:
    import torch


def _graph(job: Job) -> tuple[Any, Any]:
    """The operators. EXIF orientation is ignored, as by torchvision's ImageFolder."""
    from nvidia.dali import fn, types

    files = [str(path) for path in job.files()]
    classes = {name: k for k, name in enumerate(sorted({path.parent.name for path in job.files()}))}
    encoded, labels = fn.readers.file(
        files=files,
        labels=[classes[path.parent.name] for path in job.files()],
        shuffle_after_epoch=job.shuffle,  # a whole new order every epoch, and no buffer to fill first
        dont_use_mmap=True,  # small files: mapping and its page faults cost more than a copy
        prefetch_queue_depth=2,
        name="reader",
    )
    if job.shuffle:
        images = fn.decoders.image_random_crop(encoded, output_type=types.RGB, adjust_orientation=False)
        images = fn.resize(images, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=True)
        mirror = fn.random.coin_flip(probability=0.5)
        images = _augmented(job.recipe, images)
    else:
        images = fn.decoders.image(encoded, output_type=types.RGB, adjust_orientation=False)
        size: dict[str, Any] = {"resize_shorter": SHORTER_SIDE} if job.recipe == "eval" else {"size": (SIZE, SIZE)}
        images = fn.resize(images, interp_type=types.INTERP_LINEAR, antialias=True, **size)
        mirror = 0
    images = fn.crop_mirror_normalize(
        images,
        crop=(SIZE, SIZE),
        mirror=mirror,
        mean=[255 * m for m in MEAN],
        std=[255 * s for s in STD],
        dtype=types.FLOAT,
        output_layout="CHW",
    )
    return images, labels


def _augmented(recipe: str, images: Any) -> Any:
    """DALI's policies, with torchvision's number of magnitudes, filter, fill and share of a move."""
    from nvidia.dali import types
    from nvidia.dali.auto_aug import rand_augment, trivial_augment

    same: dict[str, Any] = {"num_magnitude_bins": 31, "fill_value": 0, "interp_type": types.INTERP_NN}
    if recipe == "randaugment":
        moves = {"shape": (SIZE, SIZE), "max_translate_rel": 150 / 331}
        return rand_augment.rand_augment(images, n=2, m=9, monotonic_mag=False, **moves, **same)
    if recipe == "trivialaugment":
        return trivial_augment.trivial_augment_wide(images, max_translate_abs=32, **same)
    return images


def batches(job: Job) -> Iterator[torch.Tensor]:
    from nvidia.dali import pipeline_def
    from nvidia.dali.plugin.base_iterator import LastBatchPolicy
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    @pipeline_def(
        batch_size=job.batch_size,
        num_threads=job.cores,
        device_id=None,
        seed=0,
        prefetch_queue_depth=2,
        exec_dynamic=True,  # hands its own memory to torch, without a copy
        enable_conditionals=job.recipe in POLICIES,  # its policies branch by sample
    )
    def graph() -> tuple[Any, Any]:
        return _graph(job)

    pipeline = graph()
    policy = LastBatchPolicy.DROP if job.shuffle else LastBatchPolicy.PARTIAL
    loader = DALIGenericIterator(
        [pipeline], ["images", "labels"], reader_name="reader", last_batch_policy=policy, auto_reset=True
    )
    for _ in job.epochs():
        for (batch,) in loader:
            yield batch["images"]


if __name__ == "__main__":
    for_cuda = "13"  # several packages have the same content; the CPU pipeline uses no CUDA
    run(
        "dali",
        modules=["nvidia.dali.plugin.pytorch"],
        packages=[f"nvidia-dali-cuda{for_cuda}0", f"nvidia-nvimgcodec-cu{for_cuda}"],
        batches=batches,
        recipes=(*RECIPES, *POLICIES),
    )

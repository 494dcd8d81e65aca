"""Ray Data on a local cluster, as its documentation writes it: image files, a map with torchvision, batches for torch.

`read_images` decodes with Pillow and puts whole images into the object store; the map makes torchvision's transforms of
them. `bytes`: `read_binary_files`, and the map decodes, so that the store holds the files instead. The files are
shuffled with a seed (`FileShuffleConfig`), and rows in a buffer with a seed (`local_shuffle_seed`). `ordered`: with
`preserve_order`, which the documentation names for repeatable orders.
"""

from __future__ import annotations

import io
from typing import Any

from bench.remote_peers.epochs import BATCH, SEED, Batches, Job, Missing, run

BUFFER = 4 * BATCH  # rows that are shuffled among one another


def measure(job: Job, reads: str, ordered: bool) -> dict[str, Any]:
    """Epochs of Ray Data with two CPUs; `reads`: "images" or "bytes"."""
    try:
        import ray.data
    except ImportError as error:
        raise Missing(f"Ray Data is not installed: {error}") from error

    numbers = {path: number for number, path in enumerate(job.paths)}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = ordered
        context.enable_progress_bars = False
        shuffle: Any = ray.data.FileShuffleConfig(seed=SEED)
        if reads == "images":
            source = ray.data.read_images(str(job.root), mode="RGB", include_paths=True, shuffle=shuffle)
        else:
            source = ray.data.read_binary_files(str(job.root), include_paths=True, shuffle=shuffle)
        made = source.map(_Made(numbers, reads))

        def epoch(number: int) -> Batches:
            options: dict[str, Any] = {"local_shuffle_buffer_size": BUFFER, "local_shuffle_seed": SEED + number}
            for batch in made.iter_torch_batches(batch_size=BATCH, **options):
                yield batch["image"].numpy(), batch["number"].numpy()

        return run(job, epoch) | {"version": ray.__version__}
    finally:
        ray.shutdown()


class _Made:
    """Makes a row of one: the finished image, and its file's number."""

    def __init__(self, numbers: dict[str, int], reads: str) -> None:
        self._numbers, self._reads = numbers, reads
        self._transform: Any = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        from PIL import Image

        if self._transform is None:
            import torch

            from bench.contenders._common import import_torchvision, torchvision_transform

            torch.set_num_threads(1)
            import_torchvision()
            self._transform = torchvision_transform("train")
        if self._reads == "images":
            image = Image.fromarray(row["image"])
        else:
            image = Image.open(io.BytesIO(row["bytes"])).convert("RGB")
        return {"image": self._transform(image).numpy(), "number": self._numbers[row["path"]]}

"""OpenCV and simplejpeg in a thread pool: a carefully written version of the usual hand-written loader.

libjpeg-turbo decodes the whole image; then crop, resize (INTER_AREA to shrink, plain bilinear to enlarge, as OpenCV
recommends), and numpy for the arithmetic. Variant `scaled` lets libjpeg-turbo decode at the smallest scale that leaves
the crop at least 224 wide and high: faster on large photographs, with other pixels. Batches use a ring of three
buffers, so a batch is overwritten three batches later.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.contenders._common import MEAN, SHORTER_SIDE, SIZE, STD, Job, run

if TYPE_CHECKING:
    import numpy as np
    import torch

RING = 3
# Large enough to hide Python's cost per task, small enough that two threads finish a batch at about the same time.
IMAGES_A_TASK = 4


def _random_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """torchvision's RandomResizedCrop distribution: x, y, width, height."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    return (width - w) // 2, (height - h) // 2, w, h


def _box(recipe: str, width: int, height: int) -> tuple[float, float, float, float]:
    if recipe == "train":
        return _random_crop(width, height)
    if recipe == "eval":  # Resize(256) + CenterCrop(224), seen from the source image
        side = min(width, height) * SIZE / SHORTER_SIDE
        return (width - side) / 2, (height - side) / 2, side, side
    return 0, 0, width, height


def _fill(task: list[tuple[Path, int]], job: Job, out: np.ndarray[Any, Any]) -> None:
    import cv2
    import numpy as np
    import simplejpeg

    scale = [np.float32(1 / (255 * s)) for s in STD]
    shift = [np.float32(-m / s) for m, s in zip(MEAN, STD, strict=True)]
    for path, slot in task:
        data = path.read_bytes()
        height, width = simplejpeg.decode_jpeg_header(data)[:2]
        x, y, w, h = _box(job.recipe, width, height)
        least = {}
        if job.variant == "scaled" and job.recipe != "pixels":
            least = {"min_width": math.ceil(width * SIZE / w), "min_height": math.ceil(height * SIZE / h)}
        image = simplejpeg.decode_jpeg(data, colorspace="RGB", strict=False, **least)
        fx, fy = image.shape[1] / width, image.shape[0] / height
        left, right, top, bottom = round(x * fx), round((x + w) * fx), round(y * fy), round((y + h) * fy)
        crop = image[top:bottom, left:right]
        shrinks = crop.shape[0] * crop.shape[1] > SIZE * SIZE
        crop = cv2.resize(crop, (SIZE, SIZE), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        if job.recipe == "train" and random.random() < 0.5:
            crop = crop[:, ::-1]
        for channel in range(3):
            np.multiply(crop[..., channel], scale[channel], out=out[slot, channel])
            out[slot, channel] += shift[channel]


def batches(job: Job) -> Iterator[torch.Tensor]:
    import cv2
    import torch

    cv2.setNumThreads(0)  # parallel over images, never within one
    files = job.files()
    ring = [torch.empty(job.batch_size, 3, SIZE, SIZE) for _ in range(RING)]
    pool = ThreadPoolExecutor(job.cores)

    def orders() -> Iterator[list[Path]]:
        for _ in job.epochs():
            order = random.sample(files, len(files)) if job.shuffle else files
            end = len(order) - len(order) % job.batch_size if job.shuffle else len(order)
            yield from (order[k : k + job.batch_size] for k in range(0, end, job.batch_size))

    def open_batch(k: int, paths: list[Path]) -> tuple[list[Future[None]], torch.Tensor]:
        images = ring[k % RING][: len(paths)]
        work = list(zip(paths, range(len(paths)), strict=True))
        tasks = [work[i : i + IMAGES_A_TASK] for i in range(0, len(work), IMAGES_A_TASK)]
        return [pool.submit(_fill, task, job, images.numpy()) for task in tasks], images

    def finish(pending: tuple[list[Future[None]], torch.Tensor]) -> torch.Tensor:
        for future in pending[0]:
            future.result()
        return pending[1]

    try:
        ahead: list[tuple[list[Future[None]], torch.Tensor]] = []
        for k, paths in enumerate(orders()):
            ahead.append(open_batch(k, paths))
            if len(ahead) == RING - 1:
                yield finish(ahead.pop(0))
        yield from map(finish, ahead)
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    packages = ["opencv-python-headless", "simplejpeg", "numpy"]
    run("opencv", modules=["cv2", "simplejpeg", "torch"], packages=packages, batches=batches)

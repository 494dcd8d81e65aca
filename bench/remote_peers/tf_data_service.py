"""tf.data service: a dispatcher and its workers in processes of their own, TensorFlow's own image operations.

Its pixels are not torchvision's: TensorFlow's crop is drawn and resized by its own rules (bilinear, no antialiasing).
Draws are stateless, of the seed, the epoch and the file's number, as TensorFlow's tutorials do for results that can
be repeated. `ShardingPolicy.DYNAMIC` hands each split to one worker. Splits are 64 files of the shuffled epoch, since
splits of one file halve the speed.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from bench.remote_peers.epochs import BATCH, MEAN, SEED, SIZE, STD, Batches, Job, Missing, run

DISPATCHER = """
import time
import tensorflow as tf
server = tf.data.experimental.service.DispatchServer()
print(server.target, flush=True)
time.sleep(1e6)
"""
WORKER = """
import time
import tensorflow as tf
service = tf.data.experimental.service
server = service.WorkerServer(service.WorkerConfig(dispatcher_address="{dispatcher}"))
print("ready", flush=True)
time.sleep(1e6)
"""


@contextmanager
def process(code: str) -> Iterator[str]:
    """What a process prints as its first line."""
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **options) as made:
        try:
            assert made.stdout is not None
            yield made.stdout.readline().strip()
        finally:
            made.kill()


def measure(job: Job, workers: int) -> dict[str, Any]:
    """Epochs of a dataset that workers of one process each make."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    try:
        import tensorflow as tf
    except ImportError as error:
        raise Missing(f"TensorFlow is not installed: {error}") from error

    service = tf.data.experimental.service
    paths = job.paths

    def make(epoch: Any, number: Any) -> tuple[Any, Any]:
        seed = tf.stack([epoch, number])
        data = tf.io.read_file(tf.gather(paths, number))
        window = tf.image.stateless_sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(data),
            tf.zeros([1, 0, 4]),
            seed=seed,
            aspect_ratio_range=[3 / 4, 4 / 3],
            area_range=[0.08, 1.0],
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        box = tf.concat([window[0][:2], window[1][:2]], axis=0)
        image = tf.image.decode_and_crop_jpeg(data, box, channels=3)
        image = tf.image.stateless_random_flip_left_right(tf.image.resize(image, [SIZE, SIZE]), seed)
        return (image / 255.0 - MEAN) / STD, number

    with ExitStack() as stack:
        target = stack.enter_context(process(DISPATCHER))
        for _ in range(workers):
            stack.enter_context(process(WORKER.format(dispatcher=target.partition("://")[2])))

        def epoch(number: int) -> Batches:
            order = np.random.default_rng(SEED + number).permutation(len(paths))
            ends = range(BATCH, len(paths), BATCH)
            splits = tf.ragged.constant([part.tolist() for part in np.split(order, ends)], tf.int64)
            made = tf.data.Dataset.from_tensor_slices(splits).flat_map(tf.data.Dataset.from_tensor_slices)
            seeded = functools.partial(make, tf.constant(SEED + number, tf.int64))
            made = made.map(seeded, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
            made = made.apply(service.distribute(service.ShardingPolicy.DYNAMIC, target)).prefetch(tf.data.AUTOTUNE)
            yield from made.as_numpy_iterator()

        return run(job, epoch) | {"version": tf.__version__}

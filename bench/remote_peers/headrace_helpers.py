"""headrace: a loader alone, and with helpers in other processes on the same cores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from bench.remote_peers.epochs import BATCH, MEAN, SEED, STD, Batches, Job, run


@contextmanager
def helper(threads: int) -> Iterator[str]:
    """The address of a `headrace serve`, which the loader sends the files."""
    command = [sys.executable, "-m", "headrace", "serve", "--port", "0", "--threads", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


def measure(job: Job, helpers: int, threads: int) -> dict[str, Any]:
    """Epochs of a loader with `threads` native threads, and helpers with one thread each."""
    import headrace
    from headrace import transforms as T

    paths = job.paths
    steps = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
    dataset = headrace.ImageFiles(paths, list(range(len(paths))), T.Compose(steps))
    with ExitStack() as stack:
        addresses = [stack.enter_context(helper(1)) for _ in range(helpers)]
        options: dict[str, Any] = {"shuffle": True, "num_workers": threads, "prefetch_factor": 6, "seed": SEED}
        loader = headrace.DataLoader(dataset, BATCH, helpers=addresses or None, persistent_workers=True, **options)
        stack.callback(loader.close)
        shares: list[float] = []

        def epoch(number: int) -> Batches:
            loader.set_epoch(number)
            for images, labels in loader:
                yield images.numpy(), labels.numpy()
            shares.append(sum(one.samples for one in loader.stats().helpers.values()) / len(paths))

        found = run(job, epoch)
    return found | {"made_by_helpers": sum(shares[1:]) / len(shares[1:])}

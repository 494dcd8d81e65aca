"""Runs numbered jobs as tasks of a Ray cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType

from headrace._cli.pack.job_processes import Work

_TRIES = 4  # of a job whose worker or machine dies


def run_with_ray(work: Work, jobs: Sequence[int], progress: Callable[[int], None]) -> None:
    """Does all jobs as Ray tasks of one core each.

    Ray starts on this machine, unless the process has started it or RAY_ADDRESS names a cluster. All machines have
    headrace installed, and see the source and the destination under the same paths.

    Args:
        work: does a job; it may be begun again on another machine.
        jobs: their numbers.
        progress: called with the number of samples of each finished job.

    Raises:
        ImportError: Ray is not installed.
        Exception: what `work` raised first; the other tasks are cancelled.
        RuntimeError: a task's worker died again and again.
    """
    ray = _import_ray()
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")

    def task(work: Work, job: int) -> int:
        samples = 0

        def tick() -> None:
            nonlocal samples
            samples += 1

        work(job, tick)
        return samples

    remote, sent = ray.remote(num_cpus=1, max_retries=_TRIES - 1)(task), ray.put(work)
    waiting = [remote.remote(sent, job) for job in jobs]
    try:
        while waiting:
            finished, waiting = ray.wait(waiting)
            progress(sum(ray.get(finished)))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray gave up a shard: {str(error).splitlines()[0]}") from error
    finally:
        for one in waiting:
            ray.cancel(one)  # what it leaves unfinished the next run removes


def _import_ray() -> ModuleType:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("--engine ray needs Ray, which is not installed: pip install ray") from error

"""Who makes the values of deferred tensors that torch's workers collate: they themselves, or the main process."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._base.cores import usable_cores
from headrace._engine.destination import Destination
from headrace._loading.autotune.budget import cores_of_rank
from headrace._loading.bottleneck.model import making_threads
from headrace._loading.records.record_batch import RecordedBatch, group_by_files

#: Batches in which a worker finds out whether records pay for its samples.
_TRIED = 4
#: Decodes of a file: a worker decodes it once, the main process once for each of several samples.
_MOST_DECODES = 1.5


@dataclass(frozen=True)
class Makers:
    """Who makes the values.

    Attributes:
        threads: of the main process; 0: the thread that asks for the batch. None: where the dataset runs.
        why: where the dataset runs, because of this; a clause.
        why_no_helpers: why no other machine makes a part of them; "": those that the loader has do.
    """

    threads: int | None
    why: str = ""
    why_no_helpers: str = ""


def find_makers(
    workers: int,
    destination: Destination,
    *,
    is_given: bool,
    collates: bool,
    helped: bool = False,
    tolerates: bool = False,
) -> Makers:
    """Returns who makes the values of a loader that defers tensors, if its workers begin now.

    Args:
        workers: their number.
        destination: where the batches go.
        is_given: whether the program has given the number. A loader that chooses it takes as many as keep the cores
            busy, which is as fast, and counts on what each of them does.
        collates: whether the program collates samples by a function of its own, which gets values.
        helped: whether the loader has helpers.
        tolerates: whether samples that fail are left out or replaced, for which their values are made one by one.
    """
    if destination.way != "memory":
        if tolerates:
            why = "on_error has the values of each sample made in the workers"
            return Makers(0, why, why)
        return Makers(min(workers, usable_cores()), why_no_helpers="batches are made on a device")
    if not workers:
        why = "num_workers=0 makes each batch in the caller's thread"
        return Makers(None, why, why)
    if tolerates:
        why = "on_error has the values of each sample made there"
        return Makers(None, why, why)
    if collates:
        why = "collate_fn is the program's"
        return Makers(None, why, why)
    if helped:
        return Makers(min(workers, usable_cores()))
    if not is_given:
        return Makers(None, "the loader chooses as many workers as keep the cores busy")
    cores, words = cores_of_rank()
    threads = making_threads(workers, cores)
    if threads:
        return Makers(threads)
    many = "1 worker leaves" if workers == 1 else f"{workers} workers leave"
    return Makers(None, f"{many} too few cores idle ({words})")


class RecordTrial:
    """Finds out in a worker's first batches whether records pay, where batches stay in this machine's memory. Where
    they do not, a worker that makes all values itself is faster: it does so in the batch's own memory."""

    def __init__(self) -> None:
        self._left = _TRIED

    def find_objection(self, batch: object) -> str:
        """Called with one batch after another; returns why no more records are to be made, as a clause; "" if they
        are."""
        if not self._left:
            return ""
        if not isinstance(batch, RecordedBatch):
            self._left -= 1
            return "" if self._left else "records of them cannot be made"
        self._left = 0
        decodes = sum(len(first.images) for first, *_ in group_by_files(batch.records))
        files = {image.begin for one in batch.records for image in one.images}
        return "several samples are made of each file" if decodes > _MOST_DECODES * len(files) else ""

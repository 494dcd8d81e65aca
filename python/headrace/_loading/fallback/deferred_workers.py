"""Opens images deferred while torch makes batches, and counts them: in worker processes, or here during a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from PIL import Image
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import collate_tensor_fn, default_collate_fn_map
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from headrace._base.native import core
from headrace._base.types import Function
from headrace._loading.doors.opened_doors import add_doors
from headrace._loading.doors.tensors import joined_tensors
from headrace._loading.doors.tensors.deferred_tensor import has_deferred_in, make_reachable, make_samples
from headrace._loading.doors.tensors.joined_tensors import stack
from headrace._loading.doors.videos.torchcodec_videos import has_pyav
from headrace._loading.fallback import worker_wrappers
from headrace._loading.fallback.shared_memory.blocks import LEAST, Leaf, SharedBlocks, is_possible, leaves, make_flags
from headrace._loading.fallback.shared_memory.returned_blocks import BlocksInUse, Received, blocks_of
from headrace._loading.fallback.shared_memory.small_tensors import SmallTensors, make_slots
from headrace._loading.fallback.worker_wrappers import Carried
from headrace._loading.mixup.mixes_in_workers import make_replacements
from headrace._loading.records.record_batch import RecordBatch, RecordedBatch
from headrace._loading.records.record_collation import RecordCollation
from headrace._loading.records.record_makers import RecordTrial
from headrace._storage.entry_points.shared_table import SharedTable
from headrace._storage.video_indexes.shared_indexes import SharedIndexes
from headrace.pillow.deferred_image import is_recorded
from headrace.pillow.memory import pixel_memory, sole_tensors
from headrace.pillow.memory.batch_memory import SamplePlaces
from headrace.pillow.memory.surviving_images import files
from headrace.pillow.open_patch import deferred_here, has_deferred, import_steps, install_for, replace_imported
from headrace.pillow.recording.image_counts import ImageCounts, in_force

T = TypeVar("T")
#: Bytes of the files of a batch that has records: their values are not made, so all are kept until it is collated.
_KEPT_FOR_RECORDS = 1 << 28


@dataclass(frozen=True)
class CountedBatch:
    """A batch of a worker process, with the counts of the images since its last batch.

    Attributes:
        sent: the blocks of shared memory in it; see `SharedBlocks.finish`.
        used: the same as received, if `batch` is a copy.
    """

    batch: object
    counts: ImageCounts
    worker: int
    sent: list[tuple[int, int]]
    used: list[Received] | None = None

    def pin_memory(self) -> CountedBatch:
        """Pins the batch as torch does; called by torch."""
        from torch.utils.data._utils.pin_memory import pin_memory

        used = blocks_of(self.batch, self.worker, self.sent)
        return replace(self, batch=pin_memory(self.batch), used=used)  # type: ignore[no-untyped-call]


class InWorkers:
    """Opens images deferred in worker processes.

    Args:
        workers: number of the processes.
        ahead: number of a worker's batches that are on their way at the same time.
        entry_points: where the rows of JPEGs begin, shared by the workers; None: nothing is learned.
        indexes: of videos, shared by the workers; None: they are not.
        records: makes records of the deferred tensors that torch's function of the loader returns; None: none are made.
        trial: finds out whether these pay; None: they are made in any case.
    """

    def __init__(
        self,
        collate_fn: Function,
        init_fn: Callable[[int], object] | None,
        *,
        workers: int,
        ahead: int,
        entry_points: core.EntryPoints | None = None,
        indexes: SharedIndexes | None = None,
        records: type[RecordCollation] | None = None,
        trial: RecordTrial | None = None,
    ) -> None:
        import_steps()
        add_doors()
        self._counts = ImageCounts(keeps_records=records is not None)
        self._recording, self._trial, self._objection = records, trial, ""
        self._records: RecordCollation | None = None
        self._table, self._indexes = SharedTable(entry_points), indexes
        if indexes is not None and has_pyav():
            indexes.prepare_memory()
        self._worker, self._ahead = 0, ahead
        self._samples = 0  # that are collated
        self._flags = make_flags(workers) if is_possible() else None
        self._slots = make_slots(workers, ahead) if is_possible() else None
        self._blocks: SharedBlocks | None = None
        self._small: SmallTensors | None = None
        self._is_default = collate_fn is default_collate
        self._places: SamplePlaces | None = None
        self._collate_fn, self._init_fn = collate_fn, init_fn

    # Kept, these two would refer to what keeps them.

    @property
    def start(self) -> Callable[[int], object]:
        """Replaces worker_init_fn."""
        init_fn = self._init_fn
        return self._prepare_worker if init_fn is None else core.Composed(self._prepare_worker, init_fn)

    @property
    def collate(self) -> Callable[[object], object]:
        """Replaces collate_fn; returns a `CountedBatch`, or the batch itself if there is nothing to say of it.

        Tracebacks of errors in the user's functions are torch's.
        """
        return core.Composed(core.Composed(self._begin_batch, self._collate_fn), self._finish_batch)

    def watch_blocks(self) -> BlocksInUse | None:
        """Returns the main process's side of the workers' blocks."""
        if self._slots is not None:
            self._slots.serve()
        return None if self._flags is None else BlocksInUse(self._flags, self._slots)

    def _prepare_worker(self, worker: int) -> int:
        self._worker = worker
        self._counts.entry_points, self._counts.indexes = self._table.native, self._indexes
        add_doors()  # a process that is spawned has none
        install_for(self._counts)
        if self._flags is not None:
            self._blocks = SharedBlocks(self._flags, worker, self._ahead)
            small = None if self._slots is None else SmallTensors(self._slots, worker)
            self._small = small if small is not None and small.install() else None
            self._blocks.install(small=self._small is not None)
            joined_tensors.joined_memory.allocate = self._blocks.empty
            make_replacements(self._blocks.empty_like).replace()
            if not self._counts.keeps_records:
                self._use_places(self._blocks)
        if self._recording is not None:
            files.least = _KEPT_FOR_RECORDS
            allocate = None if self._blocks is None else self._blocks.empty
            self._records = self._recording(self._counts, allocate, (worker_wrappers.__name__,))
        return worker

    def _use_places(self, blocks: SharedBlocks) -> None:
        """From now on values are made at their samples' places in a batch, where that is possible."""
        if self._is_default and sole_tensors.is_possible():
            places = SamplePlaces(blocks.take_unused, LEAST)
            pixel_memory.use_again(places)
            self._places = places
            made = _MapDatasetFetcher([0], True, self.collate, False).fetch([0])  # type: ignore[no-untyped-call] # a list that nothing else refers to
            if isinstance(made, CountedBatch):
                self._counts.add(made.counts)

    def _stop_recording(self) -> None:
        """From now on this worker makes all values."""
        self._records, self._objection = None, ""
        files.least = 0
        if self._blocks is not None:
            self._use_places(self._blocks)

    def _begin_batch(self, data: object) -> object:
        if self._objection:
            self._stop_recording()
        pixel_memory.next_batch()
        replace_imported()
        if self._small is not None and not self._is_default:
            self._small.begin(data)
        function = default_collate_fn_map.get(torch.Tensor)
        is_torchs = function in (collate_tensor_fn, self._collate_tensors)  # ours if the last batch raised an error
        if self._records is not None:
            self._records.begin(data)
        elif self._is_default and (self._blocks is None or not is_torchs):
            make_samples(data)
        if self._places is not None:
            self._samples = len(data) if isinstance(data, list) else 0
            self._places.begin(data, sys.getrefcount(data))
        if (
            self._blocks is not None
            and self._records is None
            and is_torchs
            and (has_deferred_in(data) or self._has_places())
        ):
            default_collate_fn_map[torch.Tensor] = self._collate_tensors
        return data if self._blocks is None else self._blocks.begin(data)

    def _looks_at(self, data: object) -> bool:
        """Whether some samples have no values yet, or are in their places; else errors have torch's traceback."""
        return has_deferred_in(data) or self._has_places()

    def _has_places(self) -> bool:
        return self._places is not None and self._places.are_used()

    def _collate_tensors(self, tensors: Sequence[object], *, collate_fn_map: Any = None) -> object:
        """What `default_collate` calls for tensors, also in a `collate_fn` of the program: makes deferred ones at their
        places in the batch."""
        joined = stack(tensors)
        if joined is not None:
            return joined
        if self._places is not None and self._blocks is not None and self._has_places():
            batch = self._places.batch_of(tensors)
            if batch is not None and self._blocks.note_collated_batch(batch):
                return batch
        make_samples(tensors)
        return collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)

    def _finish_batch(self, batch: object) -> object:
        if self._records is not None:
            batch = self._finish_records(self._records, batch, self._worker)
            if self._trial is not None and (objection := self._trial.find_objection(batch)):
                self._objection, self._counts.keeps_records = objection, False
                self._counts.fields = dict.fromkeys(self._counts.fields, f"in the worker, because {objection}")
        elif default_collate_fn_map.get(torch.Tensor) == self._collate_tensors:
            default_collate_fn_map[torch.Tensor] = collate_tensor_fn
        found = self._make_leaves(batch)
        if self._places is not None:
            self._places.finish(self._samples)
        sent = [] if self._blocks is None else self._blocks.finish(found)
        if self._small is not None:
            del found  # which refers to the batch's tensors
            self._small.prepare(batch, sys.getrefcount(batch))
        if not sent and not self._counts.any:
            return batch
        return CountedBatch(batch, self._counts.take(), self._worker, sent)

    @staticmethod
    def _finish_records(records: RecordCollation, batch: object, worker: int) -> object:
        made = records.finish(batch.batch if isinstance(batch, Carried) else batch)
        if not isinstance(made, RecordedBatch):
            return batch
        made.worker = worker
        return replace(made, batch=replace(batch, batch=made.batch)) if isinstance(batch, Carried) else made

    def _make_leaves(self, batch: object) -> list[Leaf]:
        """Makes the pixels of a batch's images, and returns its leaves."""
        make_reachable(batch, _records_in(batch))
        found = list(leaves(batch))
        _make_pixels(found)
        files.end_batch(self._counts, samples_are_gone=False)  # torch's fetcher still refers to them
        return found


class AloneInWorkers(InWorkers):
    """Opens images deferred in the worker processes of a loader whose main process is not ours: batches come without
    counts, and in torch's memory."""

    def __init__(
        self,
        collate_fn: Function,
        init_fn: Callable[[int], object] | None,
        *,
        workers: int,
        entry_points: core.EntryPoints | None = None,
        indexes: SharedIndexes | None = None,
    ) -> None:
        super().__init__(collate_fn, init_fn, workers=workers, ahead=0, entry_points=entry_points, indexes=indexes)
        self._flags = self._slots = None

    def _finish_batch(self, batch: object) -> object:
        self._make_leaves(batch)
        return batch


class DeferringCalls:
    """Calls in this process that make the batches of an epoch, with images deferred.

    Functions are replaced for each call: a quarter of what a batch of small arrays takes. So while no image has been
    opened, only some of the calls look for one.

    Args:
        counts: counts the images.
        samples_are_gone: see `call_deferring`.
    """

    def __init__(self, counts: ImageCounts, *, samples_are_gone: bool) -> None:
        self._counts, self._samples_are_gone = counts, samples_are_gone
        self._calls, self._has_images, self._looks = 0, False, True

    def rests(self) -> bool:
        """Counts a call, and returns whether its batch may be made without `call`."""
        self._calls += 1
        self._looks = self._has_images or self._calls <= _FIRST_CALLS or not self._calls % _CALLS_PER_LOOK
        return not self._looks and not has_deferred()

    def call(self, make: Callable[[], T]) -> T:
        """Returns the result of `make`, after `rests` has returned False."""
        if not self._looks:
            made = make()
            _finish_batch(made, self._counts, self._samples_are_gone)  # the program may have kept deferred images
            return made
        asked = in_force.asked
        made = call_deferring(make, self._counts, samples_are_gone=self._samples_are_gone)
        self._has_images = self._has_images or in_force.asked != asked
        return made


_FIRST_CALLS = 4  # that look for images
_CALLS_PER_LOOK = 16  # later


def call_deferring(make: Callable[[], T], counts: ImageCounts, *, samples_are_gone: bool) -> T:
    """Returns the result of `make`; images that it opens are deferred and counted.

    Args:
        make: makes a batch.
        counts: counts the images.
        samples_are_gone: whether nothing but the program and the batch keeps images once it is made.
    """
    add_doors()
    with deferred_here(counts):
        made = make()
    _finish_batch(made, counts, samples_are_gone)
    return made


def _records_in(batch: object) -> list[RecordBatch]:
    """Returns the records of a batch, also of one that carries a state: thousands of objects without tensors."""
    batch = batch.batch if isinstance(batch, Carried) else batch
    return batch.records if isinstance(batch, RecordedBatch) else []


def _finish_batch(made: object, counts: ImageCounts, samples_are_gone: bool) -> None:
    if has_deferred():
        make_reachable(made, _records_in(made))
        _make_pixels(leaves(made))
        files.end_batch(counts, samples_are_gone)


def make_values(sample: object) -> None:
    """Makes the values of the deferred tensors and images in a sample, so that errors are raised here."""
    make_reachable(sample)
    _make_pixels(leaves(sample))


def _make_pixels(found: Iterable[Leaf]) -> None:
    """Makes the pixels of the images in a batch: its consumer does not expect to wait for them."""
    for one in found:
        # An image that was only opened has no pixels with Pillow, either.
        if isinstance(one, Image.Image) and is_recorded(one):
            one.im  # noqa: B018

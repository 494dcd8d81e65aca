"""Makes single batches as torch's loader does, where native threads cannot make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
from PIL import Image
from torch.utils.data import default_collate, default_convert
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data._utils.pin_memory import pin_memory

from headrace._base.originals.relied_functions import Relied
from headrace._base.ranks import World
from headrace._base.types import Function
from headrace._loading.collate import collate_registry
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.epoch.order import OrderedBatch
from headrace._loading.epoch.sampler_items import Naming
from headrace._recipe.draws.draws import BatchUse, batch_uniform
from headrace._recipe.draws.python_randomness import sample_randomness
from headrace.datasets.sources import BlobDataset
from headrace.datasets.sources.transform_snapshot import Snapshot
from headrace.datasets.tar_stream.loader_hooks import is_stream

Holds = Callable[[OrderedBatch], bool]


class Settings(Protocol):
    """The part of a loader's settings that decides how torch would make a batch."""

    @property
    def dataset(self) -> Any: ...

    @property
    def batched(self) -> bool: ...

    @property
    def collate_fn(self) -> Function | None: ...

    @property
    def num_workers(self) -> int: ...

    @property
    def seed(self) -> int | None: ...

    @property
    def native_arguments(self) -> tuple[str, ...]: ...

    @property
    def world(self) -> World: ...


def naming_of(settings: Settings) -> Naming:
    """Returns how an epoch reads its sampler's items. A batch can be made as torch makes it if no argument asks for
    what torch does not do."""
    others = not settings.native_arguments and settings.world.size == 1 and not is_stream(settings.dataset)
    return Naming(not settings.batched, others, others and settings.num_workers == 0)


def holds_of(
    settings: Settings, source: Any, naming: Naming, relied: Relied | None, called: Sequence[object] = ()
) -> Holds | None:
    """Returns a function that tells whether the dataset still has the samples of a batch as they were when the epoch
    began; None where that is not asked, because torch's workers do not see a change either.

    Args:
        relied: the libraries' functions that a native batch stands for.
        called: objects that are called in Python, whose attributes may change by their calls.
    """
    if not naming.live:
        return None
    length, before, most_pixels = len(source), _transforms_of(source), Image.MAX_IMAGE_PIXELS
    snapshot = Snapshot(before, called)

    def holds(ordered: OrderedBatch) -> bool:
        if ordered.from_end and not (len(source) == length and source.is_current()):
            return False
        now = _transforms_of(source)
        same = len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))
        same = same and snapshot.is_current() and most_pixels == Image.MAX_IMAGE_PIXELS
        same = same and (relied is None or relied.why_not() is None)
        return same and collate_registry.is_usual() and bool(source.holds(ordered.indices.tolist()))

    return holds


def _transforms_of(source: object) -> Sequence[object]:
    images = [source] if isinstance(source, BlobDataset) else [one.image for one in getattr(source, "fields", ())]
    return [one.transform for image in images if image is not None for one in image.variants]


def made_as_torch(settings: Settings, progress: Progress, ordered: OrderedBatch, number: int, *, pin: bool) -> object:
    """Returns what torch's loader makes of the items of a batch.

    Args:
        number: the batch's number among those of `progress`.
        pin: whether it goes into pinned memory.

    Raises:
        IndexError: an index is out of range.
        Exception: what the dataset or the collate_fn raises.
    """
    collate = settings.collate_fn or (default_collate if settings.batched else default_convert)
    fetcher: Any = _MapDatasetFetcher(settings.dataset, settings.batched, collate, False)
    uniform = None
    if settings.seed is not None:
        uniform = batch_uniform(progress.seed, progress.epoch, progress.number(number), BatchUse.COLLATE)
    try:
        with nullcontext() if uniform is None else sample_randomness(uniform, process_wide=True):
            batch = fetcher.fetch(ordered.asked)
    except IndexError as error:
        raise _explain_index_error(error, settings, ordered.asked) from error
    if ordered.beyond:  # the dataset has grown; torch's workers have it as it was
        raise IndexError(ordered.beyond)
    return pin_memory(batch) if pin else batch  # type: ignore[no-untyped-call]


def _explain_index_error(error: IndexError, settings: Settings, asked: Any) -> IndexError:
    """Returns an error that names the index and the dataset's length, if the index is beyond it; otherwise the error
    itself."""
    try:
        length = len(settings.dataset)
        named = [int(one) for one in (asked if settings.batched else [asked]) if isinstance(one, (int, np.integer))]
        bad = next(one for one in named if not -length <= one < length)
    except Exception:
        return error
    return IndexError(f"the sampler named index {bad}, out of range for a dataset of {length} samples")

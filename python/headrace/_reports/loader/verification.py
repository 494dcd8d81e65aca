"""Verifies a loader: makes the same samples from the same draws with Pillow and torch, and compares the batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, default_collate

from headrace._base.errors import VerificationError
from headrace._base.types import Array
from headrace._engine.device_engine import move_tensors
from headrace._engine.engine import Engine
from headrace._loading.collate import collate_call
from headrace._loading.collate.collate_call import CollateFunction
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.epoch.order import OrderedBatch
from headrace._loading.native.iterator import NativeIterator
from headrace._loading.native.settings import Settings
from headrace._loading.routes.image_route import ImageRoute
from headrace._loading.routes.route import NativeRoute
from headrace._oracle.reference import ReferenceDataset, reference_sample, try_samples
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.part_kinds import as_kinds
from headrace._recipe.steps.recipe import Recipe
from headrace._reports.loader.notebook_views import NotebookView
from headrace._storage.remote.announcements import Announced
from headrace.datasets.sources import BlobDataset, checked_table

_Key = TypeVar("_Key")


class FaultTolerantReference(ReferenceDataset):
    """The oracle with `on_error`; see `try_samples`."""

    on_error = "raise"
    kinds: Any = None  # classes of the images' tensors; None: plain ones

    def __getitem__(self, key: tuple[int, int]) -> object:
        row = self.draws_of(*key)

        def make(index: int) -> tuple[int, Any]:
            return index, self.made_of(index, row)

        made = try_samples(make, key[0], len(self.source), self.on_error)
        if made is None:
            return None
        index, image = made
        return self._as_kind((image, self.source.target(index)) if self.source.has_targets else image)

    def made_of(self, index: int, draws_row: Array) -> Any:
        """Returns a sample without its target, made from the given draws."""
        return reference_sample(self.source.image(index), self.recipe, draws_row)

    def _as_kind(self, sample: Any) -> object:
        if self.kinds is None:
            return sample
        if self.source.has_targets:
            return as_kinds(sample[0], self.kinds), sample[1]
        return as_kinds(sample, self.kinds)


def _drop_missing(samples: list[object]) -> list[object] | None:
    return [sample for sample in samples if sample is not None] or None


def collate_made(samples: list[object]) -> object:
    """Returns ``default_collate`` of the samples that are not None; None if all are."""
    made = _drop_missing(samples)
    return made and default_collate(made)


def _keep_sample(sample: object) -> object:
    return sample


class ReferenceLoader(TorchDataLoader[Any]):
    """A torch DataLoader over the oracle; batches whose samples all failed are skipped.

    Its own workers, if any, do not call a collate_fn of the user's, whose random numbers depend on the batch's number.
    """

    collated: Callable[[object, int], object] | None = None  # takes a batch's samples and its position in the epoch
    out_transform: Callable[[object, int], object] | None = None  # takes a batch and its number in the epoch
    progress: Progress | None = None  # progress of the epoch, before its first batch

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        # Not a generator function: it would end with the first error, while torch's iterator continues after it.
        first, earlier = (0, ()) if self.progress is None else (self.progress.position, self.progress.resumed)
        numbers = itertools.filterfalse(earlier.__contains__, itertools.count(first))
        numbered = zip(numbers, super().__iter__(), strict=False)
        made = filter(lambda one: one[1] is not None, numbered)
        return map(self._transform_batch, made)

    def _transform_batch(self, numbered: tuple[int, object]) -> object:
        """Returns a batch after the user's collate_fn, and `out_transform`, which seeds the process's generators and
        then restores them."""
        position, batch = numbered
        if self.collated is not None:
            batch = self.collated(batch, position)
        if self.out_transform is None or self.progress is None:
            return batch
        return self.out_transform(batch, self.progress.number(position))


Epoch = tuple[Progress, list[OrderedBatch]]  # an epoch before its first batch, and the batches to deliver


def make_oracle_loader(
    settings: Settings, route: ImageRoute, epoch: Epoch, collate_fn: CollateFunction | None
) -> ReferenceLoader:
    """Returns the oracle's loader for an epoch, without `out_transform`. `collate_fn` None: torch's default."""
    progress = epoch[0]
    dataset = FaultTolerantReference(route.source, route.recipe, progress.seed, progress.epoch)
    return oracle_loader_of(dataset, settings, route, epoch, collate_fn)


def oracle_loader_of(
    dataset: FaultTolerantReference,
    settings: Settings,
    route: ImageRoute,
    epoch: Epoch,
    collate_fn: CollateFunction | None,
) -> ReferenceLoader:
    """Returns torch's loader over the oracle's samples of an epoch; see `make_oracle_loader`."""
    progress, order = epoch
    dataset.on_error = settings.on_error
    keys = [list(zip(batch.indices.tolist(), batch.occurrences.tolist(), strict=True)) for batch in order]
    if collate_fn is not None and not collate_call.is_default(collate_fn, settings.batched):
        dataset.kinds = route.recipe.kinds
    return collated_by(collate_fn, dataset, keys, settings.batched, progress, collate_made)


def collated_by(
    collate_fn: CollateFunction | None,
    dataset: Dataset[object],
    keys: Sequence[list[_Key]],
    batched: bool,
    progress: Progress,
    default: Callable[[list[object]], object] | None = None,
) -> ReferenceLoader:
    """Returns torch's loader over `dataset`, whose batches a user's collate_fn makes with the loader's random numbers.

    Args:
        collate_fn: the user's; None: `default`.
        keys: of the samples of each batch.
        default: for batches; None: torch's default.
    """
    own = collate_fn is not None and not collate_call.is_default(collate_fn, batched)
    first = progress.position
    keys = [batch for number, batch in enumerate(keys, first) if number not in progress.resumed]
    # torch's loader draws its base seed from this generator and thus leaves the default generator unchanged.
    generator = torch.Generator("cpu")
    if batched:
        oracle = ReferenceLoader(
            dataset, batch_sampler=keys, collate_fn=_drop_missing if own else default, generator=generator
        )
    else:
        each = [key for batch in keys for key in batch]
        oracle = ReferenceLoader(
            dataset, batch_size=None, sampler=each, collate_fn=_keep_sample if own else None, generator=generator
        )
    if own and collate_fn is not None:
        oracle.collated = collate_call.seeded_collate(collate_fn, progress)
    return oracle


def compared_iterator(
    settings: Settings, route: NativeRoute, table: object, epoch: Epoch, engine: Engine
) -> NativeIterator:
    """Returns an iterator over the same batches, made by `engine` from the rows of `table`."""
    progress, order = epoch
    draws = Draws(route.draws, progress.seed)
    return NativeIterator(
        route.source,
        table,
        engine,
        Announced(iter(order), route.source),
        draws,
        progress,
        settings,
        owns_engine=True,
        for_comparison=True,
    )


#: Tolerances for nvJPEG, whose inverse DCT differs: grey levels of 255, at most and on average.
GREATEST, MEAN = 4, 0.1


@dataclass(frozen=True, repr=False)
class Report(NotebookView):
    """What `verify` compared.

    Attributes:
        batches, samples, bytes: number of batches, samples, and bytes of images compared.
        greatest, mean: largest and mean difference in grey levels of 255; 0 unless nvJPEG decoded.
        own: number of samples also compared with the image that the dataset's own ``__getitem__`` opens, for a dataset
            with a method ``headrace_source``.
    """

    batches: int
    samples: int
    bytes: int
    greatest: int = 0
    mean: float = 0.0
    own: int = 0

    def __str__(self) -> str:
        counts = f"{self.batches} batches, {self.samples} samples, {self.bytes:,} bytes"
        if self.own:
            counts += f", {self.own} images as the dataset's own __getitem__ opens them"
        if not self.greatest:
            return f"{counts} compared with Pillow and torch: 0 differ"
        off = f"{self.greatest} grey levels at most, {self.mean:.3f} on average"
        return f"{counts} compared with Pillow and torch: nvJPEG decoded, and is off by {off}"


def check_count(n: object) -> None:
    """Raises ValueError if `n` is not a positive int."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be a number of batches from 1 up, not {n!r}")


def verify(
    settings: Settings,
    route: ImageRoute,
    epoch: Epoch,
    engine: Engine,
    oracle: Callable[[Settings, Any, Epoch, CollateFunction | None], ReferenceLoader] = make_oracle_loader,
) -> Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``.

    Args:
        engine: makes the batches; closed at the end.
        oracle: returns the loader that they are compared with.
    """
    order = epoch[1]
    expected = oracle(settings, route, epoch, None)
    native = compared_iterator(settings, route, checked_table(route.source), epoch, engine)
    batches = samples = size = elements = greatest = own = 0
    total = 0.0
    try:
        for ours, theirs in paired_batches(native, expected):
            compared = _compare(
                move_tensors(ours, torch.device("cpu")), theirs, batches, order[batches], settings, route
            )
            for images, off in compared:
                greatest, total = max(greatest, off.greatest), total + off.mean * images.numel()
                elements += images.numel()
                size += images.nbytes
            own += _compare_own(route.source, order[batches])
            batches += 1
            samples += len(compared[0][0]) if settings.batched else 1
    finally:
        native.close()
    return Report(batches, samples, size, greatest, total / max(1, elements), own)


def paired_batches(native: Iterable[Any], expected: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yields the batches of both. Raises VerificationError if one has more."""
    for number, (ours, theirs) in enumerate(zip_longest(native, expected)):
        if ours is None or theirs is None:
            raise VerificationError(f"batch {number}: one of the two loaders ended before the other")
        yield ours, theirs


def _compare_own(source: BlobDataset, order: OrderedBatch) -> int:
    """Compares a batch's images with those that the dataset's own ``__getitem__`` passes to its transform.

    Returns:
        Number of samples compared.

    Raises:
        VerificationError: an image differs from the one that the dataset's ``headrace_source`` names.
    """
    compared = 0
    for index in order.indices.tolist():
        own = source.own_image(index)
        if not isinstance(own, (Image.Image, np.ndarray)):
            continue
        compared += 1
        theirs, ours = np.asarray(own), np.asarray(source.image(index))
        if not np.array_equal(theirs, ours):
            raise VerificationError(
                f"sample {index} ({source.location(index)}): the dataset's own __getitem__ makes another image, "
                f"{theirs.dtype} {theirs.shape}, than the one that headrace_source() names, {ours.dtype} {ours.shape}"
            )
    return compared


class _Off(NamedTuple):
    """Differences in grey levels of 255."""

    greatest: int
    mean: float


def grey_levels_off(images: torch.Tensor, expected: torch.Tensor, lut: torch.Tensor) -> tuple[int, float]:
    """Returns the largest and mean difference of the bytes that two batches (n, C, H, W) were made from by `lut`.

    Args:
        lut: (C, 256), the value of each byte; the batches hold only these values.
    """
    greatest, total = 0, 0.0
    for channel, entries in enumerate(lut.double()):
        values, bytes_ = entries.sort()
        levels = [
            bytes_[torch.searchsorted(values, one[:, channel].double().contiguous()).clamp(max=255)]
            for one in (images, expected)
        ]
        off = (levels[0] - levels[1]).abs()
        greatest, total = max(greatest, int(off.max())), total + float(off.double().sum())
    return greatest, total / images.numel()


def _compare(
    ours: Any, theirs: Any, number: int, order: OrderedBatch, settings: Settings, route: ImageRoute
) -> list[tuple[torch.Tensor, _Off]]:
    """Returns our images of each view, of one without views, and their difference.

    Raises:
        VerificationError: the batches differ beyond the tolerance.
    """
    where, recipe = f"batch {number}", route.recipe
    if route.source.has_targets:
        if not are_equal_values(ours[1], theirs[1]):
            raise VerificationError(f"{where}: targets differ: {ours[1]!r} against {theirs[1]!r}")
        ours, theirs = ours[0], theirs[0]
    if type(ours) is not type(theirs) or len(ours) != len(theirs):
        raise VerificationError(f"{where}: {type(ours).__name__}({len(ours)}) against {type(theirs)}({len(theirs)})")
    if not recipe.views:
        return [_compare_images(ours, theirs, where, recipe, order, settings, route)]
    names = recipe.view_names or tuple(range(1, len(recipe.views) + 1))
    pairs = zip(names, recipe.unpack_views(ours), recipe.unpack_views(theirs), recipe.views, strict=True)
    return [
        _compare_images(images, expected, f"{where}, view {name!r}", view, order, settings, route)
        for name, images, expected, view in pairs
    ]


def _compare_images(
    images: torch.Tensor,
    expected: torch.Tensor,
    where: str,
    recipe: Recipe,
    order: OrderedBatch,
    settings: Settings,
    route: ImageRoute,
) -> tuple[torch.Tensor, _Off]:
    if images.dtype != expected.dtype or images.shape != expected.shape:
        raise VerificationError(
            f"{where}: {images.dtype} {tuple(images.shape)} against {expected.dtype} {tuple(expected.shape)}"
        )
    if torch.equal(images, expected):
        return images, _Off(0, 0.0)
    by_nvjpeg = settings.destination.decoder != "cpu" and route.source.variants[0].clips is None
    if by_nvjpeg and images.ndim == 4 and not recipe.finished_here:
        off = _Off(*grey_levels_off(images, expected, recipe.lut))
        if off.greatest <= GREATEST and off.mean <= MEAN:
            return images, off
    differ = (images != expected).reshape(len(images), -1) if settings.batched else (images != expected).reshape(1, -1)
    first = int(differ.any(dim=1).nonzero()[0])
    index = int(order.indices[first])
    worst = (images.double() - expected.double()).abs().max().item()
    raise VerificationError(
        f"{where}: sample {index} ({route.source.location(index)}) differs in {int(differ[first].sum())} of "
        f"{differ.shape[1]} values, {int(differ.any(dim=1).sum())} samples of the batch differ, "
        f"the largest difference is {worst:g}"
    )


def have_same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Compares the bytes of two tensors of one dtype and shape: a NaN equals itself, and -0.0 differs from 0.0."""
    return torch.equal(*(one.contiguous().reshape(-1).view(torch.uint8) for one in (a, b)))


def are_equal_values(a: object, b: object) -> bool:
    """Returns whether two targets are equal; those in lists, tuples and dicts one by one."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(are_equal_values(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(are_equal_values(a[key], b[key]) for key in a)
    return bool(a == b)

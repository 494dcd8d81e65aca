"""Reports about a loader of several fields: its batches compared with the oracle's, and its explanation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from headrace._base.errors import VerificationError
from headrace._base.messages import public_name_of
from headrace._engine.device_engine import move_tensors
from headrace._engine.engine import Engine
from headrace._loading.collate import collate_call
from headrace._loading.collate.collate_call import CollateFunction
from headrace._loading.native.settings import Settings
from headrace._loading.routes.audio_route import AudioRoute
from headrace._loading.routes.fields_route import FieldsRoute
from headrace._loading.routes.video_route import VideoRoute
from headrace._oracle.fields import ClipField, ImageField, ReferenceFields
from headrace._recipe.draws.draws import Draws
from headrace._recipe.object_boxes.object_values import BoxPart
from headrace._reports.loader import explanation
from headrace._reports.loader.explanation import Explanation, Part
from headrace._reports.loader.verification import (
    GREATEST,
    MEAN,
    Epoch,
    ReferenceLoader,
    Report,
    collate_made,
    collated_by,
    compared_iterator,
    grey_levels_off,
    have_same_bytes,
    paired_batches,
)
from headrace._reports.routes import audio_reports, video_reports
from headrace.datasets.fields.field_kinds import Field


def oracle(settings: Settings, route: FieldsRoute, epoch: Epoch, collate_fn: CollateFunction | None) -> ReferenceLoader:
    """Returns the oracle's loader for an epoch, without `out_transform`. `collate_fn` None: torch's default."""
    progress, order = epoch
    source = route.source
    own = collate_fn is not None and not collate_call.is_default(collate_fn, settings.batched)

    boxes = {name: part for part in route.boxes for name in part.names}

    def describe_field(field: Field) -> ImageField | ClipField | BoxPart | Callable[[int], object]:
        if field.name in boxes:
            return boxes[field.name]
        if field.image is None:
            value: Callable[[int], object] = field.values.__getitem__
            return value
        columns, of_field = route.columns[field.name], route.images[field.name]
        if isinstance(of_field, AudioRoute):
            return ClipField(field.image, functools.partial(audio_reports.make_by_oracle, of_field), columns)
        recipe = of_field.recipe
        kinds = recipe.kinds if own else None
        if isinstance(of_field, VideoRoute):
            make = functools.partial(video_reports.make_by_oracle, of_field, settings.destination.of_videos)
            return ClipField(field.image, make, columns, kinds)
        return ImageField(field.image, recipe, columns, kinds)

    dataset = ReferenceFields(
        {one.name: describe_field(one) for one in source.fields},
        Draws(route.draws, progress.seed),
        progress.epoch,
        source.row,
        len(source),
        one_size=source.geometry is not None,
        positional=source.positional,
        on_error=settings.on_error,
    )
    keys = [list(zip(batch.indices.tolist(), batch.occurrences.tolist(), strict=True)) for batch in order]
    return collated_by(collate_fn, dataset, keys, settings.batched, progress, collate_made)


def verify(settings: Settings, route: FieldsRoute, epoch: Epoch, engine: Engine) -> Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``.

    Args:
        engine: makes the batches; closed at the end.
    """
    order = epoch[1]
    native = compared_iterator(settings, route, route.source.blob_table(), epoch, engine)
    made = Report(0, 0, 0)
    try:
        for ours, theirs in paired_batches(native, oracle(settings, route, epoch, None)):
            comparison = _Comparison(settings, route, f"batch {made.batches}")
            comparison.fields(move_tensors(ours, torch.device("cpu")), theirs)
            made = replace(
                made,
                batches=made.batches + 1,
                samples=made.samples + len(order[made.batches].indices),
                bytes=made.bytes + comparison.bytes,
                greatest=max(made.greatest, comparison.greatest),
                mean=max(made.mean, comparison.mean),
            )
    finally:
        native.close()
    return made


class _Comparison:
    """Compares one batch, and counts its bytes and the differences of nvJPEG's images in grey levels."""

    def __init__(self, settings: Settings, route: FieldsRoute, what: str) -> None:
        self._route, self._what = route, what
        self._decoder = settings.destination.decoder
        self.bytes = self.greatest = 0
        self.mean = 0.0

    def fields(self, ours: Any, theirs: Any) -> None:
        """Compares all fields. Raises VerificationError if they differ beyond the tolerance."""
        names = [one.name for one in self._route.source.fields]
        if isinstance(ours, dict) and (list(ours) != names or list(theirs) != names):
            raise VerificationError(f"{self._what}: fields {list(ours)} against {list(theirs)}")
        for name, a, b in zip(names, _values(ours), _values(theirs), strict=True):
            self._compare(a, b, name)

    def _compare(self, a: object, b: object, name: str) -> None:
        where = f"{self._what}: field {name!r}"
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            self.bytes += a.nbytes
            if a.dtype != b.dtype or a.shape != b.shape:
                raise VerificationError(f"{where}: {a.dtype} {tuple(a.shape)} against {b.dtype} {tuple(b.shape)}")
            if not have_same_bytes(a, b) and not self._is_tolerated(a, b, name):
                raise VerificationError(f"{where} differs in {int((a != b).sum())} of {a.numel()} values")
        elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            for key in a:
                self._compare(a[key], b[key], name)
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
            for one, other in zip(a, b, strict=True):
                self._compare(one, other, name)
        elif type(a) is not type(b) or a != b:
            raise VerificationError(f"{where}: {a!r} against {b!r}")

    def _is_tolerated(self, a: torch.Tensor, b: torch.Tensor, name: str) -> bool:
        recipe = self._route.recipes.get(name)
        if self._decoder == "cpu" or recipe is None or a.ndim != 4 or isinstance(self._route.images[name], VideoRoute):
            return False
        greatest, mean = grey_levels_off(a, b, recipe.lut)
        self.greatest, self.mean = max(self.greatest, greatest), max(self.mean, mean)
        return greatest <= GREATEST and mean <= MEAN


def _values(batch: Any) -> list[object]:
    return list(batch.values()) if isinstance(batch, dict) else list(batch)


def explain(settings: Settings, route: FieldsRoute, verbose: bool) -> Explanation:
    """Returns the table of a loader whose samples have several fields."""
    kind = type(settings.dataset)
    lines = [Part("dataset", "native", f"{route.source!r} of {public_name_of(kind)}")]
    for one in route.source.fields:
        lines += [
            replace(part, part=f"{one.name}: {part.part}") for part in _explain_field(settings, route, one, verbose)
        ]
    if route.source.geometry is not None:
        lines.append(Part("geometry", "native", f"{route.shared} random numbers a sample, the same for all images"))
    lines += [
        *explanation.explain_collation(settings),
        *explanation.explain_seeding(settings),
        *explanation.explain_ranks(settings),
    ]
    shape = "a list" if route.source.positional else "a dict"
    if settings.destination.way == "memory":
        return Explanation((*lines, Part("output", "native", f"{shape} of the fields' batches")))
    where = f"{shape} of the fields' batches on {settings.destination.device}; values and rows are copied there"
    return Explanation((*lines, Part("output", "native", where)))


def _explain_field(settings: Settings, route: FieldsRoute, field: Field, verbose: bool) -> Iterator[Part]:
    of_field = route.images.get(field.name)
    if isinstance(of_field, VideoRoute):
        yield from video_reports.explain_clips(settings, of_field, field.values, verbose)
        yield from video_reports.explain_clip_output(settings, of_field)
    elif isinstance(of_field, AudioRoute):
        yield from audio_reports.explain_waveforms(settings, of_field)
        yield from explanation.explain_targets(of_field.source)
        yield audio_reports.explain_output(of_field)
    elif field.image is not None:
        recipe = route.recipes[field.name]
        yield from explanation.explain_reading(settings, field.image, field.values)
        yield from explanation.explain_steps(recipe, verbose)
        yield from explanation.explain_targets(field.image)
        yield from explanation.explain_output(settings, recipe, verbose)
    elif field.boxes is not None:
        yield Part("boxes", "Python", f"{field.boxes!r}; they follow {field.follows} in the consumer's thread")
    elif field.objects is not None:
        yield Part("labels", "Python", f"one entry for each of the {field.follows}, removed with them")
    elif field.rows is not None:
        yield Part("rows", "native", f"{field.rows!r}, copied by native threads")
    elif field.gathered:
        dtype, shape = field.values.dtype, tuple(field.values.shape)
        yield Part("rows", "native", f"{dtype} {shape}, copied by native threads")
    else:
        yield Part("values", "Python", f"{type(field.values).__qualname__}, collated in the consumer's thread")

"""Reports about a loader of audio: its batches compared with torchcodec's, and its explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset

from headrace._base.errors import VerificationError
from headrace._base.messages import public_name_of
from headrace._base.types import Array
from headrace._engine.device_engine import move_tensors
from headrace._engine.engine import Engine
from headrace._loading.collate.collate_call import CollateFunction
from headrace._loading.native.settings import Settings
from headrace._loading.routes.audio_route import AudioRoute
from headrace._media.audio.clip_reader import libraries
from headrace._oracle.reference import try_samples
from headrace._recipe.draws.draws import Draws
from headrace._reports.loader import verification
from headrace._reports.loader.explanation import (
    Explanation,
    Part,
    explain_collation,
    explain_ranks,
    explain_seeding,
    explain_targets,
)
from headrace.datasets.audio.audio_dataset import Audio
from headrace.datasets.sources import checked_table


@dataclass(frozen=True, repr=False)
class AudioReport(verification.Report):
    """What `verify` compared: `bytes` counts those of the waveforms."""

    def __str__(self) -> str:
        counts = f"{self.batches} batches, {self.samples} samples, {self.bytes:,} bytes"
        return f"{counts} compared with torchcodec: 0 differ"


class _ReferenceAudio(Dataset[Any]):
    """The oracle's samples; keys are (index, occurrence)."""

    def __init__(self, route: AudioRoute, draws: Draws, epoch: int, on_error: str) -> None:
        self._route, self._draws, self._epoch, self._on_error = route, draws, epoch, on_error

    def __getitem__(self, key: tuple[int, int]) -> object:
        draws, source = self._draws.batch(self._epoch, [key[0]], [key[1]])[0], self._route.source

        def make(index: int) -> object:
            return source.sample_of(make_by_oracle(self._route, index, draws), index)

        return try_samples(make, key[0], len(source), self._on_error)


def make_by_oracle(route: AudioRoute, index: int, draws_row: Array) -> torch.Tensor | tuple[torch.Tensor, int]:
    """Returns a sample without its target, as the oracle makes it.

    Args:
        draws_row: the sample's draws, float64 (k,).
    """
    audio, row = route.source.origin(index)
    assert isinstance(audio, Audio)
    return audio.waveform(row, float(draws_row[0]) if len(draws_row) else 0.0)


def oracle(
    settings: Settings, route: AudioRoute, epoch: verification.Epoch, collate_fn: CollateFunction | None
) -> verification.ReferenceLoader:
    progress, order = epoch
    draws = Draws(route.draws, progress.seed)
    dataset = _ReferenceAudio(route, draws, progress.epoch, settings.on_error)
    keys = [list(zip(batch.indices.tolist(), batch.occurrences.tolist(), strict=True)) for batch in order]
    return verification.collated_by(collate_fn, dataset, keys, settings.batched, progress, verification.collate_made)


def verify(settings: Settings, route: AudioRoute, epoch: verification.Epoch, engine: Engine) -> AudioReport:
    """Compares the batches of an epoch, value for value; see ``DataLoader.verify``.

    Args:
        engine: makes the batches; closed at the end.
    """
    native = verification.compared_iterator(settings, route, checked_table(route.source), epoch, engine)
    batches = samples = size = 0
    try:
        for ours, theirs in verification.paired_batches(native, oracle(settings, route, epoch, None)):
            size += _compare(move_tensors(ours, torch.device("cpu")), theirs, batches)
            samples += len(epoch[1][batches].indices)
            batches += 1
    finally:
        native.close()
    return AudioReport(batches, samples, size)


def _compare(ours: Any, theirs: Any, batch: int) -> int:
    """Returns the number of bytes compared."""
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape or not verification.have_same_bytes(ours, theirs):
            raise VerificationError(
                f"batch {batch}: {ours.dtype} {tuple(ours.shape)} differs from {theirs.dtype} {tuple(theirs.shape)}"
            )
        return ours.nbytes
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)) and len(ours) == len(theirs):
        return sum(_compare(a, b, batch) for a, b in zip(ours, theirs, strict=True))
    if not verification.are_equal_values(ours, theirs):
        raise VerificationError(f"batch {batch}: targets differ: {ours!r} against {theirs!r}")
    return 0


def explain(settings: Settings, route: AudioRoute, verbose: bool) -> Explanation:
    """Returns the table of a loader of audio, the same if `verbose`."""
    return Explanation(
        (
            Part("dataset", "native", f"{route.source!r} of {public_name_of(type(settings.dataset))}"),
            *explain_waveforms(settings, route),
            *explain_targets(route.source),
            *explain_collation(settings),
            *explain_seeding(settings),
            *explain_ranks(settings),
            explain_output(route),
        )
    )


def explain_waveforms(settings: Settings, route: AudioRoute) -> list[Part]:
    """Returns how files are read."""
    threads = f"{settings.num_workers} threads" if settings.num_workers else "the caller's thread (num_workers=0)"
    odd = "Python threads" if settings.num_workers else "the caller's thread"
    return [
        Part("plain WAV", "native", f"{threads}; only the bytes of the clip are read, straight into the batch"),
        Part("all other files", "Python", f"{odd}: {libraries()}"),
    ]


def explain_output(route: AudioRoute) -> Part:
    """Returns what a sample is."""
    clip = route.clip
    shape = f"torch.float32, ({clip.channels}, {clip.samples}), {clip.crop} crop, zeros after shorter files"
    lengths = ", with lengths" if clip.lengths else ""
    return Part("output", "native", shape + lengths)

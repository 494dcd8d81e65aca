"""Reports about a loader of videos: its batches compared with torchcodec's frames, and its explanation."""

from __future__ import annotations

import importlib.metadata
import os

import torch

from headrace._base.messages import public_name_of
from headrace._base.native import core
from headrace._base.types import Array
from headrace._engine.destination import Destination
from headrace._engine.device_engine import destination_for
from headrace._engine.engine import Engine
from headrace._loading.collate.collate_call import CollateFunction
from headrace._loading.native.settings import Settings
from headrace._loading.routes.video_route import VideoRoute
from headrace._oracle.clips import reference_clips
from headrace._recipe.draws.draws import Draws
from headrace._reports.loader import verification
from headrace._reports.loader.explanation import (
    Explanation,
    Part,
    explain_collation,
    explain_ranks,
    explain_seeding,
    explain_steps,
    explain_targets,
)
from headrace._reports.loader.verification import Epoch, FaultTolerantReference, ReferenceLoader, Report
from headrace._storage.video_indexes.shared_indexes import AUTO
from headrace.datasets.videos.videos_dataset import file_for_library


class _ReferenceClips(FaultTolerantReference):
    """The oracle's clips of one epoch."""

    def __init__(self, route: VideoRoute, device: torch.device, seed: int, epoch: int) -> None:
        super().__init__(route.source, route.recipe, seed, epoch)
        self._route, self._device, self._draws = route, device, Draws(route.draws, seed)

    def made_of(self, index: int, draws_row: Array) -> torch.Tensor:
        return make_by_oracle(self._route, self._device, index, draws_row)


def make_by_oracle(route: VideoRoute, device: torch.device, index: int, draws_row: Array) -> torch.Tensor:
    """Returns a sample without its target, as the oracle makes it.

    Args:
        device: where torchcodec decodes.
        draws_row: the sample's draws, float64 (k,).
    """
    videos, number = route.source.origin(index)
    file = file_for_library(videos, number)
    return reference_clips(file, number, route.clips, route.recipe, draws_row, route.order, device)


def make_oracle_loader(
    settings: Settings, route: VideoRoute, epoch: Epoch, collate_fn: CollateFunction | None
) -> ReferenceLoader:
    """Returns the oracle's loader for an epoch; see `verification.make_oracle_loader`."""
    device = settings.destination.of_videos
    dataset = _ReferenceClips(route, device, epoch[0].seed, epoch[0].epoch)
    return verification.oracle_loader_of(dataset, settings, route, epoch, collate_fn)


def verify(settings: Settings, route: VideoRoute, epoch: Epoch, engine: Engine) -> Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``.

    Args:
        engine: makes the batches; closed at the end.
    """
    return verification.verify(settings, route, epoch, engine, make_oracle_loader)


def explain(settings: Settings, route: VideoRoute, verbose: bool) -> Explanation:
    """Returns the table of a loader whose clips native threads deliver; see ``DataLoader.explain``."""
    return Explanation(
        (
            *explain_clips(settings, route, settings.dataset, verbose),
            *explain_collation(settings),
            *explain_seeding(settings),
            *explain_ranks(settings),
            *explain_clip_output(settings, route),
        )
    )


def explain_clips(settings: Settings, route: VideoRoute, dataset: object, verbose: bool) -> list[Part]:
    """Returns how the clips of `dataset` are decoded, and what is done to them."""
    workers = settings.num_workers
    threads = f"{workers} Python threads" if workers else "the caller's thread (num_workers=0)"
    return [
        Part("dataset", "native", f"{route.source!r} of {public_name_of(type(dataset))}"),
        *_explain_decoding(settings.destination, threads),
        *(
            [
                Part(
                    "other machines",
                    "native",
                    "of MP4 and MOV files the tables and the needed groups of pictures",
                )
            ]
            if route.source.ahead_bytes
            else []
        ),
        Part("indexes", "native", _say_where_indexes_are(settings)),
        *explain_steps(route.recipe, verbose),
        *explain_targets(route.source),
    ]


def _explain_decoding(destination: Destination, threads: str) -> list[Part]:
    codec = f"torchcodec {importlib.metadata.version('torchcodec')}"
    if destination.decodes_videos:
        by = "its CPU decoder, in place of NVDEC" if destination.is_emulated else f"NVDEC ({destination.device})"
        how = f"{threads} call {codec}, which decodes by {by}: all frames from a key frame to the last wanted one"
        rest = "torchcodec's CPU decoder decodes what NVDEC does not take"
        return [Part("read, decode", "torchcodec", how), Part("other videos", "torchcodec", rest)]
    libraries = f"PyAV {importlib.metadata.version('av')}, {codec}"
    return [
        Part("read, decode", "native", f"{threads} drive FFmpeg ({libraries}): only frames that wanted ones need"),
        Part("other videos", "torchcodec", "containers, rates and colours that FFmpeg's versions treat differently"),
    ]


def _say_where_indexes_are(settings: Settings) -> str:
    given = settings.video_index
    if given is None:
        return "each process learns where the frames of a file are"
    if given == AUTO or given.path is None:
        return "learned once a process, and kept in memory for torch's workers of its loaders"
    more = " and in memory" if given.memory else ""
    return f"learned once, and kept in {os.fspath(given.path)}{more} for other processes and later runs"


def explain_clip_output(settings: Settings, route: VideoRoute) -> list[Part]:
    """Returns how frames are resized, and what a batch of clips is."""
    channels, height, width = route.recipe.shape
    frames, *clips = reversed(route.clips.shape)
    axes = (channels, frames) if route.order == "CTHW" else (frames, channels)
    shape = (*clips, *axes, height, width)
    found = [
        Part("resize", "native", f"{core.instruction_set()} kernels, as torch resizes tensors of bytes"),
        Part("output", "native", f"{route.recipe.dtype}, {shape}, {settings.memory_format}"),
    ]
    destination = destination_for(route.recipe, settings.destination.for_videos())
    if destination.way != "memory":
        found.append(Part("device", "native", f"{destination.device}: {destination.why}"))
    return found

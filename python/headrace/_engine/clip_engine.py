"""The engine of clips: frames are made as images, with the random numbers of their clip."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from headrace._base import messages
from headrace._base.native import core
from headrace._engine.composite_engine import CompositeEngine
from headrace._engine.counters.counters import Counters
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.lanes.decoding_lane import Decoding
from headrace._engine.lanes.frame_lane import FrameLane
from headrace._media.video.device_frames import DeviceFrames
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.recipe import Recipe
from headrace._storage.video_indexes.shared_indexes import SharedIndexes
from headrace.datasets.videos.clip_samplers import ClipSampler, DimensionOrder


class ClipEngine(CompositeEngine):
    """Submits each frame of each clip as an image to an engine of images.

    Args:
        recipe: the steps of an image; all frames of a clip get the same random numbers.
        clips: chooses the frames of a sample.
        order: of a clip's axes, "TCHW" or "CTHW".
        layout: memory layout of the frames.
        make_images: returns the engine of the images, given the recipe of a frame, what decodes it, and how many frames
            are stored together as (C, frames, H, W).
        indexes, ahead_bytes, on_device: see `FrameLane`.
    """

    decoder = "video"

    def __init__(
        self,
        recipe: Recipe,
        clips: ClipSampler,
        order: DimensionOrder,
        layout: Layout,
        make_images: Callable[[Recipe, Decoding, int], Engine],
        indexes: SharedIndexes | None = None,
        ahead_bytes: int = 0,
        on_device: DeviceFrames | None = None,
    ) -> None:
        super().__init__()
        self._on_device, self._warned = on_device, False
        self._recipe, self._clips, self._order = recipe, clips, order
        # Frames with interleaved channels are not moved: (T, H, W, C) in memory is torch.channels_last_3d of a clip.
        self._side_by_side = order == "CTHW" and layout is Layout.PLANAR
        own = len(recipe.columns)  # draws of a frame: those of its clip's images, then where each clip begins
        of_frame = replace(recipe, columns=(*recipe.columns, *(Column() for _ in range(clips.drawn))))
        make_lane = functools.partial(
            FrameLane, clips=clips, first_draw=own, indexes=indexes, ahead_bytes=ahead_bytes, on_device=on_device
        )
        together = clips.num_frames_per_clip if self._side_by_side else 1
        self._images = make_images(of_frame, Decoding(self.decoder, make_lane), together)
        self.endings = self._images.endings

    def members(self) -> list[Engine]:
        return [self._images]

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        return self._images.submit(table, np.repeat(rows, self._clips.frames), self._draws_of_frames(draws))

    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: core.BlobTable,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
    ) -> Flight:
        frames = np.repeat(rows, self._clips.frames)
        return self._images.repair(flight, self._places_of(places), table, frames, self._draws_of_frames(draws))

    def _draws_of_frames(self, draws: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the draws of each frame.

        Args:
            draws: (n, k): those of each clip's images, clip by clip, then where each clip begins.
        """
        clips, count = self._clips, len(draws)
        images, begins = np.split(draws, [draws.shape[1] - clips.drawn], axis=1)
        images = images.reshape(count * clips.num_clips, -1)
        each = np.hstack([images, np.repeat(begins, clips.num_clips, axis=0)])
        return np.repeat(each, clips.num_frames_per_clip, axis=0)

    def _places_of(self, samples: list[int]) -> list[int]:
        frames = self._clips.frames
        return [sample * frames + frame for sample in samples for frame in range(frames)]

    def wait(self, flight: Flight, seconds: float) -> bool:
        ready = self._images.wait(flight, seconds)
        if ready and self._on_device is not None and not self._warned and (trouble := self._on_device.trouble):
            self._warned = True
            messages.warn(f"{trouble}; leave decoder out, which is exact and decodes fewer frames", RuntimeWarning)
        return ready

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples in order, each with the failure of its first frame that failed."""
        found: dict[int, Failure] = {}
        for failure in self._images.failures(flight):
            sample = failure.sample // self._clips.frames
            found.setdefault(sample, replace(failure, sample=sample))
        return [found[sample] for sample in sorted(found)]

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        """Returns the batch; `places` (ascending) selects samples.

        Its shape is (n, T, C, H, W) or (n, C, T, H, W); with several clips, these are another axis after the first.
        """
        made = self._images.tensor(flight, None if places is None else self._places_of(places))
        assert isinstance(made, torch.Tensor)
        channels, height, width = made.shape[1:]
        frames, *before = reversed(self._clips.shape)
        if self._side_by_side:
            return made.view(-1, *before, channels, frames, height, width)
        clips = made.view(-1, *before, frames, channels, height, width)
        return clips if self._order == "TCHW" else clips.transpose(-4, -3)

    def counters(self) -> Counters:
        return replace(super().counters(), bytes_read=0)  # the pipeline reads the names of files alone

    def single(self, batch: torch.Tensor) -> object:
        sample = batch[0]
        if self._order == "CTHW":  # transposing makes a plain tensor
            return sample
        return sample.as_subclass(self._recipe.kind)

    def cancel(self, flight: Flight) -> None:
        self._images.cancel(flight)

    def move_targets(self, targets: object) -> object:
        return self._images.move_targets(targets)

    def makes(self, product: object) -> bool:
        return not self.closed and isinstance(product, tuple) and (self._recipe, self._clips, self._order) == product

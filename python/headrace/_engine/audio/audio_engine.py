"""The native threads that read clips of audio files: batches in, waveforms out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._engine.audio.audio_lane import AudioLane
from headrace._engine.destination import Destination
from headrace._engine.device_engine import move_tensors, moved_tensor
from headrace._engine.engine import Flight
from headrace._engine.image_engine import DLPACK_CODE
from headrace._engine.pipeline_engine import PipelineEngine
from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.wav_rule import native_clip


class AudioEngine(PipelineEngine):
    """Threads, slots and the Python lane for one kind of clip.

    A batch is the waveforms, float32 (n, channels, samples), or with `lengths` a list of these and their lengths before
    padding, int64 (n,).

    Args:
        clip: which part of a file, of a given length.
        destination: where the batches end; they are made in this machine's memory and moved.
        threads, slots_kept, pin: as in `ImageEngine`.
    """

    decoder = "codecs"

    def __init__(
        self, clip: AudioClip, destination: Destination, *, threads: int, slots_kept: int, pin: bool = False
    ) -> None:
        self._clip, self._destination, self._pin = clip, destination, pin
        pipeline = core.clip_pipeline(native_clip(clip), threads=threads, slots_kept=slots_kept)
        super().__init__(pipeline, [AudioLane(pipeline, threads, clip)], inline=threads == 0)

    def _shape(self, count: int) -> tuple[int, int, int]:
        assert self._clip.samples is not None and self._clip.channels is not None
        return count, self._clip.channels, self._clip.samples

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        memory = None
        if self._pin:
            memory = torch.empty(self._shape(len(rows)), dtype=torch.float32, device="cpu", pin_memory=True)
        return AudioFlight(self._pipeline.submit(table, rows, draws, memory))

    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: core.BlobTable,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
    ) -> Flight:
        made = super().repair(flight, places, table, rows, draws)
        assert isinstance(flight, AudioFlight)
        flight.repairs.append((places, made))
        return made

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        assert isinstance(flight, AudioFlight)
        count = len(flight.batch) if places is None else len(places)
        lengths = self._lengths_of(flight, places) if self._clip.lengths else None
        if places is not None:
            self._pipeline.compact(flight.batch, places)
        if (memory := flight.batch.memory) is not None:
            flight.batch.release()
            waveforms = memory[:count]
        else:
            capsule = self._pipeline.tensor(flight.batch, count, DLPACK_CODE[torch.float32])
            waveforms = torch.utils.dlpack.from_dlpack(capsule).squeeze(2)
        waveforms = moved_tensor(waveforms, self._destination.device)
        return waveforms if lengths is None else [waveforms, self.move_targets(lengths)]

    @staticmethod
    def _lengths_of(flight: AudioFlight, places: list[int] | None) -> torch.Tensor:
        sizes = flight.batch.sizes
        for replaced, repair in flight.repairs:
            sizes[replaced] = repair.batch.sizes
        lengths = torch.from_numpy(sizes[:, 1].astype(np.int64))
        return lengths if places is None else lengths[places]

    def single(self, batch: Any) -> object:
        return batch[0] if isinstance(batch, torch.Tensor) else [batch[0][0], int(batch[1][0])]

    def move_targets(self, targets: object) -> object:
        return targets if self._destination.way == "memory" else move_tensors(targets, self._destination.device)

    def makes(self, product: object) -> bool:
        return not self.closed and self._clip == product

    def has_current_limit(self) -> bool:
        return True  # waveforms have no pixels


class AudioFlight(Flight):
    """A batch of waveforms in flight.

    Attributes:
        repairs: the samples that were made again: their places, and the flight that made them.
    """

    def __init__(self, batch: core.Batch) -> None:
        super().__init__(batch)
        self.repairs: list[tuple[list[int], Flight]] = []

"""Frames of a video that a program spreads over it, or names for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._media.video.frame_times import FrameTimes, WantedFrames
from headrace.datasets.videos.clip_samplers import ClipSampler, checked

_Places = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class _Uniform(ClipSampler):
    """One clip of frames spread over the whole video."""

    def choose(self, video: FrameTimes, draws: Sequence[float], sample: int) -> WantedFrames:
        count = video.num_frames or 0
        if count < 1:
            raise ValueError("the video has no frames")
        return WantedFrames(np.linspace(0, count - 1, self.num_frames_per_clip, dtype=int).tolist())

    def __call__(self, decoder: Any, sample: int) -> Any:
        numbers = self.choose(decoder.metadata, (), sample).numbers
        return decoder.get_frames_at(numbers).data.unsqueeze(0)

    def _name(self) -> str:
        return uniform_frames.__name__

    @property
    def num_frames(self) -> int:
        """Number of frames."""
        return self.num_frames_per_clip


@dataclass(frozen=True, repr=False, eq=False)
class _Given(ClipSampler):
    """One clip of the frames that the program names for each sample.

    Attributes:
        places: int64 (n, T), numbers of frames; or float64, times in seconds.
    """

    places: _Places

    @property
    def _by_number(self) -> bool:
        return self.places.dtype == np.int64

    def choose(self, video: FrameTimes, draws: Sequence[float], sample: int) -> WantedFrames:
        named = self.places[sample].tolist()
        if not self._by_number:
            return WantedFrames(seconds=named)
        count = video.num_frames or 0
        return WantedFrames([one + count if one < 0 else one for one in named])

    def __call__(self, decoder: Any, sample: int) -> Any:
        named = self.places[sample].tolist()
        found = decoder.get_frames_at(named) if self._by_number else decoder.get_frames_played_at(named)
        return found.data.unsqueeze(0)

    def check_length(self, samples: int) -> None:
        if len(self.places) != samples:
            raise ValueError(f"frames are given for {len(self.places)} samples, but there are {samples}")

    def identity(self, sample: int) -> str:
        return str(self.places[sample].tolist())

    def _name(self) -> str:
        return frames_at.__name__ if self._by_number else frames_played_at.__name__

    def __repr__(self) -> str:
        return f"{self._name()}({len(self.places)} samples, {self.num_frames_per_clip} frames)"


def uniform_frames(num_frames: int) -> ClipSampler:
    """One clip of frames spread over the whole video, the first and the last one among them.

    The numbers are ``numpy.linspace(0, n - 1, num_frames, dtype=int)`` for a video of n frames, as programs that show
    videos to language models choose them.
    """
    return checked(_Uniform(1, num_frames))


def frames_at(indices: Any) -> ClipSampler:
    """One clip a sample, of frames with given numbers; see ``VideoDecoder.get_frames_at``.

    Args:
        indices: int (n, T), the numbers of the frames of each sample of the dataset; negative: from the end.
    """
    return _given(indices, np.int64, "indices")


def frames_played_at(seconds: Any) -> ClipSampler:
    """One clip a sample, of the frames that are shown at given times; see ``VideoDecoder.get_frames_played_at``.

    Args:
        seconds: (n, T), the times of each sample of the dataset.
    """
    return _given(seconds, np.float64, "seconds")


def _given(values: Any, dtype: type[np.int64] | type[np.float64], name: str) -> ClipSampler:
    places = np.asarray(values)
    if places.ndim != 2 or (dtype is np.int64 and places.dtype.kind not in "iu"):
        numbers = "ints" if dtype is np.int64 else "numbers"
        raise ValueError(f"{name} must be {numbers} of shape (samples, frames), not {places.dtype} {places.shape}")
    made: _Places = places.astype(dtype, copy=True)  # type: ignore[assignment]
    return checked(_Given(1, places.shape[1], made))

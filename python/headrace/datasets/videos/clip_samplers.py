"""Which frames of a video a sample consists of, as torchcodec's samplers choose them.

The functions have torchcodec's names and arguments, without the decoder. The numbers of frames follow from one uniform
random number for each clip, so that a batch is a function of its draws.
"""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from headrace._media.video.frame_times import FrameTimes, WantedFrames

Policy = Literal["repeat_last", "wrap", "error"]
DimensionOrder = Literal["TCHW", "CTHW"]
_Place = TypeVar("_Place", int, float)


@dataclass(frozen=True)
class ClipSampler(ABC):
    """Chooses `num_clips` clips of `num_frames_per_clip` frames of a video.

    Attributes:
        is_random: whether a clip's start is drawn.
    """

    num_clips: int
    num_frames_per_clip: int
    is_random = False

    @abstractmethod
    def choose(self, video: FrameTimes, draws: Sequence[float], sample: int) -> WantedFrames:
        """Returns the frames of a sample.

        Args:
            draws: uniform in [0, 1), one for each clip, if `is_random`.
            sample: its number in the dataset.

        Raises:
            ValueError: as torchcodec's sampler.
        """

    @abstractmethod
    def __call__(self, decoder: Any, sample: int) -> Any:
        """Returns torchcodec's frames of a sample, uint8 (num_clips, num_frames_per_clip, ...).

        Args:
            decoder: a ``torchcodec.decoders.VideoDecoder``.
            sample: its number in the dataset.
        """

    @property
    def frames(self) -> int:
        """Number of frames of a sample."""
        return self.num_clips * self.num_frames_per_clip

    @property
    def shape(self) -> tuple[int, ...]:
        """First axes of a sample: (frames,), or (clips, frames) if there are several clips."""
        frames = (self.num_frames_per_clip,)
        return frames if self.num_clips == 1 else (self.num_clips, *frames)

    @property
    def drawn(self) -> int:
        """Number of random numbers of a sample."""
        return self.num_clips if self.is_random else 0

    def check(self) -> None:
        """Raises TypeError or ValueError for arguments that no video fits."""
        for name in ("num_clips", "num_frames_per_clip"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if value < 1:
                raise ValueError(f"{name} ({value}) must be strictly positive")

    def check_length(self, samples: int) -> None:
        """Raises ValueError if frames are given for another number of samples."""
        return None

    def identity(self, sample: int) -> str:
        """Returns a string that differs if other frames of a sample would be chosen."""
        return repr(self)

    def __repr__(self) -> str:
        usual = inspect.signature(getattr(sys.modules[type(self).__module__], self._name())).parameters
        own = (f"{name}={getattr(self, name)!r}" for name in usual if getattr(self, name) != usual[name].default)
        return f"{self._name()}({', '.join(own)})"

    def _name(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, repr=False)
class _ByPolicy(ClipSampler):
    """Clips that a policy completes where they go beyond the end of the video."""

    policy: Policy

    def check(self) -> None:
        super().check()
        if self.policy not in get_args(Policy):
            raise ValueError(f"Invalid policy ({self.policy}). Supported values are {get_args(Policy)}.")

    def _complete(self, found: list[_Place]) -> list[_Place]:
        """Returns a clip of the wanted length, made of the places that are in the video."""
        wanted = self.num_frames_per_clip
        if len(found) == wanted:
            return found
        if self.policy == "error":
            raise ValueError("a clip goes beyond the end of the video, and policy='error'")
        if self.policy == "wrap":
            return (found * math.ceil(wanted / len(found)))[:wanted]
        return found + found[-1:] * (wanted - len(found))

    def __call__(self, decoder: Any, sample: int) -> Any:
        from torchcodec import samplers

        return getattr(samplers, self._name())(decoder, **vars(self)).data


@dataclass(frozen=True, repr=False)
class _AtIndices(_ByPolicy):
    """Clips of frames whose numbers are equally far apart."""

    num_indices_between_frames: int
    sampling_range_start: int
    sampling_range_end: int | None

    def check(self) -> None:
        super().check()
        if self.num_indices_between_frames < 1:
            raise ValueError(
                f"num_indices_between_frames ({self.num_indices_between_frames}) must be strictly positive"
            )

    def _range(self, count: int) -> tuple[int, int]:
        """Returns the first number that a clip may begin with, and the first that it may not."""
        if count < 1:
            raise ValueError("the video has no frames")
        start, end = self.sampling_range_start, self.sampling_range_end
        start = start + count if start < 0 else start
        span = self.num_indices_between_frames * (self.num_frames_per_clip - 1) + 1
        if end is None:
            end = max(count - span + 1, 1)
        else:
            end = min(end + count if end < 0 else end, count)
        if not 0 <= start < min(end, count):
            raise ValueError(
                f"sampling_range_start ({self.sampling_range_start}) must be smaller than sampling_range_end, which is "
                f"{end} for this video of {count} frames"
            )
        return start, end

    def choose(self, video: FrameTimes, draws: Sequence[float], sample: int) -> WantedFrames:
        count = video.num_frames or 0
        start, end = self._range(count)
        numbers: list[int] = []
        for begin in self._begins(start, end, draws):
            after = begin + self.num_indices_between_frames * self.num_frames_per_clip
            numbers += self._complete(list(range(begin, min(after, count), self.num_indices_between_frames)))
        return WantedFrames(numbers)

    @abstractmethod
    def _begins(self, start: int, end: int, draws: Sequence[float]) -> Sequence[int]:
        """Returns the number of each clip's first frame."""


class _RandomIndices(_AtIndices):
    is_random = True

    def _begins(self, start: int, end: int, draws: Sequence[float]) -> Sequence[int]:
        return [start + int(draw * (end - start)) for draw in draws]

    def _name(self) -> str:
        return clips_at_random_indices.__name__


class _RegularIndices(_AtIndices):
    def _begins(self, start: int, end: int, draws: Sequence[float]) -> Sequence[int]:
        import torch

        found: list[int] = torch.linspace(start, end - 1, steps=self.num_clips, dtype=torch.int).tolist()
        return found

    def _name(self) -> str:
        return clips_at_regular_indices.__name__


@dataclass(frozen=True, repr=False)
class _RandomTimestamps(_ByPolicy):
    """Clips whose frames are shown at times that are equally far apart."""

    seconds_between_frames: float | None
    sampling_range_start: float | None
    sampling_range_end: float | None
    is_random = True

    def check(self) -> None:
        super().check()
        if self.seconds_between_frames is not None and self.seconds_between_frames <= 0:
            raise ValueError(f"seconds_between_frames ({self.seconds_between_frames}) must be > 0")

    def choose(self, video: FrameTimes, draws: Sequence[float], sample: int) -> WantedFrames:
        if video.average_fps is None or video.end_stream_seconds is None:
            raise ValueError("the frame rate or the end of the video is unknown; choose frames by their indices")
        between = 1 / video.average_fps if self.seconds_between_frames is None else self.seconds_between_frames
        first, last = video.begin_stream_seconds, video.end_stream_seconds
        start = first if self.sampling_range_start is None else self.sampling_range_start
        end = self.sampling_range_end
        end = last - (self.num_frames_per_clip - 1) * between if end is None else end
        if not first <= start < last or start >= end or end <= first:
            raise ValueError(
                f"a clip cannot begin between {start} and {end} seconds: the video lasts from {first} to {last}"
            )
        width = min(end, last) - start
        seconds: list[float] = []
        for draw in draws:
            begin = draw * width + start
            each = (begin + number * between for number in range(self.num_frames_per_clip))
            seconds += self._complete([one for one in each if one < last])
        return WantedFrames(seconds=seconds)

    def _name(self) -> str:
        return clips_at_random_timestamps.__name__


def clips_at_random_indices(
    *,
    num_clips: int = 1,
    num_frames_per_clip: int = 1,
    num_indices_between_frames: int = 1,
    sampling_range_start: int = 0,
    sampling_range_end: int | None = None,
    policy: Policy = "repeat_last",
) -> ClipSampler:
    """Clips that begin at random frames; see ``torchcodec.samplers.clips_at_random_indices``.

    Args:
        num_clips: clips a sample.
        num_frames_per_clip: frames a clip.
        num_indices_between_frames: 1: consecutive frames; 4: every fourth.
        sampling_range_start: first frame that a clip may begin with; negative: counted from the end.
        sampling_range_end: first frame that a clip may not begin with; None: clips do not go beyond the end, if the
            video is long enough.
        policy: what completes a clip that goes beyond the end: ``"repeat_last"``, ``"wrap"``, or ``"error"``.
    """
    return checked(
        _RandomIndices(
            num_clips, num_frames_per_clip, policy, num_indices_between_frames, sampling_range_start, sampling_range_end
        )
    )


def clips_at_regular_indices(
    *,
    num_clips: int = 1,
    num_frames_per_clip: int = 1,
    num_indices_between_frames: int = 1,
    sampling_range_start: int = 0,
    sampling_range_end: int | None = None,
    policy: Policy = "repeat_last",
) -> ClipSampler:
    """Clips that begin at equally spaced frames; see ``torchcodec.samplers.clips_at_regular_indices``.

    Args:
        num_clips, num_frames_per_clip, num_indices_between_frames, sampling_range_start, sampling_range_end, policy: as
            in `clips_at_random_indices`.
    """
    return checked(
        _RegularIndices(
            num_clips, num_frames_per_clip, policy, num_indices_between_frames, sampling_range_start, sampling_range_end
        )
    )


def clips_at_random_timestamps(
    *,
    num_clips: int = 1,
    num_frames_per_clip: int = 1,
    seconds_between_frames: float | None = None,
    sampling_range_start: float | None = None,
    sampling_range_end: float | None = None,
    policy: Policy = "repeat_last",
) -> ClipSampler:
    """Clips that begin at random times; see ``torchcodec.samplers.clips_at_random_timestamps``.

    Args:
        num_clips: clips a sample.
        num_frames_per_clip: frames a clip.
        seconds_between_frames: None: the average duration of a frame.
        sampling_range_start, sampling_range_end: seconds between which a clip begins; None: those of the video, and
            clips do not go beyond its end.
        policy: as in `clips_at_random_indices`.
    """
    return checked(
        _RandomTimestamps(
            num_clips, num_frames_per_clip, policy, seconds_between_frames, sampling_range_start, sampling_range_end
        )
    )


def checked(sampler: ClipSampler) -> ClipSampler:
    """Returns the sampler. Raises TypeError or ValueError as `ClipSampler.check`."""
    sampler.check()
    return sampler

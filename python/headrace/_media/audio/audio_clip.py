"""Which part of an audio file becomes a sample, and how: the arguments of `headrace.Audio`, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from headrace._base.checks import whole_number
from headrace._recipe.steps.draw_columns import Column

CROPS = ("random", "center", "start")
_MOST_SAMPLES = 2**31 - 1


@dataclass(frozen=True)
class AudioClip:
    """A part of an audio file.

    Attributes:
        samples: length in samples of each channel, at `sample_rate`; None: the whole file.
        sample_rate: in Hz.
        channels: number of channels of the waveform.
        crop: where in a longer file: "random", "center" or "start".
        lengths: whether a sample is the waveform with its length before padding.
    """

    samples: int | None
    sample_rate: int | None
    channels: int | None
    crop: str
    lengths: bool

    @classmethod
    def checked(
        cls, seconds: object, sample_rate: object, num_channels: object, crop: object, lengths: object
    ) -> AudioClip:
        """Returns the clip of the arguments of `headrace.Audio`.

        Raises:
            TypeError, ValueError: one of them has no meaning; one sentence.
        """
        rate = None if sample_rate is None else whole_number("sample_rate", sample_rate, smallest=1)
        channels = None if num_channels is None else whole_number("num_channels", num_channels, smallest=1)
        if crop not in CROPS:
            raise ValueError(f"crop must be 'random', 'center' or 'start', not {crop!r}")
        samples = None
        if seconds is not None:
            if rate is None or channels is None:
                raise ValueError(
                    "seconds= makes all samples of one shape, which also needs sample_rate= and num_channels="
                )
            samples = _count_samples(seconds, rate)
        if not isinstance(lengths, bool):
            raise TypeError(f"lengths must be True or False, not {lengths!r}")
        return cls(samples, rate, channels, str(crop), lengths)

    @property
    def columns(self) -> tuple[Column, ...]:
        """How the draw of a sample is computed: the place of the crop, which is uniform in [0, 1)."""
        return (Column(),)

    @property
    def draws(self) -> bool:
        """Whether the place follows from a draw."""
        return self.samples is not None and self.crop == "random"

    def begin(self, total: int, draw: float) -> int:
        """Returns the first sample of a file of `total` samples.

        Args:
            draw: uniform in [0, 1); read for a random crop alone.
        """
        last = total - self.samples if self.samples is not None else 0
        if last <= 0 or self.crop == "start":
            return 0
        return last // 2 if self.crop == "center" else min(last, math.floor(draw * (last + 1)))

    def __str__(self) -> str:
        what = "whole files" if self.samples is None else f"{self.crop} {self.samples} samples"
        rate = "their own rates" if self.sample_rate is None else f"{self.sample_rate} Hz"
        channels = "their own channels" if self.channels is None else f"{self.channels} channels"
        return f"{what}, {rate}, {channels}"


def _count_samples(seconds: Any, rate: int) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"seconds must be a number, not {seconds!r}")
    if not (math.isfinite(seconds) and 1 <= round(float(seconds) * rate) <= _MOST_SAMPLES):
        raise ValueError(f"seconds={seconds!r} at {rate} Hz must be from 1 to 2^31 - 1 samples, not {seconds * rate:g}")
    return round(float(seconds) * rate)

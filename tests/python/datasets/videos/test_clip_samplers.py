"""Clips consist of the frames that torchcodec's samplers choose."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import headrace
from headrace.datasets import clips_at_random_indices, clips_at_random_timestamps, clips_at_regular_indices
from video_files import why_no_torchcodec

if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from torchcodec import FrameBatch, samplers


class Recorder:
    """A decoder that returns the numbers, or the times, of the frames that it is asked for."""

    def __init__(self, frames: int, begin: float = 0.0, rate: float = 30.0) -> None:
        self.frames = frames
        self.metadata = SimpleNamespace(
            num_frames=frames, average_fps=rate, begin_stream_seconds=begin, end_stream_seconds=begin + frames / rate
        )

    def __len__(self) -> int:
        return self.frames

    def _batch(self, asked: Any) -> FrameBatch:
        values = torch.tensor([float(one) for one in asked], dtype=torch.float64)
        return FrameBatch(values.view(-1, 1, 1, 1), values, values)

    def get_frames_at(self, indices: Any) -> FrameBatch:
        return self._batch(indices)

    def get_frames_played_at(self, seconds: Any) -> FrameBatch:
        return self._batch(seconds)


def frames_or_error(make: Any) -> list[float] | None:
    """The frames; None where there are none."""
    try:
        found = make()
    except ValueError:
        return None
    if isinstance(found, torch.Tensor):
        return [float(one) for one in found.flatten()]
    return [float(one) for one in found.numbers or found.seconds]


@pytest.mark.parametrize("policy", ["repeat_last", "wrap", "error"])
@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_numbers_of_frames_are_torchcodecs(count: int, policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [0.0, 0.37, 0.999999]
    monkeypatch.setattr(
        torch,
        "randint",
        lambda low, high, size: torch.tensor([low + int(one * (high - low)) for one in draws[: size[0]]]),
    )
    video, compared = Recorder(count), 0
    for clips, frames, stride in itertools.product((1, 3), (1, 4), (1, 3)):
        for begin, end in [(0, None), (2, None), (-3, None), (0, 5), (1, -1), (3, 100), (0, 1), (90, None), (5, 2)]:
            options: dict[str, Any] = {
                "num_clips": clips,
                "num_frames_per_clip": frames,
                "num_indices_between_frames": stride,
                "sampling_range_start": begin,
                "sampling_range_end": end,
                "policy": policy,
            }
            for ours, theirs in (
                (clips_at_random_indices, samplers.clips_at_random_indices),
                (clips_at_regular_indices, samplers.clips_at_regular_indices),
            ):
                if begin < 0 and begin + count < 0:  # torchcodec fails later, when it decodes frame -2
                    continue
                sampler = ours(**options)
                expected = frames_or_error(lambda: theirs(video, **options).data)  # noqa: B023
                made = frames_or_error(lambda: sampler.choose(video.metadata, draws[: sampler.drawn], 0))  # noqa: B023
                assert made == expected, sampler
                compared += expected is not None
    assert compared > 3


@pytest.mark.parametrize("begin", [0.0, -0.2, 1.5])
def test_times_of_frames_are_torchcodecs(begin: float, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [0.0, 0.37, 0.999999]
    monkeypatch.setattr(torch, "rand", lambda count, dtype: torch.tensor(draws[:count], dtype=dtype))
    compared = 0
    for count, clips, frames, between, policy in itertools.product(
        (1, 60), (1, 3), (1, 5), (None, 0.05, 0.7), ("repeat_last", "wrap", "error")
    ):
        video = Recorder(count, begin)
        for first, last in [
            (None, None),
            (begin, begin + 1),
            (begin + 0.5, None),
            (begin - 1, None),
            (None, begin - 1),
        ]:
            options: dict[str, Any] = {
                "num_clips": clips,
                "num_frames_per_clip": frames,
                "seconds_between_frames": between,
                "sampling_range_start": first,
                "sampling_range_end": last,
                "policy": policy,
            }
            sampler = clips_at_random_timestamps(**options)
            expected = frames_or_error(lambda: samplers.clips_at_random_timestamps(video, **options).data)  # noqa: B023
            made = frames_or_error(lambda: sampler.choose(video.metadata, draws[: sampler.drawn], 0))  # noqa: B023
            assert made == expected, sampler
            compared += expected is not None
    assert compared > 20


def test_uniform_frames() -> None:
    for count, wanted in itertools.product((1, 5, 1800), (1, 8, 32)):
        expected = np.linspace(0, count - 1, wanted, dtype=int).tolist()
        sampler = headrace.uniform_frames(wanted)
        assert sampler.choose(Recorder(count).metadata, (), 0).numbers == expected
        assert sampler(Recorder(count), 0).flatten().tolist() == expected


def test_a_sampler_calls_torchcodecs() -> None:
    sampler = clips_at_regular_indices(num_clips=2, num_frames_per_clip=3, num_indices_between_frames=2)
    assert sampler(Recorder(50), 0).flatten().tolist() == [0, 2, 4, 45, 47, 49]
    for random in (clips_at_random_indices(num_frames_per_clip=4), clips_at_random_timestamps(num_frames_per_clip=4)):
        assert sampler.shape == (2, 3) and random(Recorder(50), 0).shape == (1, 4, 1, 1, 1)


def test_given_frames() -> None:
    numbers, seconds = [[3, -1, 3], [0, 1, 2]], torch.tensor([[0.5, 0.1], [0.0, 0.2]])
    video = Recorder(50)
    assert headrace.frames_at(numbers).choose(video.metadata, (), 0).numbers == [3, 49, 3]
    assert headrace.frames_at(numbers)(video, 1).flatten().tolist() == [0, 1, 2]
    assert headrace.frames_played_at(seconds).choose(video.metadata, (), 1).seconds == seconds[1].double().tolist()
    assert headrace.frames_played_at(seconds)(video, 0).flatten().tolist() == seconds[0].double().tolist()
    assert headrace.frames_at(numbers).identity(0) != headrace.frames_at(numbers).identity(1)
    assert repr(headrace.frames_played_at(seconds)) == "frames_played_at(2 samples, 2 frames)"
    wrongs: list[Any] = [[[0.5]], [1, 2], [[]]]
    for wrong in wrongs:
        with pytest.raises((TypeError, ValueError), match=r"indices|num_frames"):
            headrace.frames_at(wrong)
    with pytest.raises(ValueError, match="2 samples, but there are 1"):
        headrace.Videos(["video.mp4"], clips=headrace.frames_at(numbers))


def test_wrong_arguments() -> None:
    for make, message in (
        (lambda: clips_at_random_indices(num_clips=0), "num_clips"),
        (lambda: clips_at_regular_indices(num_frames_per_clip=-1), "num_frames_per_clip"),
        (lambda: clips_at_random_indices(num_indices_between_frames=0), "num_indices_between_frames"),
        (lambda: clips_at_random_indices(policy="loop"), "policy"),  # type: ignore[arg-type]
        (lambda: clips_at_random_timestamps(seconds_between_frames=0), "seconds_between_frames"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match="num_frames"):
        headrace.uniform_frames(2.5)  # type: ignore[arg-type]


def test_a_sampler_shows_what_was_given() -> None:
    sampler = clips_at_random_indices(num_frames_per_clip=16, num_indices_between_frames=4)
    assert repr(sampler) == "clips_at_random_indices(num_frames_per_clip=16, num_indices_between_frames=4)"
    assert repr(headrace.uniform_frames(8)) == "uniform_frames(num_frames=8)"
    assert sampler == clips_at_random_indices(num_frames_per_clip=16, num_indices_between_frames=4)
    assert sampler != clips_at_random_indices(num_frames_per_clip=16)

"""`headrace.Audio`: its samples, its arguments, and torch's own loader over it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from audio_files import ENCODED, RATE, expected_clip, make_encoded, make_wav
from headrace import Audio
from video_files import why_no_torchcodec

pytestmark = pytest.mark.skipif(why_no_torchcodec() is not None, reason=str(why_no_torchcodec()))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("audio")
    paths = [folder / f"{number}.wav" for number in range(6)]
    for number, path in enumerate(paths):
        path.write_bytes(make_wav("s16", 4000 + 1500 * number, 1 + number % 2, RATE, seed=number))
    return [*paths, make_encoded(folder / "tone.mp3", *ENCODED["layer3.mp3"])]


def test_crops_of_one_length(files: list[Path]) -> None:
    for crop in ("start", "center"):
        dataset = Audio(files, seconds=0.3, sample_rate=RATE, crop=crop, num_channels=2)
        for index in range(6):
            begin = (1500 * index + 4000 - 4800) // 2 if crop == "center" and index else 0
            assert torch.equal(dataset[index], expected_clip(files[index], begin, 4800, channels=2))
            assert dataset[index].is_contiguous()


def test_random_crops_follow_torchs_generator(files: list[Path]) -> None:
    dataset = Audio(files, seconds=0.1, sample_rate=RATE)
    torch.manual_seed(3)
    made = dataset[5]
    torch.manual_seed(3)
    begin = math.floor(torch.rand((), dtype=torch.float64).item() * (11500 - 1600 + 1))
    assert torch.equal(made, expected_clip(files[5], begin, 1600, channels=1))


def test_labels_and_lengths(files: list[Path]) -> None:
    dataset = Audio(
        files, list("abcdefg"), seconds=0.5, sample_rate=RATE, lengths=True, target_transform=lambda one: one + "!"
    )
    (waveform, length), label = dataset[-5]
    assert (waveform.shape, length, label) == ((1, 8000), 7000, "c!")
    assert not waveform[:, 7000:].any() and waveform[:, :7000].any()


def test_whole_files(files: list[Path]) -> None:
    whole = Audio(files, num_channels=None)
    assert [whole[index].shape for index in range(3)] == [(1, 4000), (2, 5500), (1, 7000)]
    assert Audio(files, lengths=True)[1][1] == 5500
    assert Audio(files, sample_rate=8000)[0].shape == (1, 2000)


def test_torchs_loader_takes_it(files: list[Path]) -> None:
    dataset = Audio(files, list(range(7)), seconds=0.3, sample_rate=RATE, crop="center", lengths=True)
    batches: list[Any] = list(TorchDataLoader(dataset, batch_size=4, num_workers=1))
    (waveforms, lengths), labels = batches[1]
    assert waveforms.shape == (3, 1, 4800) and lengths.dtype == torch.int64 and labels.tolist() == [4, 5, 6]


def test_errors_of_files_are_torchcodecs(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("no sound " * 50)
    dataset = Audio([tmp_path / "text.wav", tmp_path / "missing.wav"], seconds=1, sample_rate=RATE)
    with pytest.raises(RuntimeError, match=r"text\.wav|Invalid data"):
        dataset[0]
    with pytest.raises(FileNotFoundError):
        dataset[1]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"seconds": 1}, ValueError, "also needs sample_rate"),
        ({"seconds": 1, "sample_rate": RATE, "num_channels": None}, ValueError, "also needs sample_rate"),
        ({"seconds": 0, "sample_rate": RATE}, ValueError, "1 to 2"),
        ({"seconds": math.nan, "sample_rate": RATE}, ValueError, "1 to 2"),
        ({"seconds": 1e9, "sample_rate": RATE}, ValueError, "1 to 2"),
        ({"seconds": "1", "sample_rate": RATE}, TypeError, "number"),
        ({"seconds": True, "sample_rate": RATE}, TypeError, "number"),
        ({"sample_rate": 0}, ValueError, "sample_rate"),
        ({"sample_rate": 16e3}, TypeError, "whole number"),
        ({"num_channels": 0}, ValueError, "num_channels"),
        ({"crop": "end"}, ValueError, "'random', 'center' or 'start'"),
        ({"lengths": 1}, TypeError, "True or False"),
        ({"labels": [1]}, ValueError, "2 paths but 1 labels"),
        ({"target_transform": str}, ValueError, "no labels"),
    ],
)
def test_refused_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Audio(["a.wav", "b.wav"], **arguments)


def test_refused_paths() -> None:
    with pytest.raises(TypeError, match="a list of paths"):
        Audio("a.wav")
    with pytest.raises(ValueError, match="not URLs"):
        Audio(["https://example.com/a.wav"])


def test_names() -> None:
    assert headrace.Audio is headrace.datasets.Audio is Audio
    text = repr(Audio(["a.wav"], seconds=2, sample_rate=RATE))
    assert text == "Audio(1 files, random 32000 samples, 16000 Hz, 1 channels)"

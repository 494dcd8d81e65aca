"""Slices of files for torchcodec and by libsndfile: the values are those that torchcodec gives for the whole files."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_files import CODINGS, ENCODED, chunk, format_chunk, make_encoded, make_samples, make_wav, riff
from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.clip_reader import read_clip
from headrace._media.audio.flac_slices import read_flac_slice, soundfile
from headrace._media.audio.library_audio import read_waveform
from headrace._media.audio.wav_slices import read_wav_slice
from video_files import why_no_torchcodec

pytestmark = pytest.mark.skipif(why_no_torchcodec() is not None, reason=str(why_no_torchcodec()))
needs_soundfile = pytest.mark.skipif(soundfile() is None, reason="no soundfile")
PLACES = (0.0, 0.2718, 0.618, 0.999)


def clip_of(samples: int, rate: int, channels: int) -> AudioClip:
    return AudioClip(samples, rate, channels, "random", False)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_wavs_of_other_rates_and_channels(tmp_path: Path, coding: str, rate: int) -> None:
    path = str(tmp_path / "a.wav")
    for channels, wanted in ((1, 1), (2, 1), (1, 2), (3, 2), (6, 1)):
        Path(path).write_bytes(make_wav(coding, rate // 2, channels, rate))
        clip = clip_of(3001, 16000, wanted)
        for draw in PLACES:
            sliced = read_wav_slice(path, clip, draw)
            assert sliced is not None and torch.equal(sliced, read_waveform(path, clip, draw)), (channels, wanted, draw)


def test_every_place_near_the_borders_of_packets(tmp_path: Path) -> None:
    path = str(tmp_path / "a.wav")
    Path(path).write_bytes(make_wav("s16", 8192, 1, 32000))
    clip = clip_of(700, 16000, 1)
    spare = 8192 // 2 - 700
    for begin in [*range(0, 4), *range(1020, 1028), *range(1366, 1374), *range(spare - 3, spare + 1)]:
        draw = (begin + 0.5) / (spare + 1)
        sliced = read_wav_slice(path, clip, draw)
        assert sliced is not None and torch.equal(sliced, read_waveform(path, clip, draw)), begin


def test_short_files_and_speakers(tmp_path: Path) -> None:
    path = str(tmp_path / "a.wav")
    Path(path).write_bytes(make_wav("s24", 900, 2, 44100))
    clip = clip_of(16000, 16000, 1)
    sliced = read_wav_slice(path, clip, 0.5)
    assert sliced is not None and sliced.shape[1] < 400 and torch.equal(sliced, read_waveform(path, clip, 0.5))
    data = chunk(b"data", make_samples("s16", 9000, 4))
    for speakers in (0x33, 0x603):
        Path(path).write_bytes(riff(chunk(b"fmt ", format_chunk("s16", 4, 44100, speakers=speakers)), data))
        sliced = read_wav_slice(path, clip_of(1000, 16000, 2), 0.7)
        assert sliced is not None and torch.equal(sliced, read_waveform(path, clip_of(1000, 16000, 2), 0.7))


@needs_soundfile
@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
def test_flacs_are_seeked(tmp_path: Path, subtype: str) -> None:
    path = str(tmp_path / "a.flac")
    for rate, channels in itertools.product((16000, 44100), (1, 2, 6)):
        noise = np.random.default_rng(5).uniform(-1, 1, (rate, channels))
        soundfile().write(path, noise, rate, subtype=subtype)
        for wanted in {channels, 1}:
            clip = clip_of(rate // 3, rate, wanted)
            for draw in PLACES:
                seeked = read_flac_slice(path, clip, draw)
                if (channels, wanted) == (6, 1):
                    assert seeked is None
                else:
                    assert seeked is not None and torch.equal(seeked, read_waveform(path, clip, draw))
    assert read_flac_slice(path, clip_of(100, 8000, 6), 0.5) is None


@needs_soundfile
def test_damaged_flacs_are_torchcodecs(tmp_path: Path) -> None:
    path = make_encoded(tmp_path / "a.flac", *ENCODED["16.flac"])
    whole = path.read_bytes()
    clip = clip_of(20000, 16000, 1)
    for damaged in (whole[: len(whole) // 2], whole[:50], whole[:40000] + bytes(4) + whole[40004:]):
        path.write_bytes(damaged)
        assert read_flac_slice(str(path), clip, 0.5) is None


@pytest.mark.parametrize("name", ENCODED)
def test_other_files_are_torchcodecs(tmp_path: Path, name: str) -> None:
    path = str(make_encoded(tmp_path / name, *ENCODED[name], rate=48000))
    for rate, channels in ((48000, 1), (48000, 2), (16000, 1), (11025, 2)):
        clip = clip_of(rate // 4, rate, channels)
        for draw in (0.0, 0.53, 0.97):
            assert torch.equal(read_clip(path, clip, draw), read_waveform(path, clip, draw)), (rate, channels, draw)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.wav")
    path.write_bytes(make_wav("s16", 2000, 1, 8000))
    sliced = read_wav_slice(str(path), clip_of(500, 16000, 1), 0.4)
    assert sliced is not None and sliced.shape == (1, 500)


def test_a_missing_file_raises() -> None:
    with pytest.raises(FileNotFoundError):
        read_clip("/no/such/file.wav", clip_of(500, 16000, 1), 0.4)

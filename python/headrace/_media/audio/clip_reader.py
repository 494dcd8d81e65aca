"""Chooses what reads a clip of a file that native threads do not read."""

from __future__ import annotations

import torch

from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.flac_slices import read_flac_slice, soundfile
from headrace._media.audio.library_audio import read_waveform
from headrace._media.audio.wav_slices import read_wav_slice


def read_clip(path: str, clip: AudioClip, draw: float) -> torch.Tensor:
    """Returns the samples of a clip, float32 (channels, n), n at most `clip.samples`: without padding.

    Raises:
        OSError: the file cannot be read.
        Exception: what torchcodec raises.
    """
    for read in (read_wav_slice, read_flac_slice):
        if (made := read(path, clip, draw)) is not None:
            return made
    return read_waveform(path, clip, draw)


def libraries() -> str:
    """Returns what reads such files, for messages."""
    flac = "libsndfile seeks in FLAC files; " if soundfile() is not None else ""
    return f"{flac}torchcodec decodes the others, only the needed part of a WAV of another rate or more channels"

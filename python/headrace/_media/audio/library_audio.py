"""Waveforms by torchcodec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from headrace._media.audio.audio_clip import AudioClip
from headrace._media.library_decoders import open_decoder

if TYPE_CHECKING:
    from torchcodec.decoders import AudioDecoder


def open_audio(source: str | bytes, clip: AudioClip) -> AudioDecoder:
    """Returns torchcodec's decoder of a file, by path, or of bytes.

    Raises:
        NoTorchcodec: torchcodec cannot be imported.
        Exception: what torchcodec raises.
    """
    options = {"sample_rate": clip.sample_rate, "num_channels": clip.channels}
    decoder: AudioDecoder = open_decoder("AudioDecoder", source, **options)
    return decoder


def read_waveform(source: str | bytes, clip: AudioClip, draw: float) -> torch.Tensor:
    """Returns the samples of a clip, float32 (channels, n), n at most `clip.samples`: without padding.

    Args:
        source: a path, or the bytes of a file.

    Raises:
        OSError: the file cannot be read.
        Exception: what torchcodec raises.
    """
    if isinstance(source, str):
        Path(source).stat()  # torchcodec's error for a missing file is a RuntimeError
    decoder = open_audio(source, clip)
    if clip.samples is None:
        whole: torch.Tensor = decoder.get_all_samples().data
        return whole
    rate = decoder.metadata.sample_rate if clip.sample_rate is None else clip.sample_rate
    seconds = decoder.metadata.duration_seconds
    if rate is None or seconds is None:
        raise ValueError("the file does not say how long it is")
    begin = clip.begin(round(seconds * rate), draw)
    samples: torch.Tensor = decoder.get_samples_played_in_range(begin / rate, (begin + clip.samples) / rate).data
    return samples[:, : clip.samples]

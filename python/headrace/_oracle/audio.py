"""The oracle of audio: a sample by torchcodec alone, as a Dataset of the user's would call it."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.library_audio import open_audio


def reference_clip(path: str, clip: AudioClip, draw: float) -> torch.Tensor | tuple[torch.Tensor, int]:
    """Returns one finished sample.

    Args:
        draw: the sample's draw, uniform in [0, 1).

    Returns:
        The waveform, float32 (channels, samples), padded with zeros; with its length before that if the clip asks.

    Raises:
        OSError: the file cannot be read.
        Exception: what torchcodec raises.
    """
    Path(path).stat()  # torchcodec's error for a missing file is a RuntimeError
    decoder = open_audio(path, clip)
    if clip.samples is None:
        whole = decoder.get_all_samples().data
        return (whole, whole.shape[1]) if clip.lengths else whole
    assert clip.sample_rate is not None
    wanted, rate, known = clip.samples, clip.sample_rate, decoder.metadata.duration_seconds
    if known is None:
        raise ValueError("the file does not say how long it is")
    spare = max(0, round(known * rate) - wanted)
    places = {"start": 0, "center": spare // 2, "random": min(spare, math.floor(draw * (spare + 1)))}
    begin = places[clip.crop]
    made = decoder.get_samples_played_in_range(begin / rate, (begin + wanted) / rate).data[:, :wanted]
    length = made.shape[1]
    padded = torch.nn.functional.pad(made, (0, wanted - length)).contiguous()
    return (padded, length) if clip.lengths else padded

"""Clips of FLAC files by libsndfile, which seeks in them; torchcodec decodes them from the beginning."""

from __future__ import annotations

import functools
from typing import Any

import torch

from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.wav_rule import probed_arithmetic

_EXACT = ("PCM_S8", "PCM_16", "PCM_24")  # integers that a float32 holds, as those of both libraries do
_MOST_FRAMES = 1 << 40


@functools.cache
def soundfile() -> Any:
    """Returns the module; None if it cannot be imported."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: without libsndfile
        return None
    return soundfile


def read_flac_slice(path: str, clip: AudioClip, draw: float) -> torch.Tensor | None:
    """Returns the samples of a clip, float32 (channels, n), as `read_waveform` does; None if the file is no FLAC of the
    clip's rate, or of other channels than one or two that become one, or has an error, which torchcodec then describes.

    Raises:
        OSError: the file cannot be read.
    """
    library = soundfile()
    if library is None or clip.samples is None:
        return None
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a path may be bytes that are no text
        if file.read(4) != b"fLaC":
            return None
        file.seek(0)
        try:
            with library.SoundFile(file.fileno(), closefd=False) as flac:
                known = 0 < flac.frames < _MOST_FRAMES and flac.format == "FLAC" and flac.subtype in _EXACT
                weight = _weight_of(flac.channels, clip)
                if not known or weight == 0.0 or flac.samplerate != clip.sample_rate:
                    return None
                begin = clip.begin(flac.frames, draw)
                count = min(clip.samples, flac.frames - begin)
                flac.seek(begin)
                made = flac.read(count, dtype="float32", always_2d=True)
                if len(made) != count or "ERROR" in flac.extra_info:
                    return None
        except (RuntimeError, OSError):  # soundfile's own errors are RuntimeErrors
            return None
    samples = torch.from_numpy(made.T)
    return samples if weight == 1.0 else samples[:1] * weight + samples[1:] * weight


def _weight_of(channels: int, clip: AudioClip) -> float:
    """Returns the weight of a file's channels in those of the clip; 0: torchcodec mixes them."""
    if channels == clip.channels:
        return 1.0
    return probed_arithmetic()[1] if (channels, clip.channels) == (2, 1) else 0.0

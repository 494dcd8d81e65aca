"""The clip as native threads read it from WAV files, as far as these give the values of the installed FFmpeg."""

from __future__ import annotations

import functools
import struct

import numpy as np
import torch

from headrace._base.native import core
from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.library_audio import open_audio
from headrace._media.library_decoders import NoTorchcodec

#: How samples are stored: the format's tag, bytes of a sample; in the order of WavCoding in csrc/core/audio.
CODINGS = ((1, 1), (1, 2), (1, 3), (1, 4), (3, 4), (3, 8))
#: Of the noise, in Hz.
NOISE_RATE = 8000
#: The weights that versions of FFmpeg give left and right in their sum.
_WEIGHTS = (float(np.float32(np.sqrt(0.5))), 0.5)


def native_clip(clip: AudioClip) -> core.Clip:
    """Returns the clip for the core.

    What native threads would make is compared with torchcodec's samples of small files in memory, once a process. Where
    one differs, torchcodec makes those samples. Without torchcodec nothing is compared.
    """
    assert clip.samples is not None and clip.sample_rate is not None and clip.channels is not None
    codings, weight = probed_arithmetic()
    return core.Clip(clip.samples, clip.sample_rate, clip.channels, clip.crop, stereo_weight=weight, codings=codings)


@functools.cache
def probed_arithmetic() -> tuple[int, float]:
    """Returns which codings are converted as the installed FFmpeg does, a bit each, and the weight of left and right in
    their sum; 0: none is known."""
    try:
        agreeing = [number for number, _ in enumerate(CODINGS) if _agrees(number, 2, 0.0)]
        weights = [one for one in _WEIGHTS if all(_agrees(number, 1, one) for number in range(5))]
    except NoTorchcodec:
        return (1 << len(CODINGS)) - 1, _WEIGHTS[0]
    return sum(1 << number for number in agreeing), weights[0] if weights else 0.0


def _agrees(number: int, channels: int, weight: float) -> bool:
    """Returns whether a stereo file of noise gets torchcodec's values."""
    wav = make_noise(number)
    clip = AudioClip(None, NOISE_RATE, channels, "start", False)
    theirs = open_audio(wav, clip).get_all_samples().data
    ours = core.Clip(theirs.shape[1], NOISE_RATE, channels, "start", stereo_weight=weight)
    made, _ = core.wav_clip(wav, ours)
    return torch.equal(torch.from_numpy(made), theirs)


def make_noise(number: int, frames: int = 500) -> bytes:
    """Returns a stereo WAV of noise, the largest values among it, whose samples are stored in one of the codings."""
    tag, size = CODINGS[number]
    random = np.random.default_rng(1)
    if tag == 3:
        noise = random.uniform(-1, 1, (frames, 2)).astype(f"<f{size}")
        noise[:3] = [[1, 1], [-1, -1], [1, -1]]
        data = noise.tobytes()
    else:
        words = random.integers(0, 256, (frames, 2, size), dtype=np.uint8)
        words[:4] = np.array([0, 255, 128, 127], dtype=np.uint8)[:, None, None]
        data = words.tobytes()
    return join_wav(struct.pack("<HHIIHH", tag, 2, NOISE_RATE, NOISE_RATE * 2 * size, 2 * size, 8 * size), data)


def join_wav(head: bytes, data: bytes) -> bytes:
    """Returns a WAV of the content of its chunks: the format and the samples."""
    chunks = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks

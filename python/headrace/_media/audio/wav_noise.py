"""Small WAV files of noise, on which the arithmetic of the installed FFmpeg is found out."""

from __future__ import annotations

import struct

import numpy as np

#: How samples are stored: the format's tag, bytes of a sample; in the order of WavCoding in csrc/core/audio.
CODINGS = ((1, 1), (1, 2), (1, 3), (1, 4), (3, 4), (3, 8))
#: Of the noise, in Hz.
NOISE_RATE = 8000


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
    head = struct.pack("<HHIIHH", tag, 2, NOISE_RATE, NOISE_RATE * 2 * size, 2 * size, 8 * size)
    chunks = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks

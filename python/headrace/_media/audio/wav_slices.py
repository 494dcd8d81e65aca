"""The part of a plain WAV file that a clip needs, as a small file in memory: torchcodec resamples and mixes it.

torchcodec reads a file from its beginning, and begins to resample at the packet that holds the first sample that is
asked for. The small file begins there, too, so the values are the same.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from headrace._base.native import core
from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.library_audio import open_audio, read_waveform
from headrace._media.audio.wav_rule import CODINGS, NOISE_RATE, join_wav, make_noise

_PACKET_BYTES = 4096  # of FFmpeg's packets, at most
_BYTES = tuple(size for _, size in CODINGS)  # of a sample
_F64 = 5


@dataclass(frozen=True)
class WavLayout:
    """Where the samples of a plain WAV file are; see WavHeader in csrc/core/audio."""

    coding: int
    channels: int
    speakers: int
    rate: int
    frames: int
    begin: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of each channel."""
        return _BYTES[self.coding] * self.channels

    @property
    def packet(self) -> int:
        """Frames of a packet of FFmpeg's."""
        return max(1, _PACKET_BYTES // self.frame_bytes)


def read_wav_slice(path: str, clip: AudioClip, draw: float) -> torch.Tensor | None:
    """Returns the samples of a clip, float32 (channels, n), as `read_waveform` does; None if the file is no plain WAV,
    or the installed FFmpeg reads it in another way.

    Raises:
        OSError: the file cannot be read.
        Exception: what torchcodec raises.
    """
    found = core.wav_layout(os.fsencode(path))
    if found is None or not _are_slices_exact():
        return None
    with open(path, "rb") as file:  # noqa: PTH123 - a path may be bytes that are no text

        def read(begin: int, size: int) -> bytes:
            file.seek(begin)
            return file.read(size)

        return _read_slice(read, WavLayout(*found), clip, draw)


def _read_slice(read: Callable[[int, int], bytes], layout: WavLayout, clip: AudioClip, draw: float) -> torch.Tensor:
    rate = layout.rate if clip.sample_rate is None else clip.sample_rate
    total = round(layout.frames / layout.rate * rate)
    assert clip.samples is not None
    begin = clip.begin(total, draw)
    start, stop = begin / rate, (begin + clip.samples) / rate
    # torchcodec's first and last packet.
    first = _nearest(start * layout.rate) // layout.packet * layout.packet
    packets = -(-_nearest(stop * layout.rate) // layout.packet)
    end = min(layout.frames, max(packets * layout.packet, first + layout.packet))
    stored = read(layout.begin + first * layout.frame_bytes, (end - first) * layout.frame_bytes)
    made: torch.Tensor = open_audio(_small_file(layout, stored), clip).get_all_samples().data
    # As torchcodec finds the samples in those of its packets.
    pts, count = first / layout.rate, made.shape[1]
    offset = round((start - pts) * rate) if pts < start else 0
    last = pts + count / rate
    return made[:, offset : count - round((last - stop) * rate) if stop < last else count][:, : clip.samples]


def _nearest(value: float) -> int:
    return math.floor(value + 0.5)


def _small_file(layout: WavLayout, stored: bytes) -> bytes:
    """Returns a WAV of these frames. Integers become float32, as FFmpeg makes them first: in 16-bit integers it would
    look for another stream."""
    if layout.coding == _F64:
        data, size = stored, 8
    else:
        data, size = _as_floats(layout.coding, stored).tobytes(), 4
    frame = size * layout.channels
    head = struct.pack("<HIIHH", layout.channels, layout.rate, layout.rate * frame % 2**32, frame, 8 * size)
    if layout.speakers:
        guid = struct.pack("<H", 3) + bytes.fromhex("000000001000800000aa00389b71")
        head = struct.pack("<H", 0xFFFE) + head + struct.pack("<HHI", 22, 8 * size, layout.speakers) + guid
    else:
        head = struct.pack("<H", 3) + head
    return join_wav(head, data)


def _as_floats(coding: int, stored: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    if coding == 0:
        return (np.frombuffer(stored, "u1").astype(np.float32) - np.float32(128)) * np.float32(2**-7)
    if coding == 1:
        return np.frombuffer(stored, "<i2").astype(np.float32) * np.float32(2**-15)
    if coding == 2:
        words = np.zeros((len(stored) // 3, 4), dtype=np.uint8)
        words[:, 1:] = np.frombuffer(stored, np.uint8).reshape(-1, 3)
        return words.view("<i4")[:, 0].astype(np.float32) * np.float32(2**-31)
    if coding == 3:
        return np.frombuffer(stored, "<i4").astype(np.float32) * np.float32(2**-31)
    return np.frombuffer(stored, "<f4").astype(np.float32, copy=False)


@functools.cache
def _are_slices_exact() -> bool:
    """Returns whether the slices of small files are what torchcodec makes of the whole files; found out once a
    process."""
    for coding, channels in itertools.product(range(len(_BYTES)), (1, 2)):
        wav = make_noise(coding, 3000)
        frames = 3000
        layout = WavLayout(coding, 2, 0, NOISE_RATE, frames, len(wav) - frames * 2 * _BYTES[coding])
        clip = AudioClip(500, 11025, channels, "random", False)
        for draw in (0.0, 0.3, 0.61, 0.999):
            sliced = _read_slice(lambda begin, size, wav=wav: wav[begin : begin + size], layout, clip, draw)  # type: ignore[misc]
            if not torch.equal(sliced, read_waveform(wav, clip, draw)):
                return False
    return True

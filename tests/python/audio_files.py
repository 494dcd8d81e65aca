"""Audio files of many kinds: WAVs that are written here, byte by byte, and others that ffmpeg makes."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

RATE = 16000
#: Codings of WAVs: the format's tag, bytes of a sample.
CODINGS = {"u8": (1, 1), "s16": (1, 2), "s24": (1, 3), "s32": (1, 4), "f32": (3, 4), "f64": (3, 8)}
#: Files that ffmpeg makes: name, arguments.
ENCODED = {
    "16.flac": ["-c:a", "flac"],
    "24.flac": ["-c:a", "flac", "-sample_fmt", "s32"],
    "6.flac": ["-c:a", "flac", "-ac", "6"],
    "layer3.mp3": ["-c:a", "libmp3lame"],
    "stereo.mp3": ["-c:a", "libmp3lame", "-ac", "2", "-b:a", "64k"],
    "aac.m4a": ["-c:a", "aac"],
    "5.1.m4a": ["-c:a", "aac", "-ac", "6"],
    "opus.ogg": ["-c:a", "libopus"],
    "vorbis.ogg": ["-c:a", "libvorbis"],
    "mulaw.wav": ["-c:a", "pcm_mulaw"],
    "adpcm.wav": ["-c:a", "adpcm_ms"],
    "big_endian.aiff": ["-c:a", "pcm_s16be"],
}


def make_samples(coding: str, frames: int, channels: int, seed: int = 0) -> bytes:
    """Returns stored samples: noise, with the extreme values among it."""
    tag, size = CODINGS[coding]
    random = np.random.default_rng(seed)
    if tag == 3:
        return random.uniform(-1.2, 1.2, (frames, channels)).astype(f"<f{size}").tobytes()
    words = random.integers(0, 256, (frames, channels, size), dtype=np.uint8)
    for place, byte in enumerate((0, 255, 128, 127)[:frames]):
        words[place] = byte
    return words.tobytes()


def format_chunk(coding: str, channels: int, rate: int, *, speakers: int | None = None) -> bytes:
    """Returns the bytes of a format; `speakers`: of an extensible one."""
    tag, size = CODINGS[coding]
    fields = struct.pack("<HIIHH", channels, rate, rate * channels * size, channels * size, 8 * size)
    if speakers is None:
        return struct.pack("<H", tag) + fields
    guid = struct.pack("<H", tag) + bytes.fromhex("000000001000800000aa00389b71")
    return struct.pack("<H", 0xFFFE) + fields + struct.pack("<HHI", 22, 8 * size, speakers) + guid


def chunk(name: bytes, content: bytes) -> bytes:
    """Returns a chunk of a RIFF file, with its padding."""
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def riff(*chunks: bytes) -> bytes:
    """Returns a WAV of these chunks."""
    content = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(content)) + content


def make_wav(coding: str, frames: int, channels: int = 1, rate: int = RATE, seed: int = 0) -> bytes:
    """Returns a WAV of noise."""
    return riff(
        chunk(b"fmt ", format_chunk(coding, channels, rate)),
        chunk(b"data", make_samples(coding, frames, channels, seed)),
    )


def make_rf64(coding: str, frames: int, channels: int = 1, rate: int = RATE) -> bytes:
    """Returns an RF64, whose sizes are in its first chunk."""
    data = make_samples(coding, frames, channels)
    sizes = struct.pack("<QQQI", 0, len(data), frames, 0)
    content = b"WAVE" + chunk(b"ds64", sizes) + chunk(b"fmt ", format_chunk(coding, channels, rate))
    return b"RF64" + b"\xff" * 4 + content + b"data" + b"\xff" * 4 + data


def make_encoded(path: Path, *arguments: str, rate: int = RATE, seconds: float = 1.3) -> Path:
    """Makes a file by ffmpeg, of noise and a tone, unless it is there."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("no ffmpeg")
    if not path.exists():
        sound = f"sine=440:sample_rate={rate}:duration={seconds}"
        noise = f"anoisesrc=sample_rate={rate}:duration={seconds}:amplitude=0.3:seed=7"
        mixed = ["-f", "lavfi", "-i", sound, "-f", "lavfi", "-i", noise, "-filter_complex", "amix=inputs=2"]
        command = ["ffmpeg", "-v", "error", "-y", *mixed, "-ar", str(rate), *arguments, "-bitexact", str(path)]
        subprocess.run(command, check=True, timeout=120, stdin=subprocess.DEVNULL)
    return path


def expected_clip(
    path: Path, begin: int, samples: int, *, rate: int = RATE, channels: int | None = None
) -> torch.Tensor:
    """Returns a clip as torchcodec gives it, with zeros after its end."""
    from torchcodec.decoders import AudioDecoder

    decoder = AudioDecoder(path, sample_rate=rate, num_channels=channels)
    made = decoder.get_samples_played_in_range(begin / rate, (begin + samples) / rate).data[:, :samples]
    padded = torch.zeros((made.shape[0], samples))
    padded[:, : made.shape[1]] = made
    return padded


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two waveforms are equal, NaNs and signs of zeros among them."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.contiguous().numpy().tobytes() == other.contiguous().numpy().tobytes()

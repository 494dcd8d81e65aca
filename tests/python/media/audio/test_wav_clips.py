"""Plain WAV files: the core's values are torchcodec's, and a file that is not plain is refused."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_files import CODINGS, RATE, chunk, expected_clip, format_chunk, make_rf64, make_samples, make_wav, riff
from headrace._base.native import core
from headrace._media.audio.wav_rule import probed_arithmetic
from video_files import why_no_torchcodec

needs_torchcodec = pytest.mark.skipif(why_no_torchcodec() is not None, reason=str(why_no_torchcodec()))


def clip_of(samples: int, channels: int, place: str = "random") -> core.Clip:
    codings, weight = probed_arithmetic()
    return core.Clip(samples, RATE, channels, place, stereo_weight=weight, codings=codings)


def plain_values(coding: str, stored: bytes, channels: int) -> torch.Tensor:
    """The samples by NumPy, float32 (channels, frames)."""
    if coding == "s24":
        padded = np.zeros((len(stored) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(stored, np.uint8).reshape(-1, 3)
        values = padded.view("<i4")[:, 0] / 2.0**31
    elif coding == "u8":
        values = (np.frombuffer(stored, np.uint8) - 128.0) / 128
    else:
        kind = {"s16": "<i2", "s32": "<i4", "f32": "<f4", "f64": "<f8"}[coding]
        values = np.frombuffer(stored, kind).astype(np.float64)
        values = values / {"s16": 2.0**15, "s32": 2.0**31}.get(coding, 1.0)
    return torch.from_numpy(values.astype(np.float32).reshape(-1, channels).T.copy())


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("channels", [1, 2, 3, 6, 8])
def test_samples_are_the_stored_ones(coding: str, channels: int) -> None:
    wav, stored = make_wav(coding, 137, channels), make_samples(coding, 137, channels)
    made, length = core.wav_clip(wav, core.Clip(137, RATE, channels, "start"))
    assert length == 137 and torch.equal(torch.from_numpy(made), plain_values(coding, stored, channels))
    made, length = core.wav_clip(wav, core.Clip(200, RATE, channels, "random"), 0.9)
    assert length == 137 and torch.equal(torch.from_numpy(made)[:, :137], plain_values(coding, stored, channels))
    assert not made[:, 137:].any()


@needs_torchcodec
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 6, 8])
def test_clips_are_torchcodecs(tmp_path: Path, coding: str, channels: int) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(make_wav(coding, 9000, channels))
    wav = path.read_bytes()
    for draw in (0.0, 0.123, 0.5, 0.987, np.nextafter(1.0, 0.0)):
        begin = min(8000, int(draw * 8001))
        made, _ = core.wav_clip(wav, clip_of(1000, channels), draw)
        assert torch.equal(torch.from_numpy(made), expected_clip(path, begin, 1000))
    if channels == 2 and coding != "f64":
        made, _ = core.wav_clip(wav, clip_of(9500, 1), 0.0)
        assert torch.equal(torch.from_numpy(made), expected_clip(path, 0, 9500, channels=1))


@needs_torchcodec
def test_float_samples_are_kept_as_they_are(tmp_path: Path) -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-42, 3.0, -7.5, 1e38] * 20, dtype="<f4")
    wav = riff(chunk(b"fmt ", format_chunk("f32", 1, RATE)), chunk(b"data", values.tobytes()))
    made, _ = core.wav_clip(wav, core.Clip(160, RATE, 1, "start"))
    assert made.tobytes() == values.tobytes()
    (tmp_path / "a.wav").write_bytes(wav)
    assert expected_clip(tmp_path / "a.wav", 0, 160).numpy().tobytes() == values.tobytes()


DATA = chunk(b"data", make_samples("s16", 700, 2))
PLAIN = chunk(b"fmt ", format_chunk("s16", 2, RATE))
ODD = chunk(b"data", make_samples("u8", 701, 1))
#: Files that native threads read: name, bytes.
READ = {
    "plain": riff(PLAIN, DATA),
    "long format": riff(chunk(b"fmt ", format_chunk("s16", 2, RATE) + b"\0\0"), DATA),
    "extensible": riff(chunk(b"fmt ", format_chunk("s16", 2, RATE, speakers=3)), DATA),
    "extensible, no speakers": riff(chunk(b"fmt ", format_chunk("s16", 2, RATE, speakers=0)), DATA),
    "extensible, other speakers": riff(chunk(b"fmt ", format_chunk("s16", 2, RATE, speakers=0x60)), DATA),
    "chunks before": riff(chunk(b"JUNK", b"x" * 27), PLAIN, chunk(b"fact", struct.pack("<I", 700)), DATA),
    "chunks after": riff(PLAIN, DATA, chunk(b"LIST", b"INFOISFT\x04\0\0\0abc\0"), chunk(b"cue ", bytes(4))),
    "broadcast": riff(chunk(b"bext", bytes(602)), PLAIN, DATA),
    "odd": riff(chunk(b"fmt ", format_chunk("u8", 1, RATE)), ODD, chunk(b"PEAK", bytes(16))),
    "odd without padding": riff(chunk(b"fmt ", format_chunk("u8", 1, RATE)), ODD)[:-1],
    "wrong total": riff(PLAIN, DATA)[:4] + b"\xff\xff\xff\xff" + riff(PLAIN, DATA)[8:],
    "wrong fact": riff(PLAIN, chunk(b"fact", struct.pack("<I", 5)), DATA),
    "RF64": make_rf64("s24", 700, 2),
}


@needs_torchcodec
@pytest.mark.parametrize("name", READ)
def test_kinds_of_plain_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(READ[name])
    layout = core.wav_layout(bytes(path))
    assert layout is not None
    for begin in (0, 333):
        draw = begin / (layout[4] - 300 + 1) + 1e-6
        made, _ = core.wav_clip(READ[name], clip_of(300, layout[1]), draw)
        assert torch.equal(torch.from_numpy(made), expected_clip(path, begin, 300))


def with_bits(bits: int) -> bytes:
    whole = format_chunk("s16", 2, RATE, speakers=3)
    return whole[:18] + struct.pack("<H", bits) + whole[20:]


def spdif() -> bytes:
    return chunk(b"data", bytes(64) + bytes.fromhex("72f81f4e") + bytes(4000))


#: Files that are left to torchcodec: name, bytes.
LEFT = {
    "empty": b"",
    "short": b"RIFF\0\0\0\0WAV",
    "text": b"this is no sound at all, but some text that is long enough for a header\n" * 3,
    "big endian": b"RIFX" + riff(PLAIN, DATA)[4:],
    "no format": riff(DATA),
    "no samples": riff(PLAIN),
    "no whole frame": riff(PLAIN, chunk(b"data", b"abc")),
    "empty samples": riff(PLAIN, chunk(b"data", b"")),
    "samples first": riff(DATA, PLAIN),
    "two formats": riff(PLAIN, PLAIN, DATA),
    "two samples": riff(PLAIN, DATA, DATA),
    "truncated": riff(PLAIN, DATA)[:-100],
    "huge header": riff(PLAIN, b"data\xff\xff\xff\x7f" + bytes(100)),
    "unknown size": riff(PLAIN, b"data\xff\xff\xff\xff" + bytes(100)),
    "huge chunk": riff(PLAIN, b"JUNK\xff\xff\xff\xff" + bytes(100)),
    "many chunks": riff(PLAIN, *[chunk(b"JUNK", b"")] * 100, DATA),
    "unknown chunk": riff(PLAIN, chunk(b"SMV0", bytes(40)), DATA),
    "ID3": riff(PLAIN, DATA, chunk(b"id3 ", bytes(20))),
    "bytes after": riff(PLAIN, DATA) + b"abcd",
    "20 of 24 bits": riff(chunk(b"fmt ", with_bits(12)), DATA),
    "u-law": riff(chunk(b"fmt ", struct.pack("<HHIIHH", 7, 1, RATE, RATE, 1, 8)), DATA),
    "no channels": riff(chunk(b"fmt ", format_chunk("s16", 0, RATE)), DATA),
    "many channels": riff(chunk(b"fmt ", format_chunk("s16", 9, RATE)), chunk(b"data", bytes(18 * 9))),
    "no rate": riff(chunk(b"fmt ", format_chunk("s16", 2, 0)), DATA),
    "wrong frames": riff(chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, RATE, RATE * 4, 8, 16)), DATA),
    "extension": riff(chunk(b"fmt ", format_chunk("s16", 2, RATE) + b"\2\0\1\0"), DATA),
    "one speaker": riff(chunk(b"fmt ", format_chunk("s16", 2, RATE, speakers=1)), DATA),
    "a compressed stream": riff(PLAIN, spdif()),
    "RF64 of two sizes": make_rf64("s16", 700, 2).replace(b"data\xff\xff\xff\xff", b"data\x00\x01\x00\x00"),
    "RF64 that ends": make_rf64("s16", 700, 2)[:30],
}


@pytest.mark.parametrize("name", LEFT)
def test_other_files_are_left_to_torchcodec(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"WAV|RF64"):
        core.wav_clip(LEFT[name], core.Clip(100, RATE, 2, "start"))
    (tmp_path / "a.wav").write_bytes(LEFT[name])
    assert core.wav_layout(bytes(tmp_path / "a.wav")) is None


def test_rates_channels_and_arithmetic_that_are_left() -> None:
    wav = make_wav("s16", 300, 2)
    for clip, why in (
        (core.Clip(100, 8000, 2, "start"), "16000 Hz"),
        (core.Clip(100, RATE, 3, "start"), "2 channels"),
        (core.Clip(100, RATE, 1, "start"), "2 channels"),  # the weights are not known
        (core.Clip(100, RATE, 2, "start", codings=0), "another way"),
    ):
        with pytest.raises(ValueError, match=why):
            core.wav_clip(wav, clip)
    with pytest.raises(ValueError, match="2 channels"):
        core.wav_clip(make_wav("f64", 300, 2), core.Clip(100, RATE, 1, "start", stereo_weight=0.5))


@needs_torchcodec
def test_what_is_read_of_damaged_files_is_torchcodecs(tmp_path: Path) -> None:
    """Each byte of a header in turn gets other values: a file that is read natively has torchcodec's samples."""
    whole, path, tried = riff(PLAIN, chunk(b"fact", bytes(4)), DATA), tmp_path / "a.wav", 0
    for place, value in itertools.product(range(60), (0, 1, 3, 8, 0xFF)):
        damaged = bytearray(whole)
        damaged[place] = value
        path.write_bytes(damaged)
        layout = core.wav_layout(bytes(path))
        if layout is None:
            continue
        _, channels, _, rate, frames, _ = layout
        made, _ = core.wav_clip(bytes(damaged), core.Clip(frames, rate, channels, "start"))
        assert torch.equal(torch.from_numpy(made), expected_clip(path, 0, frames, rate=rate)), (place, value)
        tried += 1
    assert tried > 50


def test_places_of_clips() -> None:
    for place, draw, begin in (
        ("start", 0.9, 0),
        ("center", 0.9, 45),
        ("random", 0.0, 0),
        ("random", 0.5, 45),
        ("random", 1.0, 90),
    ):
        assert core.Clip(10, RATE, 1, place).begin(100, draw) == begin
    assert core.Clip(10, RATE, 1, "random").begin(7, 0.5) == 0
    with pytest.raises(ValueError, match="no such place"):
        core.Clip(10, RATE, 1, "end")
    with pytest.raises(ValueError, match="samples"):
        core.Clip(0, RATE, 1, "start")

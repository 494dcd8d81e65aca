"""Which frames other frames refer to: compared with what FFmpeg's decoder drops, and on damaged packets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._media.video.reference_frames import reference_finder
from video_files import INDEXED, make_video

av: Any = pytest.importorskip("av", exc_type=ImportError)

STREAMS = ["x264.mp4", "no_b_frames.mp4", "no_pyramid.mp4", "open_groups.mp4", "x265.mp4", "x265_open_groups.mp4"]


@pytest.mark.parametrize("name", STREAMS)
def test_ffmpeg_drops_the_same(tmp_path: Path, name: str) -> None:
    """Its decoders know the option "noref"."""
    path = make_video(tmp_path / name, *INDEXED[name])
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        is_reference = reference_finder(stream.codec_context.name, stream.codec_context.extradata)
        assert is_reference is not None
        found = {packet.pts for packet in container.demux(stream) if packet.size and is_reference(memoryview(packet))}
    with av.open(str(path)) as container:
        container.streams.video[0].codec_context.skip_frame = "NONREF"
        kept = {frame.pts for frame in container.decode(video=0)}
    assert found == kept


def test_start_codes() -> None:
    is_reference = reference_finder("h264", None)
    assert is_reference is not None
    assert not is_reference(memoryview(b"\0\0\0\1\x09\x10\0\0\0\1\x01\x88"))
    assert is_reference(memoryview(b"\0\0\0\1\x09\x10\0\0\1\x61\x88"))


def test_layers_count_as_referred_to() -> None:
    """A frame of a higher temporal sub-layer may refer to one that its own layer does not use."""
    is_reference = reference_finder("hevc", None)
    assert is_reference is not None
    assert not is_reference(memoryview(b"\0\0\1\x00\x01\x88"))
    assert is_reference(memoryview(b"\0\0\1\x00\x02\x88"))


def test_other_codecs_do_not_say() -> None:
    assert reference_finder("vp9", None) is None


@given(st.sampled_from(["h264", "hevc"]), st.binary(max_size=40), st.binary(max_size=200), st.booleans())
def test_any_bytes(codec: str, extradata: bytes, packet: bytes, is_mp4: bool) -> None:
    """Damaged packets are no error here: their decoder says what is wrong."""
    is_reference = reference_finder(codec, b"\1" + extradata if is_mp4 else extradata)
    assert is_reference is not None
    assert isinstance(is_reference(memoryview(packet)), bool)


def test_a_damaged_length_ends() -> None:
    is_reference = reference_finder("h264", b"\1\0\0\0\xff" + bytes(8))
    assert is_reference is not None
    rng = random.Random(0)
    for _ in range(200):
        is_reference(memoryview(bytes(rng.choice((0, 0, 255, 1, 65)) for _ in range(64))))

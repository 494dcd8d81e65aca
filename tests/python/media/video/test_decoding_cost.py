"""How many frames are decoded for wanted ones, and how many would be with more key frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from video_files import FRAMES, INDEXED, make_video

pytest.importorskip("av", exc_type=ImportError)

from headrace._media.video.decoding_cost import DecodingCost, cost_of
from headrace._media.video.frame_decoder import FrameDecoder
from headrace._media.video.packet_index import read_index
from headrace._storage.parts.sample_bytes import FileBytes


def cost(path: Path, numbers: list[int]) -> DecodingCost:
    index = read_index(str(path))
    decoder = FrameDecoder(index, FileBytes(str(path)).read)
    decoder.decode(numbers)
    return cost_of(index, numbers, decoder.sent)


def test_frames_that_are_decoded(tmp_path: Path) -> None:
    every = make_video(tmp_path / "keys.mp4", *INDEXED["every_frame_a_key.mp4"])
    plain = make_video(tmp_path / "plain.mp4", *INDEXED["no_b_frames.mp4"])
    assert cost(every, [50]).wanted == cost(plain, [0]).wanted == 1
    assert cost(every, [50]).decoded < 10 and cost(plain, [50]).decoded >= 51  # some more, of the decoder's delay
    assert cost(plain, [50, 51, 50]).wanted == 2


def test_what_short_groups_would_bring(tmp_path: Path) -> None:
    long = make_video(tmp_path / "long.mp4", *INDEXED["one_group.mp4"])
    short = make_video(tmp_path / "short.mp4", *INDEXED["one_group.mp4"][:-1], "16")
    each = [[number, number + 4, number + 8] for number in range(FRAMES - 8)]
    guess, true = (sum((cost(path, numbers) for numbers in each), DecodingCost()) for path in (long, short))
    assert guess.decoded > 2 * guess.with_short_groups
    assert true.decoded == pytest.approx(guess.with_short_groups, rel=0.3)
    assert "with a key frame every 16 frames" in str(guess) and "with a key frame" not in str(true)

"""What the verdict advises where the frames of videos take the time: more key frames, if these would help."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from test_verdict import TWO, gains, verdict

from headrace import DataLoader, Videos, uniform_frames
from headrace._loading.bottleneck.batch_cost import Load
from torchvision_shim import import_torchvision
from video_files import INDEXED, LONG, make_video, why_no_torchcodec

#: Two threads on two cores decode all the time: six frames for each one of a clip, where two would do.
DECODING = Load(
    dataclasses.replace(TWO, decoder="video", frames=6.0, frames_of_short=2.0), 100, 0.020, 0.0005, 0.0195,
    lanes={"video": 0.040}, python_cpu=0.040, idle=0.04,
)  # fmt: skip


def test_more_key_frames_are_advised() -> None:
    given = verdict(DECODING)
    assert given.bottleneck == "video" and given.certainty == "sure"
    change = given.change
    assert change is not None and change.name == "key frames"
    assert change.gain == pytest.approx(1 / (1 - 0.9 * 2 / 3), rel=0.02)
    assert "-g 16" in change.advice and "2.0 decoded frames for each one of a clip instead of 6.0" in change.advice
    alone = dataclasses.replace(DECODING, setting=dataclasses.replace(DECODING.setting, threads=0), blocked=0.0195)
    assert gains(alone)["key frames"] > 2


def test_threads_come_before_other_files() -> None:
    """A setting that helps much is named first; the files are not changed for it."""
    one = dataclasses.replace(DECODING, setting=dataclasses.replace(DECODING.setting, threads=1), period=0.040)
    given = verdict(one)
    assert given.change is not None and given.change.name == "threads"
    assert "key frames" in {other.name for other in given.others}


def test_short_groups_and_other_decoders_need_none() -> None:
    for setting in (
        dataclasses.replace(DECODING.setting, frames=1.5, frames_of_short=1.5),
        dataclasses.replace(DECODING.setting, frames=0.0, frames_of_short=0.0),
    ):
        assert "key frames" not in gains(dataclasses.replace(DECODING, setting=setting))
    assert "key frames" not in gains(dataclasses.replace(DECODING, lanes={"pillow": 0.040}))


@pytest.mark.skipif(why_no_torchcodec() is not None, reason=str(why_no_torchcodec()))
def test_a_loader_counts_its_frames(tmp_path: Path) -> None:
    pytest.importorskip("av", exc_type=ImportError)
    crop = import_torchvision().transforms.v2.CenterCrop(32)
    advised = {}
    for name, kind in (("long_groups.mp4", LONG), ("every_frame_a_key.mp4", INDEXED)):
        path = make_video(tmp_path / name, *kind[name])
        loader = DataLoader(Videos([path] * 40, None, crop, clips=uniform_frames(4)), 1, num_workers=1)
        for _ in loader:
            pass
        given = loader.stats().verdict
        advised[name] = {one.name: one.advice for one in (given.change, *given.others) if one is not None}
        loader.close()
    assert "decoded frames for each one of a clip instead of" in advised["long_groups.mp4"]["key frames"]
    assert "key frames" not in advised["every_frame_a_key.mp4"]

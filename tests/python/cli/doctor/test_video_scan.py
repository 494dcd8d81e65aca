"""The scan of a folder of videos: what they are, which ones are broken, and what more key frames would bring."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from headrace import DataLoader, Videos, uniform_frames
from headrace._cli.main import main
from torchvision_shim import import_torchvision
from video_files import INDEXED, LONG, PASSED_ON, forget_videos, make_video, turn_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("videos")
    whole = make_video(made / "one_group.mp4", *INDEXED["one_group.mp4"])
    (made / "below").mkdir()
    make_video(made / "below" / "vp9.webm", *INDEXED["vp9.webm"])
    make_video(made / "every_frame_a_key.mp4", *INDEXED["every_frame_a_key.mp4"])
    turn_video(whole, made / "turned.MOV")
    (made / "text.mp4").write_text("no video")
    (made / "notes.txt").write_text("no video either")
    return made


def test_what_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(folder), "--workers", "2", "--json"]) == 1
    out, text = capsys.readouterr()
    found = json.loads(out)
    assert found["videos"] == found["scanned"] == 5 and not found["interrupted"]
    assert found["codecs"] == {"h264": 3, "vp9": 1} and sum(found["sizes"].values()) == 4
    assert found["turned"] == 1 and found["b_frames"] == 1
    assert [Path(one["path"]).name for one in found["broken"]] == ["text.mp4"]
    assert sum(found["by_torchcodec"].values()) == 1  # the turned one
    frames = found["frames"]
    assert frames["decoded"] > frames["wanted"] == 45 and frames["with_short_groups"] >= 45
    assert found["clip_ms_of_a_core"] > 0
    assert "scanned       all 5 videos, a clip of each, in 2 threads" in text and "-> A clip of 16 frames takes" in text
    assert all(one in " ".join(text.split()) for one in found["recommendations"])


def test_variable_rates_and_groups_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, kind in (("variable.mp4", PASSED_ON), ("variable.mkv", PASSED_ON), ("long_groups.mp4", LONG)):
        make_video(tmp_path / name, *kind[name])
    assert main(["doctor", str(tmp_path), "--json"]) == 0
    out, text = capsys.readouterr()
    assert json.loads(out)["by_torchcodec"] == {"of a variable frame rate": 2}
    said = " ".join(text.split())
    assert "2 files are decoded by torchcodec, every frame from the key frame on: of a variable frame rate" in said
    assert "key frames one every 180 frames" in said and "(ffmpeg -g 16)" in said


def test_indexes_are_kept_for_loaders(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    time.sleep(0.11)  # what was written just now is not kept
    for learned in (4, 1):  # a turned video has no index
        forget_videos(monkeypatch)
        assert main(["doctor", str(folder), "--video-index", str(tmp_path / "indexes"), "--json"]) == 1
        out, text = capsys.readouterr()
        assert json.loads(out)["indexes"] == {"learned": learned, "found": 4 - learned}
        assert ("1 learned, 3 found" in text) == (learned == 1)
    forget_videos(monkeypatch)
    crop = import_torchvision().transforms.v2.CenterCrop(32)
    data = Videos([folder / "one_group.mp4"], None, crop, clips=uniform_frames(2))
    loader = DataLoader(data, num_workers=1, video_index=tmp_path / "indexes")
    next(iter(loader))
    videos = loader.stats().videos
    assert videos is not None and (videos.indexes_learned, videos.indexes_from_folder) == (0, 1)


def test_indexes_are_of_videos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "image.png").write_bytes(b"no image")
    assert main(["doctor", str(tmp_path), "--video-index", "x"]) == 2
    assert f"--video-index is for folders of videos, and {tmp_path} is none" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["doctor", "--video-index", "x"])


def test_some_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", str(folder), "--limit", "2", "--bad", "-"])
    out, text = capsys.readouterr()
    assert "scanned       2 of 5 videos" in text
    assert out in ("", f"{folder / 'text.mp4'}\n")


def test_a_folder_with_images_is_one_of_images(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_video(tmp_path / "video.mp4", *INDEXED["x264.mp4"])
    (tmp_path / "image.png").write_bytes(b"no image")
    assert main(["doctor", str(tmp_path)]) == 1
    assert "all 1 files" in capsys.readouterr().out

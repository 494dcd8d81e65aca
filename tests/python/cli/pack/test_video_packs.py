"""``headrace pack --video``: what is stored, how it is compared with the source, and what goes on after an end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
import torch
from packs import content, members

from headrace._cli.main import main
from video_files import INDEXED, PASSED_ON, cut_video, make_video, turn_video, why_no_torchcodec

av = pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from torchcodec.decoders import VideoDecoder  # noqa: E402

from headrace._cli.pack.conversion import COPY, REENCODE, REMUX, Conversion  # noqa: E402
from headrace._cli.pack.videos import ffmpeg_program  # noqa: E402
from headrace._cli.pack.videos.frame_comparison import Unequal, compare_videos  # noqa: E402
from headrace._cli.pack.videos.video_conversion import convert_video, video_difference  # noqa: E402

NAMES = (
    "one_group.mp4",
    "every_frame_a_key.mp4",
    "fragmented.mp4",
    "late.mp4",
    "ntsc.mkv",
    "vp9.webm",
    "10_bit.mp4",
    "variable.mp4",
    "transport.ts",
    "x264.avi",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made")
    kinds = {**INDEXED, **PASSED_ON}
    found = {name: make_video(folder / name, *kinds[name]) for name in NAMES}
    found["cut.mp4"] = cut_video(found["one_group.mp4"], folder / "cut.mp4", 0.5)
    found["turned.mp4"] = turn_video(found["one_group.mp4"], folder / "turned.mp4")
    return found


@pytest.fixture(scope="module")
def folder(made: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes: videos, and a file that is none."""
    root = tmp_path_factory.mktemp("clips")
    for label, name in (("a", "one_group.mp4"), ("b", "vp9.webm"), ("b", "x264.avi")):
        (root / label).mkdir(exist_ok=True)
        (root / label / name).write_bytes(made[name].read_bytes())
    (root / "a" / "text.mp4").write_text("no video")
    return root


def run(*arguments: object) -> int:
    return main([str(one) for one in arguments])


def frames_of(data: bytes) -> Iterator[tuple[torch.Tensor, float]]:
    decoder = VideoDecoder(data, num_ffmpeg_threads=1)
    for number in range(len(decoder)):
        frame = decoder.get_frame_at(number)
        yield frame.data, frame.pts_seconds


def source_frames(name: str, data: bytes) -> Iterator[tuple[torch.Tensor, float]]:
    """The frames of a source; torchcodec does not deliver all of a transport stream."""
    if not name.endswith(".ts"):
        yield from frames_of(data)
        return
    with av.open(BytesIO(data)) as container:
        for frame in container.decode(video=0):
            assert frame.pts is not None and frame.time_base is not None
            yield (
                torch.from_numpy(frame.to_ndarray(format="rgb24")).permute(2, 0, 1),
                float(frame.pts * frame.time_base),
            )


@pytest.mark.parametrize("name", [*NAMES, "cut.mp4", "turned.mp4"])
def test_packets_in_another_container(made: dict[str, Path], name: str) -> None:
    data = made[name].read_bytes()
    got = convert_video(data, Conversion(REMUX, video=True), name.partition(".")[2])
    assert got.kept is None and got.extension == {"mkv": "mkv", "webm": "webm"}.get(name.partition(".")[2], "mp4")
    count = sum(1 for _ in frames_of(got.data))
    assert got.counts["frames"] == count and got.counts["by_pyav"] == (count if name == "transport.ts" else 0)
    for (wanted, then), (found, when) in zip(source_frames(name, data), frames_of(got.data), strict=True):
        assert torch.equal(found, wanted) and when == then
    assert "psnr" not in got.counts
    if name == "fragmented.mp4":  # the index is at the front now
        assert 0 < got.data.find(b"moov") < got.data.find(b"mdat")


@pytest.mark.parametrize("name", ["one_group.mp4", "vp9.webm", "variable.mp4", "turned.mp4", "late.mp4", "10_bit.mp4"])
def test_short_groups(made: dict[str, Path], name: str, tmp_path: Path) -> None:
    data = made[name].read_bytes()
    how = Conversion(REENCODE, gop=12, video=True)
    got = convert_video(data, how, name.partition(".")[2])
    assert got.kept is None and got.extension == ("mkv" if name == "vp9.webm" else "mp4")
    wanted, found = list(frames_of(data)), list(frames_of(got.data))
    assert [(pixels.shape, when) for pixels, when in found] == [(pixels.shape, when) for pixels, when in wanted]
    ours, theirs = (torch.stack([pixels for pixels, _ in one]).double() for one in (wanted, found))
    psnr = 10 * torch.log10(255**2 / (ours - theirs).square().mean())
    assert got.counts["psnr"] == got.counts["least_psnr"] == pytest.approx(float(psnr), abs=1e-9) and psnr > 30
    path = tmp_path / f"made.{got.extension}"
    path.write_bytes(got.data)
    asked = ["-select_streams", "v", "-show_entries", "packet=flags", "-of", "csv=p=0", str(path)]
    flags = subprocess.run(["ffprobe", "-v", "error", *asked], capture_output=True, text=True, check=True).stdout
    keys = [number for number, flag in enumerate(flags.split()) if flag.startswith("K")]
    assert max(later - earlier for earlier, later in zip(keys, [*keys[1:], len(found)], strict=True)) <= 12
    if name == "one_group.mp4":
        each = {when: got.counts[f"decoded_{when}"] / got.counts[f"wanted_{when}"] for when in ("before", "after")}
        assert 1 <= each["after"] < each["before"]
        assert convert_video(data, how, "mp4").data == got.data


def test_what_cannot_be_converted_is_kept(made: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    how = Conversion(REMUX, video=True)
    text = convert_video(b"no video", how, "mp4")
    assert text.data == b"no video" and text.extension is None and text.kept is not None
    data = made["one_group.mp4"].read_bytes()

    def write_a_part(source: Path, stream: int, made: Path) -> None:
        ffmpeg_program._run(["-c", "copy", "-t", "1", str(made)], ["-i", str(source)])

    monkeypatch.setattr("headrace._cli.pack.videos.video_conversion.write_packets", write_a_part)
    lost = convert_video(data, how, "mp4")
    assert lost.data == data and lost.kept is not None and "number of frames" in lost.kept

    def write_others(source: Path, stream: int, made: Path) -> None:
        ffmpeg_program._run(["-c:v", "libx264", "-crf", "40", str(made)], ["-i", str(source)])

    monkeypatch.setattr("headrace._cli.pack.videos.video_conversion.write_packets", write_others)
    lossy = convert_video(data, how, "mp4")
    assert lossy.data == data and lossy.kept == "the frames would have other pixels"


def test_videos_that_differ(made: dict[str, Path]) -> None:
    with pytest.raises(Unequal, match="shown at other times"):
        compare_videos(made["one_group.mp4"], made["late.mp4"])
    with pytest.raises(Unequal, match="turned by another angle"):
        compare_videos(made["one_group.mp4"], made["turned.mp4"])
    with pytest.raises(Unequal, match="the result cannot be decoded"):
        compare_videos(made["one_group.mp4"], b"no video")
    for source in ("one_group.mp4", "transport.ts"):  # which torchcodec delivers, and does not
        with pytest.raises(Unequal, match="torchcodec would not deliver all frames of the result"):
            compare_videos(made[source], made["transport.ts"])
    remux, copy, encoded = (Conversion(kind, video=True) for kind in (REMUX, COPY, REENCODE))
    data, others = made["one_group.mp4"].read_bytes(), made["every_frame_a_key.mp4"].read_bytes()
    assert video_difference(data, others, remux) == "the frames have other pixels"
    assert video_difference(data, others, encoded) is None  # number, times and sizes are the same
    assert video_difference(data, others, copy) == "the video has other bytes"
    assert video_difference(data, data[:-1], copy) == "the video has other bytes"
    assert video_difference(b"no video", b"no video", copy) is None  # nothing is decoded
    late = made["late.mp4"].read_bytes()
    assert all(
        video_difference(data, late, how) == "the frames would be shown at other times" for how in (remux, encoded)
    )


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_pack_and_verify(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "pack"
    options = ("--video", "--shard-size", "60KB", "--workers", 1)
    assert run("pack", folder, pack, *options) == 0
    text = capsys.readouterr().out
    assert "4 samples in " in text and "1 of 4 videos are stored as they were:\n  1: " in text
    assert "180 frames compared with the source by torchcodec: 0 differ\n" in text
    found = members(pack)
    names = ["a/one_group.mp4", "a/one_group.cls", "a/text.mp4", "a/text.cls", "b/vp9.webm", "b/vp9.cls"]
    assert [name for name, _ in found] == [*names, "b/x264.mp4", "b/x264.cls"]
    assert [data for name, data in found if name.endswith("cls")] == [b"0", b"0", b"1", b"1"]
    assert run("verify", pack, folder, "--workers", 1) == 0
    assert capsys.readouterr().out == f"4 samples compared with {folder}: 0 differ\n"
    before = content(pack)
    last = max(pack.glob("*.tar"))  # lost, as after an interruption
    last.unlink()
    assert run("pack", folder, pack, *options, "--json") == 0
    assert json.loads(capsys.readouterr().out)["written"] == 1 and content(pack) == before
    assert run("pack", folder, pack, *options, "--gop", 12) == 1
    assert "holds a pack with other terms" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_pack_with_short_groups(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "pack"
    assert run("pack", folder / "a", pack, "--video", "--gop", 12, "--crf", 23, "--workers", 1) == 0
    text = capsys.readouterr().out
    assert "60 frames compared with the source by torchcodec: 0 differ in number, time or size\nPSNR of RGB: " in text
    assert "frames decoded for each one of a clip (16 frames, 4 apart): " in text
    assert run("verify", pack, folder / "a", "--workers", 1) == 0
    shard = pack / "shard-000000.tar"
    found = dict(members(pack))
    assert set(found) == {"one_group.mp4", "text.mp4"}
    swapped = shard.read_bytes().replace(b"no video", b"NO VIDEO")
    shard.write_bytes(swapped)
    assert run("verify", pack, folder / "a") == 1
    assert "missing or damaged" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_copies_have_the_bytes_of_the_source(
    made: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, pack = tmp_path / "clips", tmp_path / "pack"
    source.mkdir()
    data = made["x264.avi"].read_bytes()
    (source / "one.avi").write_bytes(data)
    assert run("pack", source, pack, "--video", "--copy", "--workers", 1) == 0
    assert members(pack) == [("one.avi", data)]
    assert run("verify", pack, source, "--workers", 1) == 0
    capsys.readouterr()
    place = len(data) // 2  # the size stays, which the source's fingerprint has
    (source / "one.avi").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    assert run("verify", pack, source, "--workers", 1) == 1
    assert "the video has other bytes" in capsys.readouterr().out


def test_bad_requests(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in (
        (("--gop", 8), "--gop needs --video"),
        (("--video", "--raw", 8), "--video takes --copy or --gop"),
        (("--video", "--crf", 8), "--crf needs --gop"),
        (("--video", "--gop", 8, "--crf", 99), "99 is not a constant rate factor from 0 to 51"),
    ):
        with pytest.raises(SystemExit):
            run("pack", folder, tmp_path / "pack", *options)
        assert said in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run("pack", tmp_path / "empty", tmp_path / "pack", "--video") == 1
    assert capsys.readouterr().err == f"headrace pack: there are no videos in {tmp_path / 'empty'}\n"


def test_without_ffmpeg(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("pack", folder, tmp_path / "pack", "--video") == 1
    assert "runs the program ffmpeg, which is not installed: install FFmpeg" in capsys.readouterr().err
    assert not (tmp_path / "pack").exists()
    for script, raised in (
        ("echo 'Unknown encoder libx264' >&2; exit 1", ImportError),
        ("kill -9 $$", RuntimeError),
        ("echo 'av_interleaved_write_frame(): No space left on device' >&2; exit 1", OSError),
    ):
        (tmp_path / "ffmpeg").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "ffmpeg").chmod(0o755)
        with pytest.raises(raised):
            ffmpeg_program.check_ffmpeg(Conversion(REENCODE, gop=8, video=True))

"""The index of a video as bytes: what was learned comes back, and nothing else is believed."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from video_files import INDEXED, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from headrace._media.video.index_encoding import decode_video, encode_video
from headrace._media.video.known_videos import KnownVideo
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.video_files import learn_by_scan
from headrace._storage.parts.sample_bytes import FileBytes

NAME = "ab" * 32
KINDS = "x264.mp4", "ntsc.mkv", "x265_open_groups.mp4", "vp9_hidden.webm", "mjpeg.mov"
Arrays = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_video(tmp_path_factory.mktemp("indexes") / "x264.mp4", *INDEXED["x264.mp4"])


@pytest.fixture(scope="module")
def data(file: Path) -> bytes:
    made = encode_video(NAME, learn_by_scan(FileBytes(str(file))))
    assert made is not None
    return made


def assert_equal(found: KnownVideo, expected: KnownVideo) -> None:
    for one in dataclasses.fields(expected.described):
        theirs, ours = (getattr(known.described, one.name) for known in (expected, found))
        assert type(ours) is type(theirs) and ours == theirs, one.name
    for one in dataclasses.fields(PacketIndex):
        theirs, ours = (getattr(known.index, one.name) for known in (expected, found))
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs) and ours.flags.c_contiguous, one.name
        else:
            assert type(ours) is type(theirs) and ours == theirs, one.name


@pytest.mark.parametrize("name", KINDS)
def test_what_was_learned_comes_back(tmp_path: Path, name: str) -> None:
    path = make_video(tmp_path / name, *INDEXED[name])
    learned = learn_by_scan(FileBytes(str(path)))
    made = encode_video(NAME, learned)
    assert made is not None and np.load(io.BytesIO(made))["times"].shape == (2, len(learned.index))
    assert_equal(decode_video(made, NAME, path.stat().st_size), learned)


def test_packets_that_were_not_read_are_so_afterwards(file: Path, data: bytes) -> None:
    known = decode_video(data, NAME, file.stat().st_size)
    assert isinstance(known.index, PacketIndex) and known.index.is_read is None
    index = dataclasses.replace(known.index, is_read=np.arange(len(known.index)) < 5)
    made = encode_video(NAME, KnownVideo(index, known.described))
    assert made is not None
    assert_equal(decode_video(made, NAME, file.stat().st_size), KnownVideo(index, known.described))


def test_what_cannot_be_written_is_not_kept(file: Path, data: bytes) -> None:
    known = decode_video(data, NAME, file.stat().st_size)
    assert encode_video(NAME, KnownVideo("has no index", known.described)) is None
    for described in (object(), (len(known.index), float("nan")), [3]):
        assert encode_video(NAME, KnownVideo(known.index, described)) is None


def signed(data: bytes) -> bytes:
    """With the hash of these bytes, as a program that writes false indexes would."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def changed(change: Callable[[dict[str, Any], Arrays], object], **options: Any) -> Callable[[bytes], bytes]:
    """Returns a function that changes the content of an index, whose hash is right."""

    def change_one(data: bytes) -> bytes:
        arrays = dict(np.load(io.BytesIO(data)))
        about = json.loads(arrays.pop("about").tobytes())
        change(about, arrays)
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        out = io.BytesIO()
        np.savez(out, allow_pickle=True, **arrays, **options)
        with zipfile.ZipFile(out, "a") as archive:
            archive.comment = bytes(32)
        return signed(out.getvalue())

    return change_one


def _set(name: str, place: Any, value: Any) -> Callable[[bytes], bytes]:
    return changed(lambda about, arrays: arrays[name].__setitem__(place, value))


def _bomb(data: bytes) -> bytes:
    """Zeros that inflate to more than any index has."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("times.npy", bytes(257 << 20))
        archive.comment = bytes(32)
    return signed(out.getvalue())


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-1],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\0",
    "a bit": lambda data: bytes([*data[:200], data[200] ^ 1, *data[201:]]),
    "empty": lambda data: b"",
    "a text": lambda data: b"no index" * 9,
    "zeros": lambda data: bytes(len(data)),
    "a pickle": lambda data: signed(pickle.dumps([1]) + bytes(32)),
    "another archive": lambda data: signed(data[: len(data) // 2] + bytes(32)),
    "an object array": changed(lambda about, arrays: arrays.update(flags=np.array([{}], object))),
    "a bomb": _bomb,
    "another version": changed(lambda about, arrays: about.update(version=2)),
    "another file": changed(lambda about, arrays: about.update(name="cd" * 32)),
    "no name": changed(lambda about, arrays: about.pop("name")),
    "a list": changed(lambda about, arrays: arrays.update(times=arrays["times"][0])),
    "other numbers": changed(lambda about, arrays: arrays.update(places=arrays["places"].astype(np.float64))),
    "a frame less": changed(lambda about, arrays: arrays.update(flags=arrays["flags"][1:])),
    "all frames less": changed(lambda about, arrays: [arrays.update({n: arrays[n][..., :0]}) for n in list(arrays)]),
    "one time twice": _set("times", (0, 3), 0),
    "another first time": _set("times", (0, 0), -1),
    "another duration": _set("times", (1, 3), 1),
    "after the file": _set("places", (0, 5), 1 << 40),
    "before the file": _set("places", (0, 5), -1),
    "beyond all numbers": _set("places", (1, 5), (1 << 63) - 1),
    "an empty packet": _set("places", (1, 5), 0),
    "no key frame": _set("flags", 0, 2),
    "another size": changed(lambda about, arrays: about["stream"].update(width=50)),
    "no time base": changed(lambda about, arrays: about.update(time_base=[1, 0])),
    "another time base": changed(lambda about, arrays: about.update(time_base=[1, 25])),
    "no description": changed(lambda about, arrays: about.update(described=None)),
    "a field more": changed(lambda about, arrays: about["described"]["fields"].update(more=3)),
    "a field less": changed(lambda about, arrays: about["described"]["fields"].pop("num_frames_from_content")),
    "other frames": changed(lambda about, arrays: about["described"]["fields"].update(num_frames=7)),
    "frames of decord's": changed(lambda about, arrays: about.update(described={"tuple": [7, 30.0]})),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_anything_else_is_refused(file: Path, data: bytes, how: str) -> None:
    damaged = DAMAGE[how](data)
    assert damaged != data
    with pytest.raises(ValueError, match=r"\w"):
        decode_video(damaged, NAME, file.stat().st_size)


def test_an_index_of_a_longer_file_is_refused(file: Path, data: bytes) -> None:
    assert signed(data) == data
    index = decode_video(data, NAME, file.stat().st_size).index
    assert isinstance(index, PacketIndex)
    with pytest.raises(ValueError, match="no file has such packets"):
        decode_video(data, NAME, int((index.position + index.size).max()) - 1)

"""DataLoader(video_index=): what one process has learned of a video, others and later runs need not learn."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_videos import Own, found, origins, own_loader
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Cache, DataLoader, EncodedImages, Fields, ImageFiles, Videos, uniform_frames
from support import PHOTOS, assert_same, output_of
from torchvision_shim import import_torchvision
from video_files import INDEXED, PASSED_ON, forget_videos, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from headrace._media.video import video_files
from headrace._storage.video_indexes import shared_indexes

v2 = import_torchvision().transforms.v2

NAMES = "x264.mp4", "ntsc.mkv", "no_pyramid.mp4"
SMALL = v2.CenterCrop(32)
CLIP = uniform_frames(3)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("indexed")
    made = [make_video(folder / name, *INDEXED[name]) for name in NAMES]
    time.sleep(0.11)  # what was written just now is not kept: it may be written again within a tick of the clock
    return made


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_videos(monkeypatch)


def learn_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in forked workers."""

    def read_index(*args: Any, **options: Any) -> Any:
        raise AssertionError("packets are read")

    monkeypatch.setattr(video_files, "read_index", read_index)


def native(paths: list[Path], folder: Path | Cache, **options: Any) -> DataLoader[Any]:
    made = DataLoader(Videos(paths, None, SMALL, clips=CLIP), 1, num_workers=1, video_index=folder, **options)
    assert made.route == "native"
    return made


@pytest.fixture(autouse=True)
def nothing_shared_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests' loaders share may live on."""
    monkeypatch.setattr(shared_indexes, "_of_process", {})


@pytest.mark.processes
@pytest.mark.parametrize(("context", "workers"), [("fork", 2), ("spawn", 1)])
def test_workers_of_later_epochs_learn_nothing(paths: list[Path], context: str, workers: int) -> None:
    expected = [batch.clone() for batch in TorchDataLoader(Own(paths), 1)]
    loader = own_loader(Own(paths), multiprocessing_context=context, num_workers=workers)
    assert loader.video_index == "auto"
    assert_same(list(loader), expected)
    assert origins(loader) == {"learned": 3}
    assert_same(list(loader), expected)
    assert origins(loader) == {"memory": 3}
    assert "indexes of files: 3 found in shared memory" in str(loader.stats())
    assert loader.stats().as_dict()["images"]["indexes"] == {"memory": 3}


@pytest.mark.processes
def test_loaders_of_a_process_share(paths: list[Path]) -> None:
    first = own_loader(Own(paths))
    list(first)
    again = own_loader(Own(paths))
    list(again)
    assert (origins(first), origins(again)) == ({"learned": 3}, {"memory": 3})


@pytest.mark.processes
def test_workers_without_it_learn_for_themselves(paths: list[Path]) -> None:
    loader = own_loader(Own(paths), video_index=None)
    for _ in range(2):
        list(loader)
        assert origins(loader) == {"learned": 3}


@pytest.mark.processes
def test_later_runs_ranks_and_native_threads_find_the_folder(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(TorchDataLoader(Videos(paths, None, SMALL, clips=CLIP), 1))
    first = native(paths, tmp_path / "indexes")
    assert_same(list(first), expected)
    assert found(first) == (3, 0, 0)
    forget_videos(monkeypatch)
    learn_nothing(monkeypatch)
    second = native(paths, tmp_path / "indexes")
    assert_same(list(second), expected)
    assert str(tmp_path / "indexes") in str(second.explain())
    assert found(second) == (0, 0, 3) and "3 found in the folder" in str(second.stats())
    forget_videos(monkeypatch)
    by_workers = own_loader(Own(paths), video_index=str(tmp_path / "indexes"))
    assert_same(list(by_workers), list(TorchDataLoader(Own(paths), 1)))
    assert origins(by_workers) == {"folder": 3}
    ours = Path(__file__).parents[3]
    program = f"""
import sys
sys.path[:0] = [{str(ours)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from headrace import DataLoader, Videos, uniform_frames
from own_videos import found
from torchvision_shim import import_torchvision
crop = import_torchvision().transforms.v2.CenterCrop(32)
data = Videos({[str(one) for one in paths]!r}, None, crop, clips=uniform_frames(3))
loader = DataLoader(data, 1, num_workers=1, video_index={str(tmp_path / "indexes")!r}, rank=1, world_size=2)
assert len(list(loader)) == 2
print(found(loader))
"""
    assert "(0, 0, 2)" in output_of(program)


def test_what_the_folder_has_goes_to_the_memory(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(native(paths, tmp_path))
    forget_videos(monkeypatch)
    loader = native(paths, Cache(tmp_path, memory="1 MB"))
    list(loader)
    assert found(loader) == (0, 0, 3)
    forget_videos(monkeypatch)
    list(loader)
    assert found(loader) == (0, 3, 0)


def test_a_file_that_changes_is_learned_again(videos_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "video.mp4"
    for name, learned in (("x264.mp4", 1), ("no_b_frames.mp4", 1), ("ntsc.mp4", 1), ("ntsc.mp4", 1)):
        status = path.stat() if path.exists() else None
        path.write_bytes(videos_of(name).read_bytes())
        if status is not None:  # as tools that keep times do
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        time.sleep(0.11)
        for expected in (learned, 0):
            forget_videos(monkeypatch)
            loader = native([path], tmp_path / "indexes")
            assert_same(list(loader), list(TorchDataLoader(Videos([path], None, SMALL, clips=CLIP))))
            assert found(loader) == (expected, 0, 1 - expected), name


def test_a_file_that_was_written_just_now_is_not_kept(
    videos_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "video.mp4"
    shutil.copyfile(videos_of("x264.mp4"), path)
    for _ in range(2):
        os.utime(path)
        forget_videos(monkeypatch)
        loader = native([path], tmp_path / "indexes")
        list(loader)
        assert found(loader)[0] == 1


@pytest.fixture
def videos_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("made")
    return lambda name: make_video(folder / name, *{**INDEXED, **PASSED_ON}[name])


def _sidecars(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.npz"))


def test_damaged_files_in_the_folder_are_learned_again(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(native(paths, tmp_path))
    good = {path: path.read_bytes() for path in _sidecars(tmp_path)}
    first, second, third = good
    first.write_bytes(good[first][:100])
    second.write_bytes(good[third])  # of another video
    third.unlink()
    third.symlink_to(second)
    forget_videos(monkeypatch)
    loader = native(paths, tmp_path)
    assert_same(list(loader), expected)
    assert found(loader) == (3, 0, 0)
    assert {path: path.read_bytes() for path in _sidecars(tmp_path)} == good and not third.is_symlink()
    data = bytearray(good[first])
    for at in range(0, len(data), len(data) // 25):
        first.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        forget_videos(monkeypatch)
        loader = native(paths, tmp_path)
        assert_same(list(loader), expected)
        assert found(loader) == (1, 0, 2)


def test_files_without_an_index_are_scanned_each_time(
    videos_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = videos_of("x264.avi")
    time.sleep(0.11)
    for _ in range(2):
        forget_videos(monkeypatch)
        loader = native([path], tmp_path)
        assert_same(list(loader), list(TorchDataLoader(Videos([path], None, SMALL, clips=CLIP))))
    assert not _sidecars(tmp_path)


def test_members_of_archives_and_bytes_in_memory(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes in memory have no name that holds for others."""
    blobs = EncodedImages([path.read_bytes() for path in paths], range(3))
    for _ in range(2):
        forget_videos(monkeypatch)
        loader = DataLoader(Videos(blobs, transform=SMALL, clips=CLIP), 1, num_workers=1, video_index=tmp_path)
        list(loader)
        assert found(loader) == (3, 0, 0)
    assert not _sidecars(tmp_path)


@pytest.mark.processes
def test_decords_frames(paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[3])!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
import decord, torch
from torch.utils.data import DataLoader as TorchDataLoader
from own_videos import Own, origins, own_loader
data = Own([Path(one) for one in {[str(one) for one in paths]!r}], "decord")
expected = [batch.clone() for batch in TorchDataLoader(data, 1)]
for wanted in ("learned", "folder"):
    loader = own_loader(data, video_index={str(tmp_path)!r})
    assert all(map(torch.equal, loader, expected))
    assert origins(loader) == {{wanted: 3}}, origins(loader)
print("as expected")
"""
    pytest.importorskip("decord", exc_type=ImportError)
    assert "as expected" in output_of(program)
    forget_videos(monkeypatch)
    loader = own_loader(Own(paths), video_index=tmp_path)
    list(loader)
    assert origins(loader) == {"learned": 3}  # torchcodec says other things of a file


def test_where_it_applies(paths: list[Path], tmp_path: Path) -> None:
    loader = native(paths, tmp_path)
    assert loader.video_index == Cache(tmp_path)
    for copied in (copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert copied.video_index == Cache(tmp_path) and copied._indexes is loader._indexes
    clips = Videos(paths, None, SMALL, clips=CLIP)
    fields = Fields({"video": clips, "number": np.arange(3)})
    assert DataLoader(fields, video_index=tmp_path).native
    images = ImageFiles(sorted(PHOTOS.glob("*.jpg"))[:1], transform=v2.Compose([v2.CenterCrop(8), v2.PILToTensor()]))
    with pytest.raises(TypeError, match=r"video_index=.* applies to videos, and this dataset has images"):
        DataLoader(images, video_index=tmp_path)
    with pytest.raises(TypeError, match=r"video_index=.* needs headrace's native path"):
        DataLoader(Own(paths), video_index=tmp_path, deferred_images=False)
    with pytest.raises(TypeError, match="video_index must be 'auto', a folder"):
        DataLoader(clips, video_index=3)  # type: ignore[arg-type]
    for data in (images, Own(paths)):
        assert DataLoader(data, video_index=None).video_index is None

"""Clips that native threads make are those of the dataset itself: torchcodec's frames, torchvision's transforms."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from clip_batches import assert_equal_batches, assert_resumed
from torch.utils.data import ConcatDataset, Subset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, Fields, SampleError, Videos
from headrace.datasets import (
    clips_at_random_indices,
    clips_at_random_timestamps,
    clips_at_regular_indices,
    frames_at,
    frames_played_at,
    uniform_frames,
)
from rank_loaders import ranks, steps
from torchvision_shim import import_torchvision
from video_files import (
    INDEXED,
    LONG,
    PASSED_ON,
    cut_video,
    forget_videos,
    lose_index,
    make_video,
    turn_video,
    why_no_torchcodec,
)

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from headrace._engine.lanes import frame_lane
from headrace._media.video import video_clips
from headrace._media.video.decoding_cost import DecodingCost

v2 = import_torchvision().transforms.v2

OFTEN = "x264.mp4", "open_groups.mp4", "x265_open_groups.mp4", "variable.mp4", "vp9.webm"
RANDOM = clips_at_random_indices(num_clips=2, num_frames_per_clip=3, num_indices_between_frames=4)
REGULAR = clips_at_regular_indices(num_clips=3, num_frames_per_clip=4, num_indices_between_frames=3)
TRAIN = v2.Compose(
    [
        v2.RandomResizedCrop(24, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.2]),
        v2.RandomErasing(0.5),
    ]
)


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for videos."""
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_videos(monkeypatch)


def often(videos: Path) -> list[Path]:
    made = {**INDEXED, **PASSED_ON}
    return [make_video(videos / name, *made[name]) for name in OFTEN]


def assert_as_torchcodec(loader: Any, data: Videos) -> None:
    """Compares the only sample, or the error."""
    try:
        expected = data[0][0]
    except (IndexError, RuntimeError) as error:
        with pytest.raises(SampleError, match=re.escape(str(error)[-40:])):
            list(loader)
    else:
        assert torch.equal(next(iter(loader))[0][0], expected)


@pytest.mark.parametrize("name", [*INDEXED, *PASSED_ON, *LONG])
def test_clips_of_every_kind_of_file(videos: Path, name: str) -> None:
    path = make_video(videos / name, *{**INDEXED, **PASSED_ON, **LONG}[name])
    data = Videos([path], [7], v2.CenterCrop(64), clips=REGULAR)
    loader = DataLoader(data, num_workers=1)
    assert loader.route == "native"
    for _ in range(2):  # the second time from what is known of the file
        assert_as_torchcodec(loader, data)


def test_turned_and_cut_videos_and_one_without_an_index(videos: Path) -> None:
    whole, avi = (make_video(videos / name, *{**INDEXED, **PASSED_ON}[name]) for name in ("x264.mp4", "x264.avi"))
    paths = [turn_video(whole, videos / "turned.mp4"), cut_video(whole, videos / "cut.mp4", 0.5)]
    paths.append(lose_index(avi, videos / "no_index.avi"))
    data = Videos(paths, range(3), v2.CenterCrop(64), clips=uniform_frames(6))
    assert assert_equal_batches(DataLoader(data, num_workers=2), TorchDataLoader(data)) == 3


@pytest.mark.parametrize(
    "transform",
    [
        v2.Compose([v2.Resize((40, 48), antialias=True), v2.CenterCrop(32), v2.ToDtype(torch.float32, scale=True)]),
        v2.Compose([v2.Resize(30), v2.CenterCrop(24), v2.ToDtype(torch.bfloat16, scale=True)]),
        v2.Compose([v2.CenterCrop(40), v2.Pad(3), v2.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0)]),
        v2.Compose([v2.Resize((31, 33), interpolation=v2.InterpolationMode.BICUBIC), v2.RandomEqualize(1.0)]),
    ],
)
@pytest.mark.parametrize("clips", [REGULAR, uniform_frames(4)])
def test_transforms_are_torchvisions(videos: Path, transform: Any, clips: Any) -> None:
    data = Videos(often(videos), list(range(len(OFTEN))), transform, clips=clips)
    loader = DataLoader(data, batch_size=2, num_workers=2)
    assert loader.route == "native"
    assert assert_equal_batches(loader, TorchDataLoader(data, batch_size=2)) == 3
    sample = next(iter(DataLoader(data, batch_size=None, num_workers=1)))
    assert torch.equal(sample[0], data[0][0]) and sample[1] == 0


@pytest.mark.parametrize(
    "clips", [RANDOM, uniform_frames(5), clips_at_random_timestamps(num_clips=2, num_frames_per_clip=3)]
)
def test_batches_are_a_function_of_their_draws(videos: Path, clips: Any) -> None:
    data = Videos(often(videos) * 2, list(range(2 * len(OFTEN))), TRAIN, clips=clips)
    options: dict[str, Any] = {"batch_size": 3, "shuffle": True, "seed": 5}
    loaders = [DataLoader(data, num_workers=workers, **options) for workers in (0, 1, 2, 4)]
    for _ in range(2):
        first, *others = [list(loader) for loader in loaders]
        assert first[0][0].shape == (3, *clips.shape, 3, 24, 24)
        for other in others:
            assert_equal_batches(other, first)
    assert loaders[2].verify(4).samples == 10
    emulated = DataLoader(data, num_workers=2, device="emulated", **options)
    emulated.set_epoch(1)
    assert_equal_batches(emulated, first)


def test_all_frames_of_a_clip_have_one_draw(videos: Path) -> None:
    data = Videos([often(videos)[0]], [0], v2.RandomCrop(24), clips=clips_at_regular_indices(num_frames_per_clip=2))
    still = Videos([often(videos)[0]], [0], v2.RandomCrop(24), clips=_twice_the_first())
    (two, _), (same, _) = (next(iter(DataLoader(one, num_workers=1, seed=1))) for one in (data, still))
    assert torch.equal(same[0, 0], same[0, 1]) and torch.equal(same[0, 0], two[0, 0])
    assert not torch.equal(two[0, 0], two[0, 1])


def _twice_the_first() -> Any:
    return clips_at_regular_indices(num_frames_per_clip=2, num_indices_between_frames=100, policy="repeat_last")


@pytest.mark.parametrize("world", [2, 3, 5])
def test_ranks_share_the_clips(videos: Path, world: int) -> None:
    data = Videos(often(videos), list(range(len(OFTEN))), TRAIN, clips=RANDOM)
    alone = [clips for clips, _ in DataLoader(data, batch_size=world, num_workers=2, seed=3)]
    together = steps(ranks(world, data, batch_size=1, num_workers=1, seed=3))
    for whole, step in zip(alone, together, strict=False):
        assert torch.equal(whole, torch.cat([clips for clips, _ in step])[: len(whole)])


def test_an_epoch_goes_on_from_a_state(videos: Path) -> None:
    data = Videos(often(videos), list(range(len(OFTEN))), TRAIN, clips=RANDOM)
    options: dict[str, Any] = {"batch_size": 2, "shuffle": True, "seed": 3}
    assert_resumed(data, options)


def test_subsets_and_concatenations(videos: Path) -> None:
    paths = often(videos)
    first, second = (
        Videos(some, list(range(len(some))), v2.CenterCrop(32), clips=REGULAR) for some in (paths, paths[:2])
    )
    second.transform = first.transform
    data: Subset[Any] = Subset(ConcatDataset([first, second]), [6, 0, 3])
    loader = DataLoader(data, batch_size=2, num_workers=2)
    assert loader.route == "native"
    assert assert_equal_batches(loader, TorchDataLoader(data, batch_size=2)) == 2
    second.clips = uniform_frames(4)
    assert DataLoader(ConcatDataset([first, second])).route != "native"


def test_frames_that_are_named_for_each_sample(videos: Path) -> None:
    path, random = often(videos)[0], np.random.default_rng(0)
    numbers = frames_at(random.integers(-60, 60, (7, 3)))
    times = frames_played_at(random.uniform(0.1, 1.9, (7, 3)))
    for clips in (numbers, times):
        data = Videos([path] * 7, list(range(7)), v2.CenterCrop(32), clips=clips)
        chosen = Subset(data, [5, 0, 6, 2])
        loader = DataLoader(chosen, batch_size=3, num_workers=2)
        assert loader.route == "native"
        assert assert_equal_batches(loader, TorchDataLoader(chosen, batch_size=3)) == 2
    beyond = Videos([path], [0], v2.CenterCrop(32), clips=frames_at([[59, 60]]))
    assert_as_torchcodec(DataLoader(beyond, num_workers=1), beyond)


def test_videos_are_fields(videos: Path) -> None:
    paths, count = often(videos), len(OFTEN)
    front = Videos(paths, None, TRAIN, clips=RANDOM)
    side = Videos(paths[::-1], None, v2.CenterCrop(32), clips=uniform_frames(2))
    fields = Fields({"front": front, "side": side, "action": np.arange(3.0 * count).reshape(count, 3)})
    options: dict[str, Any] = {"batch_size": 2, "shuffle": True, "seed": 4}
    loader = DataLoader(fields, num_workers=2, **options)
    assert loader.route == "native"
    batches = list(loader)
    for one, other in zip(batches, DataLoader(fields, num_workers=0, **options), strict=True):
        assert list(one) == ["front", "side", "action"]
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert batches[0]["front"].shape == (2, 2, 3, 3, 24, 24) and batches[0]["side"].shape == (2, 2, 3, 32, 32)
    assert loader.verify(3).samples == count
    assert "front: read, decode" in str(loader.explain())
    together = Fields({"front": front, "side": side}, geometry=v2.CenterCrop(8))
    assert DataLoader(together, batch_size=2).route != "native"


def _brighten(clip: torch.Tensor) -> torch.Tensor:
    return clip // 2 + 100


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (None, "sizes vary"),
        (v2.Compose([v2.CenterCrop(32), v2.Lambda(_brighten)]), "gets clips"),
        (v2.Compose([v2.CenterCrop(32), v2.UniformTemporalSubsample(2)]), "UniformTemporalSubsample"),
    ],
)
def test_torch_delivers_what_is_not_done_frame_by_frame(videos: Path, transform: Any, why: str) -> None:
    data = Videos([often(videos)[0]], [3], transform, clips=REGULAR if transform is None else uniform_frames(4))
    loader = DataLoader(data, num_workers=0)
    assert loader.route != "native" and why in str(loader.explain())
    assert assert_equal_batches(loader, TorchDataLoader(data)) == 1


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_files_that_cannot_be_decoded(videos: Path, tmp_path: Path, on_error: Any, workers: int) -> None:
    whole = often(videos)[0]
    data = bytearray(whole.read_bytes())
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "huge.mp4").write_bytes(b"\x7f\xff\xff\xff" + bytes(data[4:]))
    (tmp_path / "short.mp4").write_bytes(bytes(data[: len(data) // 2]))
    bad = [tmp_path / name for name in ("text.mp4", "missing.mp4", "empty.mp4", "huge.mp4", "short.mp4")]
    for path in bad:
        source = Videos([path, whole], [0, 1], v2.CenterCrop(32), clips=RANDOM)
        with pytest.raises(Exception) as theirs:
            source[0]
        loader = DataLoader(source, batch_size=2, num_workers=workers, on_error=on_error, seed=1)
        if on_error == "raise":
            with pytest.raises(SampleError, match=path.name) as ours:
                list(loader)
            assert type(ours.value.__cause__) is type(theirs.value)
        else:
            with pytest.warns(UserWarning, match=path.name):
                clips, labels = next(iter(loader))
                assert labels.tolist() == ([1] if on_error == "skip" else [1, 1])
                list(loader)  # the warning comes at the end of an epoch
            assert len(clips) == len(labels)


@pytest.mark.parametrize("seed", range(4))
def test_damage_in_the_middle_is_torchcodecs(videos: Path, tmp_path: Path, seed: int) -> None:
    data, random = bytearray(often(videos)[0].read_bytes()), np.random.default_rng(seed)
    for place in random.integers(len(data) // 4, len(data), 3 << seed).tolist():
        data[place] ^= 0x5A
    (tmp_path / "damaged.mp4").write_bytes(data)
    source = Videos([tmp_path / "damaged.mp4"], [0], v2.CenterCrop(32), clips=uniform_frames(20))
    assert_as_torchcodec(DataLoader(source, num_workers=1), source)


def test_a_file_that_changes_is_read_again(videos: Path, tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    source = Videos([path], [0], v2.CenterCrop(32), clips=uniform_frames(3))
    loader = DataLoader(source, num_workers=1)
    for name in ("x264.mp4", "ntsc.mp4", "vp9.webm"):
        path.write_bytes(make_video(videos / name, *{**INDEXED, **PASSED_ON}[name]).read_bytes())
        assert assert_equal_batches(loader, TorchDataLoader(source)) == 1


def test_one_thread_decodes_the_frames_of_a_sample(videos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, str]] = []
    both, plain = threading.Barrier(2, timeout=60), video_clips.open_clip

    def open_clip(path: str, *args: Any) -> Any:
        opened.append((Path(path).name, threading.current_thread().name))
        both.wait()  # the frames of the other sample go to the other thread
        return plain(path, *args)

    monkeypatch.setattr(frame_lane, "open_clip", open_clip)
    paths = often(videos)[:2]
    data = Videos(paths, [0, 1], v2.CenterCrop(32), clips=REGULAR)
    loader = DataLoader(data, batch_size=2, num_workers=2)
    assert assert_equal_batches(loader, TorchDataLoader(data, batch_size=2)) == 1
    assert sorted(name for name, _ in opened) == [path.name for path in sorted(paths)]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_thread_holds_the_frames_of_one_sample(videos: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, lock, alive, most = video_clips.open_clip, threading.Lock(), weakref.WeakSet[Any](), 0

    def open_clip(*args: Any) -> Any:
        nonlocal most
        clip = plain(*args)
        with lock:
            alive.add(clip)
            most = max(most, len(alive))
        return clip

    monkeypatch.setattr(frame_lane, "open_clip", open_clip)
    data = Videos([often(videos)[0]] * 24, None, v2.CenterCrop(32), clips=uniform_frames(6))
    loader = DataLoader(data, batch_size=2, num_workers=threads, prefetch_factor=8)
    assert sum(len(clips) for clips in loader) == 24
    assert 1 <= most <= threads
    loader.close()
    gc.collect()
    assert not alive


def test_no_frame_is_waited_for_in_vain(videos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with a frame, the frames that other threads have left to its thread end, too."""
    never, plain = threading.Event(), video_clips.open_clip

    class Broken:
        cost = DecodingCost()

        def __getitem__(self, place: int) -> Any:
            return np.zeros((5, 7, 2), np.uint8)  # no image of the pipeline's

    def open_clip(path: str, *args: Any) -> Any:
        if Path(path).name != "x264.mp4":
            return plain(path, *args)
        never.wait(0.2)  # frames of this sample come to the other thread meanwhile
        return Broken()

    monkeypatch.setattr(frame_lane, "open_clip", open_clip)
    data = Videos(often(videos)[:2], [0, 1], v2.CenterCrop(32), clips=REGULAR)
    loader = DataLoader(data, batch_size=2, num_workers=2, on_error="skip", timeout=60)
    with pytest.warns(UserWarning, match=r"x264\.mp4.*do not fit"):
        assert [labels.tolist() for _, labels in loader] == [[1]]


def test_arguments(videos: Path) -> None:
    with pytest.raises(TypeError, match="list of paths"):
        Videos("video.mp4", clips=REGULAR)
    with pytest.raises(TypeError, match="clips_at_random_indices"):
        Videos(["video.mp4"], clips=16)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 paths but 2 labels"):
        Videos(["video.mp4"], [1, 2], clips=REGULAR)
    with pytest.raises(ValueError, match="some are files"):
        Videos(["https://example.com/video.mp4", "video.mp4"], clips=REGULAR)
    data = Videos([often(videos)[0]], clips=REGULAR)
    assert data[0].shape == (3, 4, 3, 66, 98) and data.image_size(0) == (66, 98) and len(data) == 1


def test_explain_and_stats_name_the_frames(videos: Path) -> None:
    data = Videos(often(videos), list(range(len(OFTEN))), TRAIN, clips=RANDOM)
    loader = DataLoader(data, batch_size=2, num_workers=2, seed=1)
    table = str(loader.explain())
    assert "(2, 3, 3, 24, 24)" in table and "PyAV" in table and repr(RANDOM) in table
    for _ in loader:
        pass
    assert {one.name: one.items for one in loader.stats().stages}["video"] == len(OFTEN) * RANDOM.frames

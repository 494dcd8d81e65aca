"""Clips that a GPU's decoder decodes through torchcodec, up to the border: a double of it stands for NVDEC."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from bench.remote.object_server import ObjectServer
from clip_batches import assert_equal_batches, assert_resumed

from headrace import DataLoader, EncodedImages, Fields, SampleError, VerificationError, Videos
from headrace._engine import destination as destinations
from headrace._engine.destination import Destination
from headrace.datasets import clips_at_random_indices, clips_at_random_timestamps, uniform_frames
from support import EMULATED_BY_A_GPU, blobs, train
from torchvision_shim import import_torchvision
from video_files import INDEXED, PASSED_ON, forget_videos, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)
if EMULATED_BY_A_GPU:
    pytest.skip("the double stands for a GPU", allow_module_level=True)

from torchcodec import decoders

from headrace._media import library_decoders
from headrace._media.video import device_frames
from headrace._storage.remote.fetcher_registry import close_all

v2 = import_torchvision().transforms.v2

GPU = torch.device("cuda", 1)
RANDOM = clips_at_random_indices(num_clips=2, num_frames_per_clip=3, num_indices_between_frames=4)
TIMES = clips_at_random_timestamps(num_clips=2, num_frames_per_clip=3)
NAMES = "x264.mp4", "vp9.webm", "variable.mp4"
CROP = v2.CenterCrop(32)
TRAIN = v2.Compose(
    [
        v2.RandomResizedCrop(24, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.2]),
        v2.RandomErasing(0.5),
    ]
)
OPTIONS: dict[str, Any] = {"device": "emulated", "decoder": "hardware", "seed": 5}


class Double:
    """A `VideoDecoder` that takes a GPU and decodes on the CPU; a changed bit of each byte shows whose frames they are.

    Attributes:
        opened: (device, whether the frames of the file were given) of each one that decodes on the GPU.
        streams: of the thread that called, at each of these; None: it had none of its own.
        refuses_indexes, falls_back: whether each decoder does.
    """

    plain: Any = decoders.VideoDecoder
    opened: list[tuple[str, bool]]
    streams: list[int | None]
    devices = str(GPU), "cpu"
    refuses_indexes = falls_back = False
    current = threading.local()

    def __init__(self, source: Any, *, device: str, **options: Any) -> None:
        self.device, mapped = str(device), "custom_frame_mappings" in options
        if self.device not in self.devices:
            raise RuntimeError(f"validate, DeviceInterface.cpp:87, Unsupported device: {device} (variant: default)")
        if self.device != "cpu":
            self.opened.append((self.device, mapped))
            self.streams.append(getattr(self.current, "stream", None))
            if mapped and self.refuses_indexes:
                raise RuntimeError("the frames do not fit the file")
        self._decoder = self.plain(source, device="cpu", **options)
        self.metadata, self.stream_index = self._decoder.metadata, self._decoder.stream_index

    @property
    def cpu_fallback(self) -> str:
        return "Video not supported" if self.falls_back else ""

    def get_frames_at(self, numbers: list[int]) -> Any:
        return self._coloured(self._decoder.get_frames_at(numbers))

    def get_frames_played_at(self, seconds: list[float]) -> Any:
        return self._coloured(self._decoder.get_frames_played_at(seconds))

    def _coloured(self, frames: Any) -> Any:
        if self.device != "cpu":
            frames.data.bitwise_xor_(1)
        return frames


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for videos."""
    return tmp_path_factory.mktemp("device_videos")


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    forget_videos(monkeypatch)
    yield
    close_all()


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Double]]:
    """The double in place of `VideoDecoder`; what "emulated" decodes, it decodes on `GPU`."""
    kind: Any = type("Mine", (Double,), {"opened": [], "streams": []})
    monkeypatch.setattr(decoders, "VideoDecoder", kind)
    plain = device_frames.DeviceFrames
    monkeypatch.setattr(device_frames, "DeviceFrames", lambda device: plain(GPU))
    monkeypatch.setattr(Destination, "of_videos", property(lambda self: GPU if self.decodes_videos else "cpu"))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: threading.get_ident())

    @contextlib.contextmanager
    def stream(number: int) -> Iterator[None]:
        kind.current.stream = number
        yield
        del kind.current.stream

    monkeypatch.setattr(torch.cuda, "stream", stream)
    caches = library_decoders._decoder_class, device_frames.why_not_on
    for cache in caches:
        cache.cache_clear()
    yield kind
    for cache in caches:
        cache.cache_clear()


def paths_of(videos: Path) -> list[Path]:
    return [make_video(videos / name, *{**INDEXED, **PASSED_ON}[name]) for name in NAMES]


@pytest.mark.parametrize("clips", [RANDOM, TIMES])
@pytest.mark.parametrize("source", ["files", "memory", "http"])
def test_frames_are_the_devices(videos: Path, double: type[Double], source: str, clips: Any) -> None:
    """One decoder a sample, also for two clips of a file, in a stream of the thread; by an index where there is one."""
    with contextlib.ExitStack() as stack:
        given: Any = paths_of(videos)
        if source == "http":
            url = stack.enter_context(ObjectServer(videos)).url
            given = [f"{url}/{path.name}" for path in given]
        elif source == "memory":
            given = EncodedImages([path.read_bytes() for path in given], range(len(given)))
        labels = None if source == "memory" else list(range(len(NAMES)))
        data = Videos(given, labels, CROP, clips=clips)
        exact = [(frames ^ 1, its) for frames, its in DataLoader(data, num_workers=1, device="emulated", seed=5)]
        assert not double.opened
        loader = DataLoader(data, num_workers=2, **OPTIONS)
        assert loader.route == "native"
        assert assert_equal_batches(loader, exact) == len(NAMES)
        loader.close()
    assert sorted(double.opened) == [(str(GPU), False), (str(GPU), True), (str(GPU), True)]
    assert None not in double.streams


def test_draws_are_those_of_the_cpu(videos: Path, double: type[Double]) -> None:
    data = Videos(paths_of(videos) * 2, list(range(6)), TRAIN, clips=RANDOM)
    options = {**OPTIONS, "batch_size": 2, "shuffle": True}
    first = list(DataLoader(data, num_workers=0, **options))
    for workers in (1, 2):
        assert assert_equal_batches(DataLoader(data, num_workers=workers, **options), first) == 3
    assert_resumed(data, options)
    of_cpu = list(DataLoader(data, num_workers=1, **{**options, "decoder": "cpu"}))
    for (frames, labels), (theirs, its) in zip(first, of_cpu, strict=True):  # the same clips, crops and boxes
        assert torch.equal(labels, its) and not torch.equal(frames, theirs)
        assert (frames - theirs).abs().max() < 0.1


def test_verify_compares_with_the_decoder_of_the_device(
    videos: Path, double: type[Double], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Videos(paths_of(videos), list(range(3)), TRAIN, clips=RANDOM)
    loader = DataLoader(data, batch_size=2, num_workers=2, **OPTIONS)
    assert loader.verify(2).samples == 3
    fields = Fields({"clip": Videos(paths_of(videos), None, TRAIN, clips=RANDOM, dimension_order="CTHW")})
    assert DataLoader(fields, batch_size=2, num_workers=2, **OPTIONS).verify(2).samples == 3
    monkeypatch.setattr(Destination, "of_videos", torch.device("cpu"))
    single = Videos(paths_of(videos), None, TRAIN, clips=uniform_frames(3))
    fields = Fields({"clip": single})
    for one, batch_size in ((data, 2), (single, None), (fields, 2), (fields, None)):
        with pytest.raises(VerificationError, match="differs in"):
            DataLoader(one, batch_size=batch_size, num_workers=2, **OPTIONS).verify(2)


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_files_that_cannot_be_decoded(videos: Path, double: type[Double], tmp_path: Path, on_error: Any) -> None:
    whole, bad = paths_of(videos)[0], tmp_path / "text.mp4"
    bad.write_text("no video")
    data = Videos([bad, whole], [0, 1], CROP, clips=RANDOM)
    loader = DataLoader(data, batch_size=2, num_workers=2, on_error=on_error, **OPTIONS)
    if on_error == "raise":
        with pytest.raises(SampleError, match=re.escape(bad.name)):
            list(loader)
        return
    with pytest.warns(UserWarning, match=bad.name):
        ((clips, labels),) = list(loader)
    assert labels.tolist() == ([1] if on_error == "skip" else [1, 1])
    assert len(clips) == len(labels) and double.opened


def test_an_index_that_torchcodec_refuses(videos: Path, double: type[Double]) -> None:
    """It scans the file."""
    double.refuses_indexes = True
    data = Videos(paths_of(videos)[:1], [0], CROP, clips=TIMES)
    exact = [(frames ^ 1, its) for frames, its in DataLoader(data, num_workers=1, seed=5)]
    assert assert_equal_batches(DataLoader(data, num_workers=1, **OPTIONS), exact) == 1
    assert double.opened == [(str(GPU), True), (str(GPU), False)]


def test_what_the_device_does_not_take_is_counted(videos: Path, double: type[Double]) -> None:
    data = Videos(paths_of(videos), list(range(3)), CROP, clips=RANDOM)
    loader = DataLoader(data, num_workers=1, **OPTIONS)
    list(loader)
    assert "3 samples decoded on the device through torchcodec;" in str(loader.stats())
    double.falls_back = True
    loader = DataLoader(data, num_workers=1, **OPTIONS)
    with pytest.warns(
        RuntimeWarning, match=r"NVDEC has decoded none of 1 samples.*\(Video not supported\).*decoder out"
    ):
        list(loader)
    counted = loader.stats().videos
    assert counted is not None and (counted.on_device, counted.left_to_cpu) == (3, 3)
    assert "3 of them by its CPU decoder" in str(counted)


def test_nothing_but_hardware_is_inexact(videos: Path, double: type[Double]) -> None:
    data = Videos(paths_of(videos), list(range(3)), CROP, clips=RANDOM)
    expected = list(DataLoader(data, num_workers=1, seed=5))
    for decoder in ("auto", "cpu"):
        loader = DataLoader(data, num_workers=1, device="emulated", decoder=decoder, seed=5)
        assert assert_equal_batches(loader, expected) == 3
        assert "NVDEC" not in str(loader.explain()) and "nvJPEG" not in str(loader.explain())
    assert not double.opened
    with pytest.raises(TypeError, match=r"decoder='cuda' decodes JPEGs, and this dataset has videos; give 'hardware'"):
        DataLoader(data, device="emulated", decoder="cuda")
    with pytest.raises(TypeError, match="decoder='cuda' decodes JPEGs"):
        DataLoader(
            Fields({"front": Videos(paths_of(videos), clips=RANDOM, transform=CROP)}), decoder="cuda", device="emulated"
        )
    with pytest.raises(ValueError, match="needs device='cuda'"):
        DataLoader(data, decoder="hardware")


def test_fields_of_videos_and_images(videos: Path, double: type[Double]) -> None:
    paths = paths_of(videos)
    fields = Fields({"clip": Videos(paths, None, CROP, clips=RANDOM), "image": blobs(3, transform=train(16))})
    exact = list(DataLoader(fields, num_workers=1, device="emulated", seed=5))
    for ours, theirs in zip(DataLoader(fields, num_workers=1, **OPTIONS), exact, strict=True):
        assert torch.equal(ours["clip"], theirs["clip"] ^ 1)
    table = str(DataLoader(fields, num_workers=1, **OPTIONS).explain())
    assert "in place of NVDEC" in table and "stand-in for nvJPEG" in table


# ---- the decision, where there is a GPU ------------------------------------------------------------------------------


class _Module:
    """A module `_gpu` for a GPU without JPEG engines, as most are."""

    cuda = True

    @staticmethod
    def trouble() -> str:
        return ""

    @staticmethod
    def nvjpeg(index: int, decoder: str, candidates: list[str]) -> str:
        raise RuntimeError(f"no {decoder} here")


@pytest.fixture(params=["fused", "copy"])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine with two GPUs, as far as the arguments of a loader are concerned; the way that batches get there."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    module = (_Module, "") if request.param == "fused" else (None, "no such file")
    monkeypatch.setattr(destinations, "import_gpu_module", lambda: module)
    destinations._probe_nvjpeg.cache_clear()
    return str(request.param)


def test_a_gpu_without_jpeg_engines_decodes_videos(videos: Path, double: type[Double], gpu: str) -> None:
    data = Videos(paths_of(videos), list(range(3)), CROP, clips=RANDOM)
    loader = DataLoader(data, num_workers=1, device="cuda:1", decoder="hardware")
    assert loader._own.destination.way == gpu and double.opened == [(str(GPU), False)]  # the trial
    table = str(loader.explain())
    assert "NVDEC (cuda:1)" in table and "nvJPEG" not in table
    exact = DataLoader(data, num_workers=1, device="cuda:1")
    assert not exact._own.destination.decodes_videos and "NVDEC" not in str(exact.explain())
    mixed = Fields({"clip": Videos(paths_of(videos), None, CROP, clips=RANDOM), "image": blobs(3, transform=train(16))})
    for others in (mixed, blobs(3, transform=train(16)), [1, 2, 3]):
        with pytest.raises(RuntimeError, match=r"decoder='hardware' is not available: (hardware: no hardware|no such)"):
            DataLoader(others, device="cuda:1", decoder="hardware")  # type: ignore[arg-type]


def test_a_torchcodec_without_cuda_is_one_sentence(
    videos: Path, double: type[Double], gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Videos(paths_of(videos), list(range(3)), CROP, clips=RANDOM)
    for one in (data, Fields({"clip": Videos(paths_of(videos), None, CROP, clips=RANDOM)})):
        monkeypatch.setattr(double, "devices", ("cpu",))
        device_frames.why_not_on.cache_clear()
        with pytest.raises(
            RuntimeError, match=r"'hardware' is not available: torchcodec .* was built without CUDA; .*out$"
        ):
            DataLoader(one, device="cuda:1", decoder="hardware")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_torchcodecs_own_answer_without_a_gpu() -> None:
    device_frames.why_not_on.cache_clear()
    assert re.match(
        "torchcodec .* (was built without CUDA;|opens no video on cuda:0: )",
        device_frames.why_not_on(torch.device("cuda:0")),
    )
    assert device_frames.why_not_on(torch.device("cpu")) == ""

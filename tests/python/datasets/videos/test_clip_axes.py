"""Clips as (C, T, H, W): the values of (T, C, H, W), in that order by native threads and by torch's workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, Fields, ImageFiles, Videos
from headrace._engine.image_engine import ImageEngine
from headrace._recipe.images.memory_format import Layout
from headrace.datasets import clips_at_random_indices, clips_at_regular_indices, uniform_frames
from headrace.transforms import Compose, PILToTensor, Resize
from torchvision_shim import import_torchvision
from video_files import INDEXED, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

v2 = import_torchvision().transforms.v2

TWO = clips_at_regular_indices(num_clips=2, num_frames_per_clip=3)
ONE_SIZE = Compose([Resize((8, 8)), PILToTensor()])
RANDOM = clips_at_random_indices(num_frames_per_clip=4, num_indices_between_frames=2)
FLOATS = v2.Compose(
    [v2.RandomResizedCrop(24, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, True)]
)
NOISE = v2.Compose([FLOATS, v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.2]), v2.RandomErasing(1.0, value="random")])


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("axes")
    return [make_video(folder / name, *INDEXED[name]) for name in ("x264.mp4", "vp9.webm", "10_bit.mp4")] * 2


def both(paths: list[Path], transform: Any, clips: Any) -> tuple[Videos, Videos]:
    """The same clips, whose axes are (T, C, H, W), and (C, T, H, W)."""
    labels = list(range(len(paths)))
    return Videos(paths, labels, transform, clips=clips), Videos(
        paths, labels, transform, clips=clips, dimension_order="CTHW"
    )


def assert_transposed(usual: Any, other: Any) -> int:
    count = 0
    for (clips, labels), (found, its) in zip(usual, other, strict=True):
        assert torch.equal(found, clips.transpose(-4, -3)) and torch.equal(labels, its), count
        assert found.dtype == clips.dtype and found.is_contiguous()
        count += 1
    return count


@pytest.mark.parametrize("clips", [TWO, RANDOM])
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_batches_are_the_usual_ones_transposed(paths: list[Path], clips: Any, device: str) -> None:
    usual, other = both(paths, NOISE, clips)
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 3}
    expected = list(DataLoader(usual, num_workers=2, **options))
    for workers in (0, 1, 2) if device == "cpu" else (2,):
        loader = DataLoader(other, num_workers=workers, device=device, **options)
        assert loader.route == "native"
        assert assert_transposed(expected, loader) == 2
        if workers:
            assert loader.verify(2).samples == 6
            assert f"{(*clips.shape[:-1], 3, clips.shape[-1], 24, 24)}" in str(loader.explain())


@pytest.mark.parametrize(
    "transform", [v2.CenterCrop(32), v2.Compose([v2.CenterCrop(30), v2.ToDtype(torch.bfloat16, True)])]
)
@pytest.mark.parametrize("clips", [TWO, uniform_frames(5)])
def test_samples_are_the_datasets(paths: list[Path], transform: Any, clips: Any) -> None:
    usual, other = both(paths, transform, clips)
    assert torch.equal(other[1][0], usual[1][0].transpose(-4, -3)) and other[1][0].is_contiguous()
    for (found, labels), (wanted, its) in zip(
        DataLoader(other, 4, num_workers=2), TorchDataLoader(other, 4), strict=True
    ):
        assert torch.equal(found, wanted) and torch.equal(labels, its) and found.dtype == wanted.dtype
        assert found.is_contiguous() and found.shape == wanted.shape
    single = next(iter(DataLoader(other, None, num_workers=1)))[0]
    assert torch.equal(single, other[0][0]) and type(single) is torch.Tensor


def test_channels_last(paths: list[Path]) -> None:
    usual, other = both(paths, FLOATS, TWO)
    options: dict[str, Any] = {"batch_size": 4, "num_workers": 2, "seed": 1}
    last = DataLoader(other, memory_format=torch.channels_last, **options)
    for (found, _), (wanted, _) in zip(last, DataLoader(usual, **options), strict=True):
        assert torch.equal(found, wanted.transpose(-4, -3))
        assert found[0].is_contiguous(memory_format=torch.channels_last_3d)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_failed_samples_leave_the_others(paths: list[Path], tmp_path: Path, on_error: str) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(paths[0].read_bytes()[:5000])
    usual, other = both([paths[0], broken, paths[1], broken, paths[2]], FLOATS, RANDOM)
    options: dict[str, Any] = {"batch_size": 5, "num_workers": 2, "seed": 1, "on_error": on_error}
    with pytest.warns(UserWarning, match="2 samples could not be made"):
        expected = list(DataLoader(usual, **options))
    with pytest.warns(UserWarning, match="2 samples could not be made"):
        assert assert_transposed(expected, DataLoader(other, **options)) == 1
    assert len(expected[0][0]) == (3 if on_error == "skip" else 5)


def test_fields_and_resume(paths: list[Path]) -> None:
    usual, other = both(paths, FLOATS, RANDOM)
    options: dict[str, Any] = {"batch_size": 2, "num_workers": 2, "seed": 1, "shuffle": True}
    loader = DataLoader(Fields({"front": other, "wrist": usual}), **options)
    expected = DataLoader(Fields({"front": usual, "wrist": usual}), **options)
    for found, wanted in zip(loader, expected, strict=True):
        assert torch.equal(found["front"][0], wanted["front"][0].transpose(1, 2)) and found["front"][0].is_contiguous()
        assert torch.equal(found["wrist"][0], wanted["wrist"][0])
    assert loader.verify(2).samples == 4
    first = DataLoader(other, **options)
    batches = iter(first)
    next(batches)
    again = DataLoader(other, **options)
    again.load_state_dict(first.state_dict())
    for (found, _), (wanted, _) in zip(again, batches, strict=True):
        assert torch.equal(found, wanted)


def test_where_torch_delivers(paths: list[Path]) -> None:
    _, other = both(paths, v2.Compose([v2.CenterCrop(30), v2.Lambda(lambda clip: clip.flip(0))]), RANDOM)
    same, _ = both(paths, v2.CenterCrop(30), uniform_frames(4))
    loader = DataLoader(other, 3, num_workers=0)
    found = next(iter(loader))[0]
    assert not loader.native and "Lambda" in str(loader.explain()) and found.shape == (3, 3, 4, 30, 30)
    _, fixed = both(paths, v2.Compose([v2.CenterCrop(30), v2.Lambda(lambda clip: clip.flip(0))]), uniform_frames(4))
    assert torch.equal(fixed[0][0], same[0][0].flip(0).transpose(0, 1))


def test_bad_orders(paths: list[Path]) -> None:
    with pytest.raises(ValueError, match="dimension_order must be 'TCHW' or 'CTHW', not 'NCHW'"):
        Videos(paths, clips=TWO, dimension_order="NCHW")  # type: ignore[arg-type]
    mixed: Any = DataLoader(ConcatDataset(both(paths, v2.CenterCrop(30), RANDOM)), 2)
    assert not mixed.native and "dimension_order" in str(mixed.explain())


def test_the_core_takes_whole_clips_of_planar_images() -> None:
    route: Any = DataLoader(ImageFiles(["image.jpg"], None, ONE_SIZE), 1)._route
    engine = ImageEngine(route.recipe, Layout.PLANAR, threads=1, slots_kept=1, frames=3)
    with pytest.raises(ValueError, match="all frames of each"):
        engine.submit(route.source.blob_table(), np.zeros(4, np.int64), np.zeros((4, len(route.draws))))
    engine.close()
    with pytest.raises(ValueError, match="only planar images of one size"):
        ImageEngine(route.recipe, Layout.CHANNELS_LAST, threads=1, slots_kept=1, frames=3)

"""Waveforms beside other fields of a sample: those of the dataset's own oracle, of the same files as the clips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import StackDataset, Subset

from audio_files import RATE, make_wav
from headrace import Audio, DataLoader, Fields, ImageFiles, Videos, transforms, uniform_frames
from support import write_folder
from torchvision_shim import import_torchvision
from video_files import INDEXED, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

v2 = import_torchvision().transforms.v2
COUNT = 6


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sounds")
    paths = [folder / f"{number}.wav" for number in range(COUNT - 1)]
    for number, path in enumerate(paths):
        path.write_bytes(make_wav("s16", 3000 + 2000 * number, 1 + number % 2, RATE, seed=number))
    return [*paths, make_video(folder / "with_sound.mp4", *INDEXED["with_sound.mp4"])]


def assert_same(ours: Any, theirs: Any) -> None:
    """Compares two batches to the bit, with the types of their parts."""
    assert type(ours) is type(theirs)
    if isinstance(ours, torch.Tensor):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for name, value in ours.items():
            assert_same(value, theirs[name])
    elif isinstance(ours, (int, str)):
        assert ours == theirs
    else:
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize("workers", [0, 2])
def test_video_and_its_sound(sounds: list[Path], workers: int) -> None:
    film = [sounds[-1]] * 3
    fields = {
        "video": Videos(film, [4, 5, 6], v2.CenterCrop(32), clips=uniform_frames(3)),
        "audio": Audio(film, seconds=1.0, sample_rate=RATE, crop="center", lengths=True),
        "number": np.arange(3),
        "text": ["a", "b", "c"],
    }
    loader = DataLoader(Fields(fields), batch_size=2, num_workers=workers)
    assert loader.native and "audio: plain WAV" in str(loader.explain())
    for ours, theirs in zip(loader, TorchDataLoader(Fields(fields), batch_size=2), strict=True):
        assert_same(ours, theirs)
    assert ours["audio"][0].shape == (1, 1, RATE) and ours["audio"][1].tolist() == [RATE]


@pytest.mark.parametrize(
    "options",
    [{"crop": "start", "seconds": 0.5}, {"crop": "center", "seconds": 0.2, "lengths": True, "num_channels": 2}],
)
def test_batches_and_samples_are_torchs(sounds: list[Path], tmp_path: Path, options: dict[str, Any]) -> None:
    images = sorted(write_folder(tmp_path / "images", COUNT).rglob("*.*"))[:COUNT]
    small = transforms.Compose([transforms.Resize((16, 16)), transforms.ToTensor()])
    audio = Audio(sounds, list(range(COUNT)), sample_rate=RATE, **options)
    for data in (
        Fields({"image": ImageFiles(images, None, small), "audio": audio}),
        StackDataset(ImageFiles(images, None, small), audio),
        Subset(Fields({"audio": audio, "row": np.arange(2 * COUNT).reshape(COUNT, 2)}), [5, 3, 1]),
    ):
        loader = DataLoader(data, batch_size=4, num_workers=2)
        assert loader.native, loader.explain()
        for ours, theirs in zip(loader, TorchDataLoader(data, batch_size=4), strict=True):
            assert_same(ours, theirs)
    single = next(iter(DataLoader(data, None, num_workers=1)))
    wanted = next(iter(TorchDataLoader(data, None)))
    assert_same(single, wanted)


def test_random_crops_are_verified_and_resumed(sounds: list[Path]) -> None:
    audio = Audio(sounds, seconds=0.1, sample_rate=RATE, lengths=True)
    data = Fields({"audio": audio, "again": Audio(sounds, seconds=0.1, sample_rate=RATE), "row": np.arange(COUNT)})
    options: dict[str, Any] = {"batch_size": 2, "shuffle": True, "seed": 7}
    first, *others = [list(DataLoader(data, num_workers=workers, **options)) for workers in (0, 1, 2)]
    for other in others:
        assert_same(other, first)
    assert not torch.equal(first[0]["audio"][0], first[0]["again"])  # each field draws for itself
    loader = DataLoader(data, num_workers=2, **options)
    assert loader.verify(3).samples == COUNT
    batches = iter(loader)
    next(batches)
    resumed = DataLoader(data, num_workers=1, **options)
    resumed.load_state_dict(loader.state_dict())
    assert_same(list(resumed), list(batches))
    for _ in range(2):  # the route is kept from epoch to epoch
        assert len(list(loader)) == 3 and loader.native


def test_failures_and_what_is_left_to_torch(sounds: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"RIFF")
    paths = [*sounds[:2], broken, *sounds[2:]]
    data = Fields({"audio": Audio(paths, seconds=0.1, sample_rate=RATE), "row": np.arange(len(paths))})
    with pytest.warns(UserWarning, match="1 samples could not be made"):
        (batch,) = DataLoader(data, batch_size=len(paths), num_workers=2, on_error="skip")
    assert batch["row"].tolist() == [0, 1, 3, 4, 5, 6] and len(batch["audio"]) == COUNT
    whole = DataLoader(Fields({"audio": Audio(sounds), "row": np.arange(COUNT)}), batch_size=1)
    assert not whole.native and "field 'audio': whole audio files have different lengths" in str(whole.explain())
    with pytest.raises(TypeError, match="field 'audio' is audio, which a geometry of images cannot change"):
        Fields({"audio": Audio(sounds)}, geometry=transforms.RandomHorizontalFlip())

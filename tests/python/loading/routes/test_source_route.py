"""Datasets of different kinds of files: a loader makes images, videos or audio, and says so where they are mixed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from torch.utils.data import ConcatDataset, Subset

from headrace import Audio, DataLoader, ImageFiles, Videos, uniform_frames
from headrace.transforms import Compose, PILToTensor, Resize

ONE_SIZE = Compose([Resize((8, 8)), PILToTensor()])
KINDS: dict[str, Any] = {
    "audio": Audio(["sound.wav"], seconds=1, sample_rate=8000),
    "images": ImageFiles(["image.jpg"], None, ONE_SIZE),
    "videos": Videos(["video.mp4"], None, ONE_SIZE, clips=uniform_frames(2)),
}


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(KINDS, 2)])
def test_a_concatenation_of_two_kinds_says_so(first: str, second: str) -> None:
    joined: Any = ConcatDataset([Subset(KINDS[first], [0]), KINDS[second]])
    loader: Any = DataLoader(joined, batch_size=2)
    assert not loader.native
    assert f"joins {' and '.join(sorted((first, second)))}; join only one" in str(loader.explain())

"""The loader's argument entry_points: shared by loaders, within its limit, on every native path, counted in stats()."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headrace
from headrace import EntryPoints
from headrace import transforms as T
from support import PHOTOS, assert_same, output_of, train


def photographs() -> list[bytes]:
    return [file.read_bytes() for file in sorted(PHOTOS.glob("*.jpg"))]


def loader(entry_points: Any, transform: Any = None, **options: Any) -> headrace.DataLoader:
    images = photographs()
    blobs = headrace.EncodedImages(images, list(range(len(images))), transform or train(48))
    return headrace.DataLoader(blobs, 4, shuffle=True, seed=3, entry_points=entry_points, **options)


def epochs(one: headrace.DataLoader, count: int = 3) -> list[Any]:
    made = []
    for epoch in range(count):
        one.set_epoch(epoch)
        made += list(one)
    return made


def step(image: Any) -> Any:
    return image.rotate(90)


@pytest.mark.parametrize(
    ("transform", "options"),
    [
        (None, {"num_workers": 2}),
        (None, {"num_workers": 0}),
        (None, {"device": "emulated"}),
        (T.Views([train(32), train(48)]), {"num_workers": 1}),
        (T.Compose([T.RandomCrop(40, pad_if_needed=True), step, T.PILToTensor()]), {"num_workers": 1}),
    ],
)
def test_every_way_to_a_batch_learns_and_enters(transform: Any, options: dict[str, Any]) -> None:
    points = EntryPoints("4 MB")
    ours = loader(points, transform, **options)
    assert ours.native, ours.explain()
    assert_same(epochs(ours), epochs(loader(None, transform, **options)))
    known = points.counts()
    assert known.images > 0 and known.entered > 0 and known.bytes <= known.limit == 4_000_000
    assert ours.stats().entry_points == known
    assert str(known) in str(ours.stats()) and ours.stats().as_dict()["entry_points"]["entered"] == known.entered


def test_fields_and_selections_learn() -> None:
    points = EntryPoints(1 << 22)
    images = headrace.EncodedImages(photographs(), None, train(48))
    samples = headrace.Fields({"image": images, "number": np.arange(len(images))})
    for dataset in (samples, torch.utils.data.Subset(images, [3, 1, 1, 2])):
        before = points.counts().entered
        ours, plain = (headrace.DataLoader(dataset, 4, seed=1, entry_points=one) for one in (points, None))
        assert ours.native
        assert_same(epochs(ours), epochs(plain))
        assert points.counts().entered > before


def test_loaders_share_one_table_and_each_other_one_has_its_own() -> None:
    points = EntryPoints("1 MB")
    epochs(loader(points), 1)
    known = points.counts()
    epochs(loader(points), 1)
    assert points.counts().entered - known.entered >= known.images  # the second loader found what the first one learned
    alone = loader("1 MB")
    assert isinstance(alone.entry_points, headrace.EntryPoints) and alone.entry_points.counts().images == 0
    assert copy.deepcopy(alone).entry_points is alone.entry_points
    assert pickle.loads(pickle.dumps(points)).counts().images == 0


def test_the_limit_holds() -> None:
    for limit in (1, 700, 2000):
        ours = loader(limit, num_workers=2)
        assert_same(epochs(ours), epochs(loader(None)))
        assert isinstance(ours.entry_points, headrace.EntryPoints)
        known = ours.entry_points.counts()
        assert known.bytes <= limit == known.limit and (known.images == 0) == (limit == 1)


def test_libjpegs_loops_use_none() -> None:
    said = output_of(
        f"""
import os, sys
os.environ["HEADRACE_HUFFMAN"] = "library"
sys.path[:0] = {[str(Path(__file__).parents[number]) for number in (0, 2)]!r}
from test_learning import epochs, loader
from support import assert_same
ours = loader("1 MB")
assert_same(epochs(ours), epochs(loader(None)))
print(ours.entry_points.counts().decodes)
"""
    )
    assert said.split() == ["0"]


def test_arguments() -> None:
    for wrong in (True, 1.5, object()):
        with pytest.raises(TypeError, match="entry_points must be 'auto', bytes of memory"):
            loader(wrong)
    for size in ("much", 0, -1):
        with pytest.raises(ValueError, match="must be a number of bytes"):
            loader(size)
    with pytest.raises(TypeError, match="applies to images"):
        headrace.DataLoader(headrace.Columns({"a": np.arange(4)}), 2, entry_points="1 MB")
    with pytest.raises(TypeError, match="needs headrace's native path"):
        headrace.DataLoader([1, 2], 2, entry_points="1 MB", deferred_images=False)  # type: ignore[arg-type]
    assert loader(None).stats().entry_points is None
    assert repr(EntryPoints("1 MB")) == "EntryPoints('1 MB')"

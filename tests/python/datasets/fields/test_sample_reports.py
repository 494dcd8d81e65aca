"""Reports about samples of several fields, and the lives of their threads and batches."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from stacks import COUNT, assert_equal, encoded, everything, plain

from headrace import DataLoader, EncodedImages, Fields, VerificationError
from headrace._engine.columns_engine import ColumnsEngine
from headrace._recipe.steps.recipe import Recipes
from support import eventually, same, threads_without_ours


def test_memory_that_is_short_for_one_part_costs_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(everything(), 5, seed=1, num_workers=1)
    expected = list(loader)
    loader.set_epoch(0)
    iterator = iter(loader)
    real = ColumnsEngine.tensor
    monkeypatch.setattr(ColumnsEngine, "tensor", lambda *_: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(MemoryError):
        next(iterator)
    monkeypatch.setattr(ColumnsEngine, "tensor", real)
    assert_equal(iterator, expected)


def test_reports() -> None:
    loader = DataLoader(everything(), 6, True, seed=1, num_workers=2)
    text = str(loader.explain())
    for words in (
        "24 samples of image, mask, indices, other, tokens, text, number of headrace.",
        "image: RandomResizedCrop",
        "filter='nearest'",
        "the palette indices of PNGs",
        "tokens: rows",
        "text: values",
        "23 random numbers a sample, the same for all images",
    ):
        assert words in text
    report = loader.verify(3)
    assert (report.batches, report.samples) == (3, 18) and "0 differ" in str(report)
    list(loader)
    stats = loader.stats()
    assert {one.name: one.items for one in stats.stages}["read"] == 4 * COUNT and stats.threads == 10
    recipes = loader.recipe()
    assert isinstance(recipes, Recipes) and list(recipes) == ["image", "mask", "indices", "other"]
    assert "mask: blob 2 in memory" in loader._source.location(2)
    with pytest.raises(TypeError, match=r"dtype=torch\.float16 would change images and masks alike"):
        DataLoader(everything(), dtype=torch.float16)


def test_verify_finds_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Fields({"image": EncodedImages(encoded().images, transform=plain())}), 6)
    recipes = loader.recipe()
    assert isinstance(recipes, Recipes)
    recipes["image"].lut[0, 7:] += 1
    with pytest.raises(VerificationError, match="batch 0: field 'image' differs in"):
        loader.verify()
    files = encoded()
    values = [*range(COUNT)]
    loader = DataLoader(Fields({"x": values, "image": EncodedImages(files.images, transform=plain())}), 6)
    monkeypatch.setattr(type(loader._source), "targets_of", lambda self, indices: {"x": torch.zeros(len(indices))})
    with pytest.raises(VerificationError, match=r"batch 0: field 'x': torch\.float32"):
        loader.verify()


def test_threads_end_and_tensors_stay() -> None:
    before = threads_without_ours()
    loader = DataLoader(everything(), 6, num_workers=2)
    iterator = iter(loader)
    batch = next(iterator)
    kept = copy.deepcopy(batch)
    loader.close()
    del iterator
    assert eventually(lambda: threads_without_ours() == before)
    assert same(batch, kept)
    assert_equal(loader, list(loader.reference()))


def test_statistics_count_images_alone() -> None:
    data = Fields({"image": EncodedImages(encoded().images, transform=plain()), "x": np.arange(COUNT)})
    loader = DataLoader(data, 6, num_workers=1)
    list(loader)
    assert {one.name: one.items for one in loader.stats().stages}["read"] == COUNT


def test_values_that_do_not_stack_name_the_field() -> None:
    data = Fields({"x": [[1, 2], [3]]})
    with pytest.raises(RuntimeError, match="field 'x'"):
        list(DataLoader(data, 2))

"""A loader behaves the same for every destination of its batches: kept batches, errors, counts, messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import DataLoader, EncodedImages, ImageFiles, SampleError
from places import Place
from support import assert_same, blobs, pictures, silent_pillow, train, truncated


def test_batches_lie_where_they_were_asked_for(place: Place) -> None:
    loader = place.loader(blobs(transform=train(32)))
    images, targets = next(iter(loader))
    want = "cuda" if place.name == "cuda" else "cpu"
    assert images.device.type == targets.device.type == want
    assert loader._own.destination.way == ("memory" if place.name == "cpu" else "fused"), loader.explain()


def test_verify_compares_with_the_oracle(place: Place) -> None:
    assert place.loader(blobs(transform=train(32)), batch_size=6).verify(2).batches == 2


def test_batches_that_are_kept_do_not_change(place: Place) -> None:
    data = blobs(transform=train(32))
    loader = place.loader(data, batch_size=3)
    kept = [batch for _ in range(4) for batch in loader]
    again = DataLoader(data, 3, seed=3)
    assert_same(place.fetched(kept), [batch for _ in range(4) for batch in again])


def test_break_and_begin_again(place: Place) -> None:
    data = blobs(transform=train(32))
    loader = place.loader(data, batch_size=3)
    first = [batch for batch, _ in zip(loader, range(2), strict=False)]
    second = list(loader)
    cpu = DataLoader(data, 3, seed=3)
    assert_same(place.fetched(first), list(cpu)[:2])
    assert_same(place.fetched(second), cpu)


def test_two_loaders_at_once(place: Place) -> None:
    data = blobs(transform=train(32))
    one, other = (place.loader(data, batch_size=5) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        assert_same(place.fetched([a]), place.fetched([b]))


@pytest.fixture
def some_broken(tmp_path: Path, photographs: list[Path]) -> ImageFiles:
    """Six files, of which the second and the fifth are truncated."""
    paths = list(photographs[:6])
    for number in (1, 4):
        broken = tmp_path / f"{number}.jpg"
        broken.write_bytes(paths[number].read_bytes()[:3000])
        paths[number] = broken
    return ImageFiles(paths, range(6), train(32))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.filterwarnings("ignore:epoch 0. 2 samples could not be made")
def test_bad_samples_are_skipped_or_replaced(place: Place, some_broken: ImageFiles, on_error: str) -> None:
    loader = place.loader(some_broken, batch_size=3, on_error=on_error)
    expected = list(loader.reference())
    assert_same(place.fetched(loader), expected)
    assert len(loader.errors) == 2


def test_a_bad_sample_raises_and_the_next_batch_can_be_had(place: Place, some_broken: ImageFiles) -> None:
    loader = iter(place.loader(some_broken, batch_size=1))
    next(loader)
    with pytest.raises(SampleError, match=r"1\.jpg"):
        next(loader)
    next(loader)


def test_a_batch_that_failed_gives_its_memory_back_in_order(place: Place) -> None:
    data = blobs(transform=train(32))
    whole = place.fetched(place.loader(blobs(transform=train(32)), batch_size=6))
    data.blobs[5] = truncated(bytes(data.blobs[5]))
    iterator = iter(place.loader(data, batch_size=6))
    with pytest.raises(SampleError):
        next(iterator)
    assert_same(place.fetched([next(iterator)]), whole[1:2])


@pytest.mark.filterwarnings("ignore:epoch 0. 1 samples could not be made")
def test_a_corrupt_file_costs_only_itself(place: Place) -> None:
    data = list(pictures(24))
    data[4] = data[4][: len(data[4]) // 2]  # cannot be decoded
    damaged = bytearray(data[8])
    damaged[len(damaged) // 2 : len(damaged) // 2 + 40] = bytes(40)  # Pillow conceals it
    data[8] = bytes(damaged)
    loader = place.loader(EncodedImages(data, list(range(24)), train(32)), batch_size=24, on_error="skip")
    with silent_pillow():
        (expected,) = loader.reference()
        (batch,) = place.fetched(loader)
    assert_same([batch], [expected])
    assert len(batch[1]) == 23


def test_stats_count_the_samples(place: Place) -> None:
    data = blobs(transform=train(32))
    loader = place.loader(data, batch_size=4)
    for _ in loader:
        pass
    stages = {stage.name: stage.items for stage in loader.stats().stages}
    assert stages["read"] == len(data)

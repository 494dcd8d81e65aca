"""The memory of batches of several views, their failures and their ends, from one decode and on a device."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

from headrace import DataLoader, EncodedImages, SampleError
from headrace import transforms as T
from headrace._engine.destination import resolve_destination
from headrace._engine.views_engine import SeparateViews, ViewsEngine, make_views_engine
from headrace._lowering import lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.memory_format import Layout
from support import TENSOR, assert_same, blobs, evaluation, eventually, pictures, same, train, truncated

VIEWS = T.Views([train(32), T.Compose([T.RandomResizedCrop(9), T.Grayscale(), T.PILToTensor()])])
NAMED = T.Views({"one": train(32), "other": evaluation(40, 16)})


def broken(*places: int, count: int = 24, transform: Any = VIEWS) -> EncodedImages:
    """`pictures`, those at `places` broken."""
    files = [truncated(data) if number in places else data for number, data in enumerate(pictures(count))]
    return EncodedImages(files, range(count), transform)


def loaders(dataset: Any, **options: Any) -> list[DataLoader[Any]]:
    """The loaders whose batches have to be equal: with threads, without, and on the emulated device."""
    places: list[dict[str, Any]] = [{"num_workers": 2}, {}, {"num_workers": 2, "device": "emulated"}]
    return [DataLoader(dataset, **{"batch_size": 6, "seed": 3, **options, **place}) for place in places]


@pytest.mark.filterwarnings("ignore:headrace")
@pytest.mark.parametrize("transform", [VIEWS, NAMED], ids=["list", "dict"])
def test_failed_samples_are_left_out_or_replaced_in_every_view(transform: Any) -> None:
    dataset = broken(0, 4, 5, 6, 17, 23, transform=transform)
    for on_error, most in (("skip", 18), ("replace", 24)):
        for loader in loaders(dataset, on_error=on_error):
            expected = list(loader.reference())
            with pytest.warns(UserWarning):
                assert assert_same(loader, expected) == 4
            assert sum(len(labels) for _, labels in expected) == most
            assert sorted({error.index for error in loader.errors}) == [0, 4, 5, 6, 17, 23]


def test_a_device_without_threads_and_without_batches() -> None:
    for options in ({"batch_size": 6}, {"batch_size": None}):
        expected = list(DataLoader(blobs(12, NAMED), seed=3, **options))
        assert_same(DataLoader(blobs(12, NAMED), seed=3, device="emulated", **options), expected)


def test_an_error_is_raised_once_a_sample() -> None:
    for loader in loaders(broken(7)):
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(SampleError, match="sample 7"):
            next(iterator)
        assert len(list(iterator)) == 2


@pytest.mark.parametrize("first", [True, False])
def test_one_view_that_cannot_be_made_fails_the_sample(first: bool) -> None:
    narrow = T.Compose([T.RandomCrop((70, 30)), *TENSOR])  # some pictures are lower
    members = [narrow, train(16)] if first else [train(16), narrow]
    for loader in loaders(blobs(24, T.Views(members)), on_error="replace"):
        expected = list(loader.reference())
        with pytest.warns(UserWarning, match="Required crop size"):
            assert assert_same(loader, expected) == 4
        assert 0 < len(loader.errors) < 24


def engine_of(transform: Any, **options: Any) -> ViewsEngine:
    return ViewsEngine(lower(transform), Layout.PLANAR, **{"threads": 2, "slots_kept": 2, **options})


def begun(engine: Any, count: int = 8, epoch: int = 0) -> Any:
    draws = Draws(engine.recipe.columns, 1).batch(epoch, range(count), [0] * count)
    return engine.submit(blobs(count).blob_table(), np.arange(count), draws)


def finished(engine: Any, flight: Any, places: list[int] | None = None) -> Any:
    assert engine.wait(flight, 60)
    return engine.tensor(flight, places)


def test_each_view_is_a_storage_of_its_own_over_one_slot() -> None:
    engine = engine_of(VIEWS)
    first, second = finished(engine, begun(engine))
    assert first.untyped_storage().nbytes() == first.nbytes
    assert second.untyped_storage().nbytes() == second.nbytes == 8 * 81
    assert second.data_ptr() - first.data_ptr() == -(-first.nbytes // 64) * 64
    kept = second.clone()
    place = first.data_ptr()
    del first  # the slot is still leased
    for epoch in range(4):
        assert finished(engine, begun(engine, epoch=epoch))[0].data_ptr() != place
    assert torch.equal(second, kept) and engine.slots <= 3
    del second
    assert place in {finished(engine, begun(engine))[0].data_ptr() for _ in range(2)}
    engine.close()


def test_pinned_memory_is_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an accelerator nothing can be pinned, so plain memory takes its place."""
    empty = torch.empty
    asked = []

    def plain(*size: Any, pin_memory: bool = False, **where: Any) -> torch.Tensor:
        asked.append(pin_memory)
        return empty(*size, **where)

    pinned, slots = engine_of(VIEWS, pin=True), engine_of(VIEWS)
    monkeypatch.setattr(torch, "empty", plain)
    made = finished(pinned, begun(pinned))
    assert asked == [True]
    assert same(made, finished(slots, begun(slots)))
    assert made[0].untyped_storage().data_ptr() == made[1].untyped_storage().data_ptr()
    chosen = finished(pinned, begun(pinned), [1, 4, 7])
    assert same([one.clone() for one in chosen], [one[[1, 4, 7]] for one in made])
    assert chosen[0].untyped_storage().nbytes() == made[0].untyped_storage().nbytes()  # not copied to pageable memory
    pinned.close()
    slots.close()


def test_a_selection_stays_in_the_layout() -> None:
    engine = ViewsEngine(lower(VIEWS), Layout.CHANNELS_LAST, threads=0, slots_kept=1)
    for one in finished(engine, begun(engine), [0, 3]):
        assert len(one) == 2 and one.is_contiguous(memory_format=torch.channels_last)
    engine.close()


def test_cancelled_batches_and_closed_engines() -> None:
    for destination in ("cpu", "emulated"):
        recipe = lower(NAMED)
        engine = make_views_engine(
            recipe, Layout.PLANAR, resolve_destination(destination, "auto"), threads=2, slots_kept=2
        )
        assert type(engine) is (ViewsEngine if destination == "cpu" else SeparateViews)
        for _ in range(5):
            engine.cancel(begun(engine, 24))
        made = finished(engine, begun(engine))
        assert list(made) == ["one", "other"] and len(made["one"]) == 8
        assert engine.makes(recipe) and not engine.makes(lower(NAMED)) and not engine.closed
        flight = begun(engine, 24)
        engine.close()
        engine.wait(flight, 0.1)
        assert engine.closed and not engine.makes(recipe)
        engine.cancel(flight)


def test_a_device_gives_up_what_it_began_if_a_view_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SeparateViews(
        lower(VIEWS), Layout.PLANAR, resolve_destination("emulated", "auto"), threads=1, slots_kept=2
    )
    given_up: list[Any] = []
    monkeypatch.setattr(engine._parts[0], "cancel", given_up.append)

    def short(*arguments: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(engine._parts[1], "submit", short)
    with pytest.raises(MemoryError):
        begun(engine)
    assert len(given_up) == 1
    engine.close()


def test_persistent_workers_keep_the_engine_and_threads_end() -> None:
    for options in ({"num_workers": 2}, {"num_workers": 2, "device": "emulated"}):
        loader = DataLoader(blobs(12, VIEWS), 6, persistent_workers=True, **options)
        list(loader)
        engine = loader._engine
        list(loader)
        assert engine is not None and loader._engine is engine
        loader.close()
        assert eventually(lambda engine=engine: engine.closed)  # type: ignore[misc]
        assert len(list(loader)) == 2
        del loader, engine
        gc.collect()


def test_stats_count_samples_and_views_on_a_device() -> None:
    here, _, device = loaders(blobs(24, VIEWS))
    for loader, items in ((here, 24), (device, 48)):
        list(loader)
        assert loader.stats().stages[0].items == items


def test_a_transform_that_is_exchanged_is_used_in_the_next_epoch() -> None:
    dataset = blobs(6, T.Views([train(32), train(16)]))
    loader = DataLoader(dataset, 6, seed=1, num_workers=1)
    assert [view.shape[-1] for view in next(iter(loader))[0]] == [32, 16]
    dataset.transform = T.Views([train(8)])
    assert [view.shape[-1] for view in next(iter(loader))[0]] == [8]
    transforms: Any = dataset.transform.transforms
    transforms.append(train(9))
    assert [view.shape[-1] for view in next(iter(loader))[0]] == [8, 9]

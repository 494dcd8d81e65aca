"""num_workers="auto": batches equal the oracle's whatever the tuner does; what the loader says; states and copies."""

from __future__ import annotations

import copy
import pickle
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset

import headrace
from headrace import AutoWorkers, DataLoader
from headrace import transforms as T
from headrace._engine.counters.epoch_timing import EpochTiming, Seen
from headrace._loading.autotune import thread_tuner, worker_tuner
from headrace._loading.autotune.budget import Budget
from headrace._loading.autotune.tuner import Choice, Tuner
from headrace._loading.bottleneck.batch_cost import Load, Setting
from support import TENSOR, assert_same, blobs, train


class Restless(Tuner):
    """Changes threads and depth at random at every look."""

    draw = random.Random(5)

    def observe(self, window: Any) -> None:
        self.choose(Choice(self.draw.randint(1, 6), self.draw.randint(1, 5)))


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> list[Choice]:
    """Loaders that change their threads and depth with nearly every batch; returns the choices that were in force."""
    for name in ("_WINDOW_NS", "_SETTLE_NS", "_SLOW_NS", "_SAMPLES", "_BATCHES"):
        monkeypatch.setattr(thread_tuner, name, 0)
    seen: list[Choice] = []
    apply = thread_tuner.Tuning._apply_choice

    def noted(self: Any) -> None:
        apply(self)
        seen.append(self._in_force)

    monkeypatch.setattr(thread_tuner.Tuning, "_apply_choice", noted)
    return seen


def with_restless(loader: DataLoader[Any]) -> DataLoader[Any]:
    loader._tuner.__class__ = Restless
    return loader


class Doubled:
    """A step without a native form."""

    def __call__(self, image: Any) -> Any:
        return image.point(lambda value: min(255, 2 * value))


STEPS: dict[str, list[Any]] = {
    "images": [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), *TENSOR],
    "views": [T.Views({"a": train(24), "b": train(16)})],
    "a Python step": [T.RandomResizedCrop(32), Doubled(), *TENSOR],
    "images of all sizes": [T.ToTensor()],
}


@pytest.mark.parametrize(("kind", "device"), [*((kind, None) for kind in STEPS), ("images", "emulated")])
def test_threads_and_depth_change_at_random_and_batches_equal_the_oracles(
    restless: list[Choice], kind: str, device: str | None
) -> None:
    options: dict[str, Any] = {"collate_fn": list} if kind == "images of all sizes" else {}
    dataset = blobs(96, T.Compose(STEPS[kind]))
    loader = with_restless(DataLoader(dataset, 3, shuffle=True, num_workers="auto", seed=3, device=device, **options))
    for _ in range(2):
        expected = list(loader.reference())
        assert_same(loader, expected)
    assert len({one.threads for one in restless}) > 3
    if device is None:
        assert len({one.depth for one in restless}) > 2


def test_rows_of_columns_and_resuming_in_the_middle(restless: list[Choice]) -> None:
    columns = headrace.Columns({"a": np.arange(4000, dtype=np.int64), "b": np.random.default_rng(1).random((4000, 9))})
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 2}
    whole = list(DataLoader(columns, **options))
    loader = with_restless(DataLoader(columns, num_workers="auto", **options))
    batches = iter(loader)
    head = [next(batches) for _ in range(100)]
    state = loader.state_dict()
    loader.close()
    again = with_restless(DataLoader(columns, num_workers="auto", **options))
    again.load_state_dict(state)
    tail = list(again)
    assert len(head) + len(tail) == len(whole)
    for ours, theirs in zip([*head, *tail], whole, strict=True):
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert len({one.threads for one in restless}) > 3


def test_the_number_is_an_int_and_what_was_given_is_kept() -> None:
    loader = DataLoader(blobs(8), 2, num_workers="auto")
    assert type(loader.num_workers) is int
    assert loader.num_workers >= 1
    assert loader.prefetch_factor == 2
    assert vars(loader)["num_workers"] == AutoWorkers()  # Lightning makes new loaders from these
    again = DataLoader(blobs(8), 2, num_workers=vars(loader)["num_workers"])
    assert again._active_tuner is not None
    loader.num_workers = 3
    assert (loader.num_workers, loader._active_tuner) == (3, None)
    assert len(list(loader)) == 4
    assert DataLoader(blobs(8), 2).num_workers == 0


def test_a_prefetch_that_is_given_stays() -> None:
    loader = DataLoader(blobs(8), 2, num_workers=AutoWorkers(cores=3), prefetch_factor=5)
    assert (loader.num_workers, loader.prefetch_factor) == (3, 5)
    assert loader._active_tuner is not None and loader._active_tuner.fixed_depth
    with pytest.raises(ValueError, match="num_workers must be a number, 'auto'"):
        DataLoader(blobs(8), num_workers="most")


@pytest.mark.parametrize("copied", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_chooses_for_itself(copied: Any) -> None:
    loader = DataLoader(blobs(20), 2, num_workers=AutoWorkers(cores=2), seed=1)
    assert loader._active_tuner is not None
    loader._active_tuner.choose(Choice(4, 3))
    other = copied(loader)
    assert (other.num_workers, other.prefetch_factor) == (4, 3)
    other._active_tuner.choose(Choice(1, 1))
    assert loader.num_workers == 4
    assert_same(other, list(loader))


def test_memory_bounds_the_prefetch_of_a_running_epoch() -> None:
    loader = DataLoader(
        blobs(40, T.Compose([T.Resize((64, 64)), *TENSOR])), 4, num_workers=AutoWorkers(cores=1, memory=1)
    )
    next(iter(loader))
    assert loader.prefetch_factor == 1
    loader.close()


class Slow(Dataset[Any]):
    """Waits in each sample."""

    def __len__(self) -> int:
        return 240

    def __getitem__(self, index: int) -> tuple[int, int]:
        time.sleep(0.002)
        return index, int(torch.randint(1 << 30, ()))


def batches_of(loader: Any) -> list[list[int]]:
    return [[*batch[0].tolist(), *batch[1].tolist()] for batch in loader]


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_torchs_workers_change_between_epochs_and_samples_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([3, 2])
    monkeypatch.setattr(worker_tuner, "predict_best_workers", lambda load, most: next(numbers))
    loader = DataLoader(Slow(), 4, num_workers=AutoWorkers(cores=1), seed=9)
    fixed = DataLoader(Slow(), 4, num_workers=1, seed=9)
    for expected in (1, 3):
        assert batches_of(loader) == batches_of(fixed)
        assert loader.num_workers == expected
    tuned = loader.stats().tuned
    assert tuned is not None and tuned.threads == 3


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_without_a_seed_torchs_workers_stay_what_they_were() -> None:
    loader = DataLoader(Slow(), 4, num_workers=AutoWorkers(cores=2))
    stock = TorchDataLoader(Slow(), 4, num_workers=2)
    for _ in range(2):
        torch.manual_seed(4)
        ours = batches_of(loader)
        torch.manual_seed(4)
        assert ours == batches_of(stock)
    assert loader.num_workers == 2
    assert "without seed= torch's random numbers" in str(loader.stats().tuned)
    assert "without seed= torch's random numbers" in str(loader.explain())


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(9))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"dataset": Slow()}, "without seed="),
        ({"dataset": Stream(), "seed": 1}, "its own part"),
        ({"dataset": Slow(), "seed": 1, "persistent_workers": True}, "persistent_workers"),
        ({"dataset": Slow(), "seed": 1}, ""),
    ],
)
def test_why_torchs_number_is_fixed(options: dict[str, Any], reason: str) -> None:
    why = worker_tuner.why_fixed(DataLoader(num_workers="auto", **options))
    assert reason in why
    assert bool(why) == bool(reason)


def test_the_model_chooses_the_smallest_number_of_workers_that_is_fast() -> None:
    waiting = Load(Setting(2, 2.0, native=False), 100, 0.1, 0.0, 0.1, cpu=0.002, stuck=0.198)
    assert 7 <= worker_tuner.predict_best_workers(waiting, 8) <= 8
    computing = Load(Setting(4, 2.0, native=False), 100, 0.1, 0.0, 0.1, cpu=0.2)
    assert worker_tuner.predict_best_workers(computing, 8) == 4  # nothing is clearly better
    consumer = Load(Setting(4, 4.0, native=False), 100, 0.1, 0.1, 0.0, cpu=0.02, idle=0.38)
    assert worker_tuner.predict_best_workers(consumer, 16) == 4


def test_an_epoch_of_workers_that_was_no_better_is_taken_back() -> None:
    tuner = Tuner(lambda: Budget(2.0, 2**30))
    tuner.expect(Choice(6, 2), 1.0)
    assert tuner.choice.threads == 6
    assert tuner.revert_if_no_better(1.1)
    assert tuner.choice.threads == 2
    tuner.expect(Choice(6, 2), 1.0)  # not again
    assert tuner.choice.threads == 2
    tuner.expect(Choice(4, 2), 1.0)
    assert not tuner.revert_if_no_better(0.5)
    assert tuner.choice.threads == 4


def test_the_reports_say_what_was_chosen_and_why(tmp_path: Path) -> None:
    loader = DataLoader(blobs(48, T.Compose(STEPS["images"])), 4, num_workers=AutoWorkers(cores=2), seed=1)
    for _ in loader:
        pass
    tuned = loader.stats().tuned
    assert tuned is not None and tuned.threads == loader.num_workers
    assert tuned.first == (2, 2)
    text = str(loader.stats())
    assert "num_workers='auto': " in text
    assert "began with 2 and 2 (cores=2)" in text
    assert "began with 2 and 2 (cores=2)" in str(loader.explain())
    assert loader.stats().as_dict()["tuned"]["threads"] == tuned.threads
    assert DataLoader(blobs(4), num_workers=1).stats().tuned is None


class Clockwork:
    """An engine, a line and a clock of which the test says what happens."""

    def __init__(self) -> None:
        self.now = 0
        self.sizes: list[int] = []
        self.ahead, self.ended, self.closed = 0, False, False
        self.most = 100
        self.made = 0
        self.decoder = "pillow"

    def resize(self, threads: int) -> None:
        if threads > self.most:
            raise RuntimeError("no more threads")
        self.sizes.append(threads)

    def wait(self, flight: Any, seconds: float) -> bool:
        """`flight`: the nanosecond at which it is ready."""
        self.now = min(flight, self.now + round(1e9 * seconds))
        return self.now >= flight

    def clock(self) -> int:
        return self.now


def clockwork(tuner: Tuner) -> tuple[Clockwork, Any, EpochTiming]:
    made = Clockwork()
    times = lambda: {"read": made.now, "video": made.now // 2, "idle": 0}  # noqa: E731
    pace = EpochTiming(lambda: Seen(times(), {"read": made.made}, count=1))
    return made, thread_tuner.Tuning(tuner, pace, made, made, clock=made.clock), pace


def listened() -> tuple[Tuner, list[Any]]:
    """A tuner, and the windows that it is given."""
    tuner = Tuner(lambda: Budget(1.0, 2**30))
    heard: list[Any] = []
    tuner.observe = heard.append  # type: ignore[method-assign,assignment]
    return tuner, heard


def hand_out(numbers: range, machine: Clockwork, tuning: Any, pace: EpochTiming) -> None:
    """Ten batches a second, each of 100 samples."""
    for number in numbers:
        machine.now, machine.made = number * 100_000_000, 100 * number
        pace.handed_out(machine.now - 1, machine.now, 0)
        tuning.handed_out(torch.zeros(4), machine.now)


def test_slow_batches_are_tuned_while_they_are_awaited() -> None:
    tuner, heard = listened()
    machine, tuning, pace = clockwork(tuner)
    pace.handed_out(0, 1, 0)
    tuning.handed_out(torch.zeros(4), 1)
    machine.made = 0
    assert tuning.wait(1_100_000_000, 1e9)  # settles
    machine.made = 500
    assert not tuning.wait(10_000_000_000, 3.0)  # a timeout in the middle
    assert len(heard) >= 1
    assert heard[0].waits > 0.9
    assert heard[0].handed == 0


@pytest.mark.parametrize(("decoder", "lanes"), [("pillow", set()), ("video", {"video"})])
def test_the_lane_of_the_engines_decoder_is_seen(decoder: str, lanes: set[str]) -> None:
    tuner, heard = listened()
    machine, tuning, pace = clockwork(tuner)
    machine.decoder = decoder
    hand_out(range(1, 40), machine, tuning, pace)
    assert {*heard[0].load.lanes} == lanes


def test_the_system_refuses_threads_in_the_middle_of_an_epoch() -> None:
    tuner = Tuner(lambda: Budget(1.0, 2**30))
    machine, tuning, pace = clockwork(tuner)
    machine.most = 2
    pace.handed_out(0, 1, 0)
    tuner.choose(Choice(8, 2))
    tuning._apply_choice()
    assert tuner.choice.threads == 1
    assert tuner.most == 1
    assert machine.sizes[-1] == 1


def test_nothing_is_heard_when_the_threads_run_dry() -> None:
    tuner, heard = listened()
    machine, tuning, pace = clockwork(tuner)
    machine.ended = True
    hand_out(range(1, 40), machine, tuning, pace)
    assert not heard
    machine.ended = False
    hand_out(range(40, 80), machine, tuning, pace)
    assert heard
    assert heard[0].handed == pytest.approx(10.0)


def test_of_two_iterators_the_newer_one_tunes_and_both_deliver(restless: list[Choice]) -> None:
    loader = with_restless(DataLoader(blobs(96), 3, num_workers="auto", seed=3))
    expected = [list(DataLoader(blobs(96), 3, seed=3))]
    first, second = iter(loader), iter(loader)
    pairs = list(zip(first, second, strict=True))
    assert loader._active_tuner is not None and loader._active_tuner.epoch is second._tuning._token  # type: ignore[attr-defined]
    assert_same([one for one, _ in pairs], expected[0])
    assert len(restless) > 10

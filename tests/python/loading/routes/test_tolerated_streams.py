"""`on_error="skip"` for streams that torch delivers: what goes on after an error is passed over; others say why not."""

from __future__ import annotations

import gc
import io
import tarfile
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset, IterDataPipe, get_worker_info

import headrace
from headrace import SampleError
from headrace._loading.native.sample_errors import warn_of_dropped

pytestmark = [
    pytest.mark.filterwarnings("ignore:epoch [01]"),
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
]
COUNT = 14
BAD = (1, 2, 6, 7, 8, 13)  # among them a whole batch, and the last one
GOOD = [number for number in range(COUNT) if number not in BAD]


@pytest.fixture(autouse=True)
def epochs_that_were_left_warn_now() -> Iterator[None]:
    """And not in the next test."""
    yield
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn_of_dropped()


def make(number: int) -> int:
    if number in BAD:
        raise KeyError(number)
    return number


class Counter:
    """An iterator of a class, with a state."""

    def __init__(self, begin: int, step: int) -> None:
        self.at, self.step = begin, step

    def __iter__(self) -> Counter:
        return self

    def __next__(self) -> int:
        number = self.at
        if number >= COUNT:
            raise StopIteration
        self.at += self.step
        return make(number)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


class Counting(IterableDataset[Any]):
    def __iter__(self) -> Counter:
        info = get_worker_info()
        assert info is None or type(info.dataset) is Counting
        return Counter(0, 1) if info is None else Counter(info.id, info.num_workers)


class Mapping(IterableDataset[Any]):
    def __iter__(self) -> Iterator[int]:
        return map(make, range(COUNT))


def loader(dataset: Any, size: int | None = 3, **options: Any) -> Any:
    return headrace.DataLoader(dataset, size, **{"on_error": "skip"} | options)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
@pytest.mark.parametrize("kind", [Counting, Mapping])
def test_others_are_torchs_and_each_bad_one_is_named(kind: Any, workers: int) -> None:
    made = loader(kind(), num_workers=workers)
    for _ in range(2):
        batches = [batch.tolist() for batch in made]
        assert batches == [[0], [3, 4, 5], [9, 10, 11], [12]]  # one without a sample is passed over
        assert [error.index for error in made.errors] == list(BAD)
        where = " in worker 0" if workers else ""
        assert [error.location for error in made.errors] == [f"{kind.__name__}, its sample {n}{where}" for n in BAD]
        assert all(isinstance(error, SampleError) and isinstance(error, KeyError) for error in made.errors)
    assert [int(one) for one in loader(kind(), None, num_workers=workers)] == GOOD


@pytest.mark.processes
def test_workers_pass_over_their_own() -> None:
    made = loader(Counting(), 2, num_workers=2)
    assert sorted(number for batch in made for number in batch.tolist()) == GOOD
    assert len({str(error).partition("KeyError")[2].partition(")")[0] for error in made.errors}) == len(BAD)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
def test_states_count_what_was_passed_over(workers: int) -> None:
    whole = [batch.tolist() for batch in loader(Counting(), num_workers=workers)]
    for taken in range(len(whole)):
        first = loader(Counting(), num_workers=workers)
        iterator = iter(first)
        begun = [next(iterator).tolist() for _ in range(taken)]
        again = loader(Counting(), num_workers=workers)
        again.load_state_dict(first.state_dict())
        assert begun + [batch.tolist() for batch in again] == whole


def test_nothing_changes_without_errors() -> None:
    class Good(IterableDataset[Any]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(7))

        def __len__(self) -> int:
            return 7

    made = loader(Good(), drop_last=True)
    assert len(made) == len(TorchDataLoader(Good(), 3, drop_last=True)) == 2
    assert [batch.tolist() for batch in made] == [[0, 1, 2], [3, 4, 5]] and made.errors == []


def test_too_many_errors_end_the_epoch() -> None:
    made = loader(Counting(), max_errors=2)
    with pytest.raises(RuntimeError, match="more than max_errors=2"):
        list(made)


class Generating(IterableDataset[Any]):
    def __iter__(self) -> Iterator[int]:
        return self.numbers()

    def numbers(self) -> Iterator[int]:
        for number in range(COUNT):
            yield make(number)


def add_up(number: int) -> int:
    return sum(make(one) for one in (number,))


class Summing(IterableDataset[Any]):
    """Each sample calls a generator, which may end with the sample's error; the stream goes on."""

    def __iter__(self) -> Iterator[int]:
        return map(add_up, range(COUNT - 1))


def test_a_generator_that_has_ended_is_said() -> None:
    made = loader(Generating(), 1)
    iterator = iter(made)
    assert next(iterator).tolist() == [0]
    words = r"Generating, its sample 1: the generator .*numbers is at its end after KeyError\(1\).*cannot be reached"
    with pytest.raises(RuntimeError, match=words):
        list(iterator)
    assert [error.index for error in made.errors] == [1]
    assert [batch.tolist() for batch in loader(Summing(), 1)] == [[number] for number in GOOD]


class Declared(IterableDataset[Any]):
    def __iter__(self) -> Iterator[int]:
        yield from range(3)


class Pipe(IterDataPipe[Any]):
    def __iter__(self) -> Any:
        return iter(range(3))


def test_what_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"on_error='skip' cannot pass over .* Declared.__iter__ is a generator, which"):
        loader(Declared())
    with pytest.raises(TypeError, match=r"on_error='skip' cannot pass over .* data pipes such as Pipe"):
        loader(Pipe())
    with pytest.raises(ValueError, match=r"on_error=\"replace\" takes the next sample .* a stream has not read yet"):
        loader(Counting(), on_error="replace")
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"a": [1, 2]}).to_iterable_dataset()
    with pytest.raises(TypeError, match=r"IterableDataset.__iter__ is a generator"):
        loader(data)
    assert len(list(headrace.DataLoader(Declared(), 2, on_error="raise"))) == 2


# ---- webdataset ------------------------------------------------------------------------------------------------------


def number_in(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "txt": make(int(sample["txt"]))}


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("shard") / "a.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(COUNT):
            info = tarfile.TarInfo(f"{number:03}.txt")
            info.size = len(str(number))
            tar.addfile(info, io.BytesIO(str(number).encode()))
    return str(path)


def pipeline(shard: str, *steps: Any) -> Any:
    wds = pytest.importorskip("webdataset")
    return wds.DataPipeline(wds.SimpleShardList([shard]), wds.tarfile_to_samples(), *steps)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_steps_of_webdataset_get_a_handler(shard: str, workers: int) -> None:
    wds = pytest.importorskip("webdataset")
    steps = (wds.map(number_in), wds.to_tuple("txt", "__key__"))
    expected = list(TorchDataLoader(pipeline(shard, wds.map(number_in, handler=wds.ignore_and_continue), steps[1]), 3))
    data = pipeline(shard, *steps)
    made = loader(data, num_workers=workers)
    for _ in range(2):
        batches = list(made)
        assert [(n.tolist(), k) for n, k in batches] == [(n.tolist(), k) for n, k in expected]
        assert [error.location.partition(",")[0] for error in made.errors] == [f"{n:03}" for n in BAD]
        assert all(shard in error.location and isinstance(error, KeyError) for error in made.errors)
    assert data.pipeline[2].kw == {}  # the program's own pipeline is as it was
    with pytest.raises(RuntimeError, match="more than max_errors=1"):
        list(loader(data, max_errors=1, num_workers=workers))
    inside = loader(pipeline(shard, *steps, wds.batched(3)), None, num_workers=workers)
    assert [n for batch in inside for n in batch[0]] == GOOD and len(inside.errors) == len(BAD)


def stopping(error: Exception) -> bool:
    return False


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_handlers_of_the_program_stay(shard: str) -> None:
    wds = pytest.importorskip("webdataset")
    for options in ((), (stopping,)):
        keyword = {} if options else {"handler": stopping}
        made = loader(pipeline(shard, wds.map(number_in, *options, **keyword), wds.to_tuple("txt")), None)
        assert [n[0] for n in made] == [0] and made.errors == []
    given = loader(pipeline(shard, wds.map(number_in, wds.reraise_exception), wds.to_tuple("txt")), None)
    assert [n[0] for n in given] == GOOD and len(given.errors) == len(BAD)
    dead = loader(pipeline(shard, wds.select(lambda sample: bool(number_in(sample))), wds.to_tuple("txt")), 1)
    with pytest.raises(RuntimeError, match=r"the generator .* is at its end after KeyError\(1\)"):
        list(dead)


# ---- devices ---------------------------------------------------------------------------------------------------------


class Numbers(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return torch.full((2,), float(make(index))), index


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.parametrize("how", ["skip", "replace"])
def test_a_device_gets_the_batches_that_are_left(how: Any, workers: int) -> None:
    here, there = (
        headrace.DataLoader(Numbers(), 3, num_workers=workers, on_error=how, device=device)
        for device in (None, "emulated")
    )
    found = [[one.tolist() for one in batch] for batch in there]
    assert found == [[one.tolist() for one in batch] for batch in here] and len(found) == (4 if how == "skip" else 5)
    assert [error.index for error in there.errors] == [error.index for error in here.errors]
    assert "because on_error has the values of each sample made in the workers" in str(there.explain())

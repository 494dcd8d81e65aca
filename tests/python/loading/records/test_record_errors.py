"""Errors of files that the main process decodes: the library's exception, and a note that names the sample."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from record_datasets import COUNT, Labelled, Stateful, Stream, write_damaged
from record_loaders import EDGE, ON_DEVICE, alike
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Subset

from headrace import DataLoader
from headrace import transforms as T
from headrace._loading.records import record_lane

pytestmark = pytest.mark.processes

BROKEN = (2, 7)  # samples whose files are damaged


class Undecodable(OSError):
    """What a library raises."""


@pytest.fixture
def refused(tmp_path: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files, two of them damaged, which the library that decodes in the main process refuses. Pillow itself refuses no
    file whose record a worker sends."""
    found = list(paths)
    for number in BROKEN:
        found[number] = write_damaged(paths[number], tmp_path / f"broken {number}.jpg")

    def refuse(data: bytes, _: Any) -> Any:
        raise Undecodable("no image in these bytes")

    monkeypatch.setattr(record_lane, "_DECODERS", {"PIL.Image.open": refuse})
    return found


WHOLE = T.Compose([T.Resize((EDGE, EDGE)), T.ToTensor()])


class Refusing(Labelled):
    """The samples as torch's DataLoader gets them, where the library raises its error in the worker."""

    def __getitem__(self, index: int) -> Any:
        if self.paths[index].name.startswith("broken"):
            raise Undecodable("no image in these bytes")
        return super().__getitem__(index)


class WholeBatches(Labelled):
    """A dataset that makes whole batches."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


class Pairs(Labelled):
    """Samples with an image before the one of the index, and one after it."""

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.open(COUNT - 1 - index)), self.transform(self.open(index))


class Short(Labelled):
    """A dataset that returns fewer samples than it was asked for."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices[1:]]


def outcomes(iterator: Iterator[Any]) -> list[Any]:
    """What each call of ``next()`` gives until the end: the batch, or the error."""
    found: list[Any] = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Undecodable as error:
            found.append(error.with_traceback(None))  # it refers to the iterator, whose workers end with it


def words_of(error: Exception) -> tuple[str, ...]:
    """What an error says before and after the traceback in it, without our note, which Python 3.10 shows there, too."""
    lines = [line for line in str(error).strip().split("\n") if not line.startswith("decode: ")]
    inside = [number for number, line in enumerate(lines) if line.startswith("  ")]
    return (*lines[: inside[0]], *lines[inside[-1] + 1 :]) if inside else tuple(lines)


def notes_of(found: list[Any]) -> list[str]:
    return [note for one in found if isinstance(one, Exception) for note in getattr(one, "__notes__", [str(one)])]


class Case(NamedTuple):
    """A dataset, the options of its loader, and the number of epochs."""

    kind: Any = Labelled
    options: dict[str, Any] = {}  # noqa: RUF012 - not changed
    epochs: int = 1
    loader: Any = ON_DEVICE


CASES = [
    Case(),
    Case(options={"num_workers": 0}),
    Case(options={"batch_size": 1, "prefetch_factor": 4}),
    Case(options={"persistent_workers": True}, epochs=2),
    Case(options={"drop_last": True, "in_order": False}),
    Case(options={"batch_size": None}),
    Case(options={"batch_size": None, "num_workers": 0}),
    Case(Stateful),
    Case(WholeBatches),
    Case(WholeBatches, {"num_workers": 0}),
    Case(loader=DataLoader),
    Case(options={"persistent_workers": True, "batch_size": 1}, epochs=2, loader=DataLoader),
    Case(options={"batch_size": None}, loader=DataLoader),
    Case(Stateful, loader=DataLoader),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind.__name__}-{case.options}")
@pytest.mark.usefixtures("idle_cores")
def test_errors_come_where_torchs_come_and_name_the_sample(case: Case, refused: list[Path]) -> None:
    """All other batches are delivered, also in the next epoch."""
    options = {"batch_size": 3, "num_workers": 2, **case.options}
    theirs = TorchDataLoader(type("Theirs", (Refusing, case.kind), {})(refused, WHOLE), **options)
    ours = case.loader(case.kind(refused, WHOLE), **options)
    for _ in range(case.epochs):
        there, here = outcomes(iter(theirs)), outcomes(iter(ours))
        if not case.options.get("in_order", True):
            there, here = (sorted(one, key=lambda got: isinstance(got, Exception)) for one in (there, here))
        assert [type(one) for one in here] == [type(one) for one in there]
        assert [type(one) for one in here if isinstance(one, Exception)] == [Undecodable] * 2
        if case.options.get("in_order", True):
            pairs = [pair for pair in zip(here, there, strict=True) if not isinstance(pair[0], Exception)]
            assert alike([one[:2] for one, _ in pairs], [other[:2] for _, other in pairs])
        errors = [[words_of(got) for got in one if isinstance(got, Exception)] for one in (here, there)]
        assert sorted(errors[0]) == sorted(errors[1]) and len(errors[0][0]) == (1 if not options["num_workers"] else 3)
        said = notes_of(here)
        for number in BROKEN:
            what = f"decode: sample {number} ({refused[number]}): no image in these bytes"
            assert any(what in one for one in said), said


class TwoArguments(Undecodable):
    """An exception that cannot be made of its words."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


class WithMessage(Undecodable):
    """An exception with a field for its words."""

    message = "none"

    def __init__(self, *, message: str) -> None:
        super().__init__(message)


def raise_one_of(number: int) -> None:
    """What torch raises for these is none of the same class, or is not made as they are."""
    if number == 0:
        raise KeyError("no image")
    if number == 1:
        raise TwoArguments("no image", "these bytes")
    if number == 2:
        raise WithMessage(message="no image")
    raise ValueError("no image,\nand no words") from OSError("of another")


class RefusingByKind(Labelled):
    """The samples as torch's DataLoader gets them."""

    def __getitem__(self, index: int) -> Any:
        raise_one_of(index)


@pytest.mark.parametrize("workers", [0, 1])
def test_exceptions_of_any_class_are_torchs(
    workers: int, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [write_damaged(path, tmp_path / f"{number}.jpg") for number, path in enumerate(paths[:4])]
    numbers = {path.read_bytes(): number for number, path in enumerate(broken)}

    def refuse(data: bytes, _: Any) -> Any:
        raise_one_of(numbers[data])

    monkeypatch.setattr(record_lane, "_DECODERS", {"PIL.Image.open": refuse})
    theirs = iter(TorchDataLoader(RefusingByKind(broken, WHOLE), num_workers=workers))
    ours = iter(ON_DEVICE(Labelled(broken, WHOLE), num_workers=workers))
    for number in range(4):
        found: list[Exception] = []
        for iterator in (ours, theirs):
            with pytest.raises((LookupError, OSError, RuntimeError, ValueError)) as raised:
                next(iterator)
            found.append(raised.value.with_traceback(None))
        assert type(found[0]) is type(found[1])
        assert words_of(found[0]) == words_of(found[1])
        assert f"decode: sample {number} ({broken[number]}): " in notes_of(found[:1])[0]


@pytest.mark.parametrize("options", [{}, {"seed": 3}, {"seed": 3, "num_workers": 0}], ids=str)
def test_shuffled_samples_are_named_by_their_index(options: dict[str, Any], refused: list[Path]) -> None:
    order = [4, 7, 0, 2]
    dataset = Subset(Labelled(refused, WHOLE), order)  # the loader's own indices are those of the subset
    loader = ON_DEVICE(dataset, **{"batch_size": 2, "shuffle": True, "num_workers": 2, **options})
    said = " ".join(notes_of(outcomes(iter(loader))))
    found = [index for index, number in enumerate(order) if f"sample {index} ({refused[number]})" in said]
    assert found and all(order[index] in BROKEN for index in found)


def test_the_first_sample_that_fails_is_named(refused: list[Path]) -> None:
    """Not that of the field that comes first: sample 2's second image, and sample 7's first one, are damaged, too."""
    loader = ON_DEVICE(Pairs(refused, WHOLE), batch_size=COUNT, num_workers=1)
    (error,) = outcomes(iter(loader))
    assert "sample 2 " in notes_of([error])[0]


@pytest.mark.parametrize("kind", [Short, Stream])
def test_samples_without_an_index_are_counted_in_their_batch(kind: Callable[..., Any], refused: list[Path]) -> None:
    loader = ON_DEVICE(kind(refused, WHOLE), batch_size=5, num_workers=1)
    said = notes_of(outcomes(iter(loader)))
    places = [number - 1 if kind is Short else number for number in (2,)]
    assert [f"sample {number} of the batch" in said[0] for number in places] == [True]


def test_a_batch_sampler_names_any_index(refused: list[Path]) -> None:
    class Named(Labelled):
        """Samples by name."""

        def __getitem__(self, index: Any) -> Any:
            return super().__getitem__(int(index[1:]))

    batches = [["s0", "s1"], ["s7", "s8"]]
    make = functools.partial(ON_DEVICE, batch_sampler=batches, num_workers=1)
    found = outcomes(iter(make(Named(refused, WHOLE))))
    assert "sample s7 (" in notes_of(found)[0] and len(found) == 2

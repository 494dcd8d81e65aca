"""No exception class ends a thread, a skipping epoch or a report: each is raised, skipped or replaced as any other."""

from __future__ import annotations

import builtins
import copy
import pickle
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
from PIL import Image, ImageFile
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from headrace import DataLoader, EncodedImages, Fields, HeadraceError, SampleError
from headrace import transforms as T
from nasty_exceptions import EXCEPTIONS, OTHERS, raise_named
from support import pictures, same

pytestmark = pytest.mark.processes

COUNT, BATCH, BAD = 12, 4, 2
SIZE = (104, 72)  # of the picture BAD, and of no other one, nor of a synthetic image
PATIENCE_S = 240.0  # a hang is a failure; slowness is none
UNPRINTABLE = {"class", "no reading", "no comparing"}  # the module traceback asks the exception itself


def within_time(call: Callable[[], Any]) -> Any:
    """Returns the result of `call`, which must end."""
    made: list[Any] = []

    def run() -> None:
        try:
            made.append((True, call()))
        except BaseException as error:
            made.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert made, "it hangs"
    fine, result = made[0]
    if not fine:
        raise result
    return result


class Raises:
    """A step that raises at one image."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, image: Any) -> Any:
        if image.size == SIZE:
            raise_named(self.name)
        return image


class NastyFile(ImageFile.ImageFile):
    """A format whose plugin raises what its bytes name."""

    format = "NASTY"

    def _open(self) -> None:
        self._size, self._mode, self.tile = (16, 16), "RGB", []
        assert self.fp is not None
        self.name = self.fp.read()[6:].decode()

    def load(self) -> Any:
        raise_named(self.name)


def is_nasty(prefix: bytes) -> bool:
    """Whether a file is one of `NastyFile`. A function that can be pickled: programs may pickle what is registered."""
    return prefix.startswith(b"NASTY:")


Image.register_open("NASTY", NastyFile, is_nasty)


def of_a_step(name: str) -> Any:
    return EncodedImages(pictures(COUNT), range(COUNT), T.Compose([Raises(name), T.Resize((8, 8)), T.ToTensor()]))


def of_pillow(name: str) -> Any:
    files = list(pictures(COUNT))
    files[BAD] = b"NASTY:" + name.encode()
    return EncodedImages(files, range(COUNT), T.Compose([T.Resize((8, 8)), T.ToTensor()]))


def of_a_field(name: str) -> Any:
    return Fields({"image": of_a_step(name), "row": torch.arange(COUNT)})


SOURCES = {"step": of_a_step, "pillow": of_pillow, "field": of_a_field}


def raised_by(name: str) -> BaseException:
    with pytest.raises(BaseException) as raised:
        raise_named(name)
    return raised.value


def numbers(batch: Any) -> list[int]:
    return [int(one) for one in (batch["row"] if isinstance(batch, dict) else batch[1])]


def met(loader: Any) -> list[Any]:
    """What iter() raises, and five calls of next() return or raise: the numbers of the samples, or the exception."""
    found: list[Any] = []
    try:
        iterator = iter(loader)
    except BaseException as error:  # of a sampler that is read ahead, as in torch
        return [error]
    for _ in range(5):
        try:
            found.append(numbers(next(iterator)))
        except BaseException as error:
            found.append(error)
    return found


def is_one(error: BaseException, kind: type[BaseException]) -> bool:
    return any(base is kind for base in type.mro(type(error)))


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", EXCEPTIONS)
def test_a_sample_raises_its_exception_and_the_next_batches_follow(name: str, source: str, workers: int) -> None:
    """As with torch without workers; with workers torch cannot make some of these exceptions again."""
    if source == "pillow" and name == "deep":
        pytest.skip("Pillow's own frames are part of the depth: the file is one that it cannot identify")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # StopIteration ends a loop: see below
        theirs = met(TorchDataLoader(SOURCES[source](name), BATCH))
        loader = DataLoader(SOURCES[source](name), BATCH, num_workers=workers)
        assert loader.native
        ours = within_time(lambda: met(loader))
    error, rest = ours[0], ours[1:]
    assert is_one(error, type(theirs[0])) and rest[:2] == theirs[1:3] == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert all(type(one) is StopIteration for one in rest[2:])
    if not is_one(error, SampleError):  # nothing can be derived from its class
        (error,) = (SampleError(note) for note in error.__notes__ if note.startswith(("transform: ", "decode: ")))
    else:
        assert error.index == BAD and error.stage in ("decode", "transform") and error.reason
        if name not in UNPRINTABLE:
            assert "sample 2 (" in "".join(traceback.format_exception_only(type(error), error))
    assert "sample 2 (" in str(error)
    str(error).encode(), repr(error).encode()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_any_exception_is_skipped_or_replaced(policy: Literal["skip", "replace"], source: str, workers: int) -> None:
    for name in EXCEPTIONS:
        loader = DataLoader(SOURCES[source](name), BATCH, num_workers=workers, on_error=policy)
        with pytest.warns(UserWarning, match="1 samples could not be made"):
            batches = within_time(lambda loader=loader: [numbers(batch) for batch in loader])  # type: ignore[misc]
        assert batches == [[0, 1, 3] if policy == "skip" else [0, 1, 3, 3], [4, 5, 6, 7], [8, 9, 10, 11]], name
        (error,) = loader.errors
        assert type(error).__mro__[0].__name__ == "SampleError" and error.index == BAD, name
        if name not in UNPRINTABLE:
            "".join(traceback.format_exception_only(type(error), error)).encode()
        for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error), copy.copy(error)):
            assert (str(other), other.index, other.location) == (str(error), BAD, error.location), name
            assert isinstance(other, SampleError), name
        assert str(loader.stats()) and str(loader.explain())
        assert pickle.loads(pickle.dumps(loader)).errors[0].index == BAD, name
        loader.close()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_exception_is_raised_in_the_callers_thread_and_an_error_of_its_sample_in_others(
    name: str, source: str
) -> None:
    assert type(within_time(lambda: met(DataLoader(SOURCES[source](name), BATCH)))[0]) is type(raised_by(name))
    for workers in (1, 2):
        ours = within_time(lambda workers=workers: met(DataLoader(SOURCES[source](name), BATCH, num_workers=workers)))  # type: ignore[misc]
        bases = type(ours[0]).mro()[1:4]
        assert bases == [SampleError, HeadraceError, RuntimeError] and ours[0].index == BAD
        assert ours[1:3] == [[4, 5, 6, 7], [8, 9, 10, 11]]


def collated(name: str, workers: int, **options: Any) -> DataLoader:
    def collate(samples: list[Any]) -> Any:
        if any(label == BAD for _, label in samples):
            raise_named(name)
        return torch.utils.data.default_collate(samples)

    data = EncodedImages(pictures(COUNT), range(COUNT), T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    loader = DataLoader(data, BATCH, num_workers=workers, collate_fn=collate, **options)
    assert loader.native
    return loader


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collate_fn_may_raise_anything(workers: int) -> None:
    for name in EXCEPTIONS | OTHERS:
        ours = within_time(lambda name=name: met(collated(name, workers)))  # type: ignore[misc]
        kind = type(raised_by(name))
        if workers and name in ("base", "exit", "generator"):
            kind = RuntimeError
        if name == "interrupt":
            assert type(ours[0]) is KeyboardInterrupt
            continue
        if workers == 0 and name in OTHERS:  # the batch is asked for again
            assert all(type(one) is kind for one in ours), name
            continue
        assert is_one(ours[0], kind) and ours[1:3] == [[4, 5, 6, 7], [8, 9, 10, 11]], name


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", ["target_transform", "out_transform", "sampler"])
def test_the_callers_thread_raises_anything_as_it_is(where: str, workers: int) -> None:
    for name in EXCEPTIONS:

        def at_bad(label: int, name: str = name) -> int:
            if label == BAD:
                raise_named(name)
            return label

        def out(batch: Any, name: str = name) -> Any:
            if BAD in numbers(batch):
                raise_named(name)
            return batch

        def order(name: str = name) -> Any:
            yield from range(BATCH)
            raise_named(name)

        data = EncodedImages(pictures(COUNT), range(COUNT), T.Compose([T.Resize((8, 8)), T.ToTensor()]))
        options: dict[str, Any] = {"num_workers": workers}
        if where == "target_transform":
            data.target_transform = at_bad
        elif where == "out_transform":
            options["out_transform"] = out
        else:
            options["sampler"] = order()
        loader = DataLoader(data, BATCH, **options)
        assert loader.native
        ours = within_time(lambda loader=loader: met(loader))  # type: ignore[misc]
        at = 1 if where == "sampler" and len(ours) > 1 else 0
        if name in ("stop", "generator") and where == "sampler":  # PEP 479
            continue
        assert is_one(ours[at], type(raised_by(name))), name


class Own(torch.utils.data.Dataset[Any]):
    """A dataset that torch's loader delivers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        if index == BAD:
            raise_named(self.name)
        return torch.zeros(3), index


def seen(one: Any) -> Any:
    """What can be compared of an exception: its class and the last line that Python prints."""
    if not isinstance(one, BaseException):
        return one
    return type(one).__name__, traceback.format_exception_only(type(one), one)[-1:]


@pytest.mark.parametrize("workers", [0, 1])
def test_where_torch_delivers_it_raises_what_torch_raises(workers: int) -> None:
    for name in sorted(EXCEPTIONS):
        # The depth of frames is not torch's; where a worker cannot pickle the class, torch's loader waits for ever.
        if name in UNPRINTABLE | {"deep", "local"}:
            continue
        theirs, ours = (
            within_time(lambda kind=kind, name=name: [*map(seen, met(kind(Own(name), BATCH, num_workers=workers)))])  # type: ignore[misc]
            for kind in (TorchDataLoader, DataLoader)
        )
        assert theirs == ours, name


def test_a_loop_that_stopiteration_ends_says_why() -> None:
    for workers in (0, 2):
        with pytest.warns(UserWarning, match=r"sample 2 \(.*raised StopIteration"):
            assert list(DataLoader(of_a_step("stop"), BATCH, num_workers=workers)) == []


def test_no_memory_for_a_step_fails_its_batch_and_replaces_nothing() -> None:
    for workers in (0, 2):
        iterator = iter(DataLoader(of_a_step("memory"), BATCH, num_workers=workers))
        with pytest.raises(MemoryError, match="too much"):
            next(iterator)
        assert numbers(next(iterator)) == [4, 5, 6, 7]


def test_the_error_has_the_attributes_of_the_original() -> None:
    def error(name: str) -> Any:
        return next(one for one in met(DataLoader(of_a_step(name), BATCH)) if isinstance(one, Exception))

    assert (error("http").code, error("http").msg, error("http").url) == (503, "busy", "http://store/mask.png")
    assert (error("json").pos, error("json").doc, error("slots").code, error("new").code) == (1, "[", 7, 7)
    assert (error("unicode").start, error("unicode").end, error("unicode").encoding) == (0, 1, "utf-8")
    assert (error("syntax").lineno, error("import").path, error("file").errno) == (3, "b", 2)
    with pytest.warns(UserWarning, match="StopIteration"):
        assert error("stop").value == 3
    with pytest.raises(getattr(builtins, "ExceptionGroup", AttributeError)) as raised:  # which Python 3.10 lacks
        raise error("group") if "group" in EXCEPTIONS else AttributeError
    if "group" in EXCEPTIONS:
        assert [type(one) for one in raised.value.exceptions] == [ValueError, TypeError]
    assert not hasattr(error("delegates"), "nothing")


def test_the_transform_may_raise_anything_when_it_is_tried() -> None:
    for name in EXCEPTIONS:

        def always(_: Any, name: str = name) -> Any:
            raise_named(name)

        data = EncodedImages(pictures(4), range(4), T.Compose([always, T.Resize((8, 8)), T.ToTensor()]))
        loader = DataLoader(data, 2)
        assert not loader.native and str(loader.explain()), name


def test_the_oracle_skips_the_same_samples() -> None:
    for name in EXCEPTIONS:
        loader = DataLoader(of_a_step(name), BATCH, on_error="skip", seed=1)
        expected = list(loader.reference())
        with pytest.warns(UserWarning, match="1 samples"):
            assert same(list(loader), expected), name


def test_an_error_of_headrace_may_be_raised_from_another() -> None:
    with pytest.raises(SampleError) as raised:
        raise headrace._base.errors.sample_error("read", 1, "a", "b", None) from KeyError("c")
    assert isinstance(raised.value.__cause__, KeyError) and pickle.loads(pickle.dumps(raised.value)).reason == "b"

"""A loaded state continues with exactly the remaining batches; a state that does not fit is refused."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)

from headrace import DataLoader, EncodedImages, ImageArray, ImageFolder, SampleError
from headrace import transforms as T
from support import assert_same, blobs, pictures, train, truncated, write_folder

COUNT = 22
DATA = blobs(COUNT, train(24))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(6)


def weighted(g: torch.Generator | None = None) -> WeightedRandomSampler:
    return WeightedRandomSampler(torch.arange(1.0, COUNT + 1).tolist(), 26, generator=g)


class Backwards:
    """A batch sampler over another one."""

    def __init__(self, batch_sampler: BatchSampler) -> None:
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return (batch[::-1] for batch in self.batch_sampler)


LOADERS: dict[str, Callable[[], dict[str, Any]]] = {
    "seed": lambda: {"batch_size": 4, "shuffle": True, "seed": 5},
    "seed, in order": lambda: {"batch_size": 4, "seed": 5},
    "generator": lambda: {"batch_size": 4, "shuffle": True, "generator": generator()},
    "neither": lambda: {"batch_size": 4, "shuffle": True},
    "seed and generator": lambda: {"batch_size": 4, "shuffle": True, "seed": 5, "generator": generator()},
    "drop_last": lambda: {"batch_size": 4, "shuffle": True, "seed": 5, "drop_last": True},
    "one by one": lambda: {"batch_size": None, "shuffle": True, "seed": 5},
    "weighted": lambda: {"batch_size": 4, "sampler": weighted(), "seed": 5},
    "weighted, with its own generator": lambda: {"batch_size": 4, "sampler": weighted(generator())},
    "replacement": lambda: {
        "batch_size": 4,
        "sampler": RandomSampler(DATA, replacement=True, num_samples=70, generator=generator()),
    },
    "batch_sampler": lambda: {"batch_sampler": BatchSampler(RandomSampler(DATA, generator=generator()), 5, False)},
    "batch_sampler of a batch_sampler": lambda: {
        "batch_sampler": Backwards(BatchSampler(RandomSampler(DATA, generator=generator()), 5, False))
    },
    "batch_sampler, neither": lambda: {"batch_sampler": BatchSampler(RandomSampler(DATA), 5, True)},
    "distributed": lambda: {"batch_size": 4, "sampler": DistributedSampler(DATA, 2, 1), "seed": 5},
}
# The later epochs of all others depend on torch's default generator too: the user must restore it.
OF_THEIR_OWN = {"seed", "seed, in order", "generator", "seed and generator", "drop_last", "one by one", "distributed"}


def saved(state: dict[str, Any]) -> dict[str, Any]:
    """The state, saved to a checkpoint and loaded from it."""
    file = io.BytesIO()
    torch.save({"loader": state}, file)
    file.seek(0)
    return torch.load(file, weights_only=True)["loader"]


def run_on(state: dict[str, Any], name: str, **options: Any) -> list[list[Any]]:
    """As in a new process: the rest of the epoch, and the next epoch."""
    loader = DataLoader(DATA, **LOADERS[name](), **options)
    loader.load_state_dict(state)
    return [list(loader), list(loader)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", LOADERS)
def test_every_position_of_an_epoch(name: str, workers: int) -> None:
    torch.manual_seed(3)
    loader = DataLoader(DATA, **LOADERS[name](), num_workers=workers)
    before = list(loader)
    states = [(saved(loader.state_dict()), torch.get_rng_state())]
    epoch, iterator = [], iter(loader)
    states.append((saved(loader.state_dict()), torch.get_rng_state()))
    for batch in iterator:
        epoch.append(batch)
        states.append((saved(loader.state_dict()), torch.get_rng_state()))
    after = list(loader)
    assert len(states) == len(epoch) + 2
    every = 1 if len(epoch) < 10 else 5
    for done, (state, default) in list(zip([0, *range(len(epoch) + 1)], states, strict=True))[::every]:
        if name not in OF_THEIR_OWN:
            torch.set_rng_state(default)
        rest, following = run_on(state, name, num_workers=2 - workers)
        assert_same(rest, epoch[done:])
        assert_same(following, after)
    assert len(before) == len(epoch) == len(after)
    if name != "distributed":  # its order changes only by set_epoch
        assert not torch.equal(first_labels(before), first_labels(epoch)) or "in order" in name


def first_labels(batches: list[Any]) -> torch.Tensor:
    return torch.as_tensor([batch[1] if isinstance(batch[1], int) else batch[1][0] for batch in batches])


def test_the_default_generator_stays_its_users() -> None:
    """A resume in the middle of an epoch draws nothing from it: the epoch made its draws when it began."""
    loader = DataLoader(DATA, 4, True)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = list(iterator)
    other = DataLoader(DATA, 4, True)
    other.load_state_dict(state)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    assert_same(other, rest)
    assert torch.equal(torch.get_rng_state(), before)


def test_at_the_end_of_an_epoch_the_next_one_is_next() -> None:
    loader = DataLoader(DATA, 4, True, seed=1)
    list(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    second = list(loader)
    other = DataLoader(DATA, 4, True, seed=1)
    other.load_state_dict(state)
    assert_same(other, second)


def test_state_of_a_loader_that_has_just_taken_one() -> None:
    loader, other = (DataLoader(DATA, 4, True, generator=generator()) for _ in range(2))
    iterator = iter(loader)
    next(iterator)
    other.load_state_dict(loader.state_dict())
    third = DataLoader(DATA, 4, True, generator=generator())
    third.load_state_dict(other.state_dict())
    assert_same(third, iterator)


def test_persistent_workers() -> None:
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "num_workers": 1, "persistent_workers": True}
    loader = DataLoader(DATA, **options, generator=generator())
    list(loader)
    iterator = iter(loader)
    next(iterator)
    state = saved(loader.state_dict())
    rest, following = list(iterator), list(loader)
    other = DataLoader(DATA, **options, generator=generator())
    other.load_state_dict(state)
    assert_same(other, rest)
    assert_same(other, following)
    loader.close()
    other.close()


def test_set_epoch_after_load_state_dict() -> None:
    loader = DataLoader(DATA, 4, True, seed=1)
    loader.set_epoch(3)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = list(iterator)
    other = DataLoader(DATA, 4, True, seed=1)
    other.load_state_dict(state)
    other.set_epoch(3)
    assert_same(other, rest)
    other.load_state_dict(state)
    other.set_epoch(4)
    assert len(list(other)) == len(rest) + 1
    other.set_epoch(9)
    assert (other.state_dict()["epoch"], other.state_dict()["position"]) == (9, 0)


def test_batches_in_flight_do_not_count() -> None:
    loader = DataLoader(DATA, 4, num_workers=2, prefetch_factor=4)
    iterator = iter(loader)
    for expected in range(3):
        assert loader.state_dict()["position"] == expected
        next(iterator)


def test_a_batch_that_raised_is_still_to_come() -> None:
    files = list(pictures(8))
    files[5] = truncated(files[4])
    loader = DataLoader(EncodedImages(files, range(8), train(16)), 2, num_workers=1)
    iterator = iter(loader)
    next(iterator), next(iterator)
    with pytest.raises(SampleError):
        next(iterator)
    assert loader.state_dict()["position"] == 2
    assert next(iterator)[1].tolist() == [6, 7]
    assert loader.state_dict()["position"] == 4


def test_skipped_batches_are_behind() -> None:
    files = [truncated(pictures()[0]), truncated(pictures()[1]), *pictures(4)]
    loader = DataLoader(EncodedImages(files, range(6), train(16)), 2, on_error="skip")
    with pytest.warns(UserWarning, match="2 samples could not be made and were skipped"):
        iterator = iter(loader)
        assert next(iterator)[1].tolist() == [2, 3]
        state = loader.state_dict()
        assert state["position"] == 2
        rest = list(iterator)
    other = DataLoader(EncodedImages(files, range(6), train(16)), 2, on_error="skip")
    other.load_state_dict(state)
    assert_same(other, rest)


BASE: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 5}


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (blobs(COUNT + 1, train(24)), BASE, "another number of samples .saved 22, now 23"),
        (
            EncodedImages(pictures(COUNT)[::-1], range(COUNT), train(24)),
            BASE,
            "the dataset holds other samples, labels, or",
        ),
        (
            EncodedImages(pictures(COUNT), range(1, COUNT + 1), train(24)),
            BASE,
            "the dataset holds other samples, labels, or",
        ),
        (Subset(blobs(44, train(24)), range(3, 25)), BASE, "the dataset holds other samples, labels, or"),
        (DATA, {**BASE, "batch_size": 5}, "another batch_size .saved 4, now 5"),
        (DATA, {**BASE, "drop_last": True}, "another drop_last"),
        (
            DATA,
            {**BASE, "shuffle": False},
            "samples in another way .saved 'SeededRandomSampler', now 'SequentialSampler'",
        ),
        (
            DATA,
            {"batch_sampler": BatchSampler(SequentialSampler(DATA), 4, False), "seed": 5},
            "another batch_size .saved 4, now None",
        ),
        (DATA, {**BASE, "seed": 6}, "another seed .saved 5, now 6"),
        (DATA, {**BASE, "seed": None}, "another seed .saved 5, now None"),
        (DATA, {**BASE, "generator": generator()}, "another number of torch.Generators .saved 0, now 1"),
        (blobs(COUNT, train(25)), BASE, "transforms, the output size or the dtype differ"),
        (blobs(COUNT, T.Compose([*train(24).transforms, T.ToDtype(torch.float16)])), BASE, "the dtype differ"),
        (DATA, {**BASE, "dtype": torch.float16}, "the dtype differ"),
    ],
)
def test_a_state_of_another_loader_is_refused(
    data: EncodedImages | Subset, options: dict[str, Any], words: str
) -> None:
    state = DataLoader(DATA, **BASE).state_dict()
    other = DataLoader(data, **options)
    with pytest.raises(ValueError, match=f"the state does not fit: .*{words}"):
        other.load_state_dict(state)
    assert len(list(other)) == len(other)  # the refused state changed nothing


def test_the_same_files_elsewhere_are_the_same_dataset(tmp_path: Path) -> None:
    first, moved = (ImageFolder(write_folder(tmp_path / name), train(24)) for name in ("here", "there"))
    state = DataLoader(first, **BASE).state_dict()
    DataLoader(moved, **BASE).load_state_dict(state)
    (tmp_path / "there" / "class_0" / "0000.jpg").rename(tmp_path / "there" / "class_0" / "9999.jpg")
    with pytest.raises(ValueError, match="the dataset holds other samples"):
        DataLoader(ImageFolder(tmp_path / "there", train(24)), **BASE).load_state_dict(state)


def test_arrays_are_told_apart_by_their_pixels() -> None:
    pixels = torch.zeros(9, 8, 8, 3, dtype=torch.uint8)
    loaders = []
    for number in range(2):
        pixels = pixels.clone()
        pixels[4, 0, 0, 0] += number
        loaders.append(DataLoader(ImageArray(pixels, range(9), T.ToTensor()), 3, seed=1))
    with pytest.raises(ValueError, match="the dataset holds other samples"):
        loaders[1].load_state_dict(loaders[0].state_dict())


def test_another_order_of_passes_is_refused() -> None:
    loader = DataLoader(DATA, **BASE)
    with pytest.raises(ValueError, match=r"Pillow .* resizes in another order of passes"):
        loader.load_state_dict({**loader.state_dict(), "pass_order": "diagonal"})


@pytest.mark.parametrize("state", [{}, None, [], {"version": 0}, {"version": 2}, {"version": 2, "epoch": 3}])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(ValueError, match=r"not a state of headrace's native path|lacks its entry"):
        DataLoader(DATA).load_state_dict(state)


def test_a_position_beyond_the_epoch_is_refused() -> None:
    loader = DataLoader(DATA, **BASE)
    iter(loader)
    loader.load_state_dict({**loader.state_dict(), "position": 77})
    with pytest.raises(ValueError, match="77 batches were yielded, but this epoch has only 6"):
        iter(loader)

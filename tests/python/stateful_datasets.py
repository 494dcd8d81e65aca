"""Datasets and samplers that headrace does not know, with and without a state of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info


class Plain(Dataset[Any]):
    """A dataset of indices, without a state. It counts the samples that were fetched."""

    def __init__(self, samples: int = 20) -> None:
        self.samples, self.fetched = samples, 0

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> int:
        self.fetched += 1
        return index


class Counting(Plain):
    """Each sample holds the number of samples that this copy of the dataset has made; the state saves that number."""

    made = 0

    def __getitem__(self, index: int) -> list[int]:  # type: ignore[override]
        self.made += 1
        return [index, self.made]

    def state_dict(self) -> dict[str, Any]:
        return {"made": self.made, "live": [self.made]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.made = state["made"]


class Stream(IterableDataset[Any]):
    """A generator without a state. Each worker yields its part, with random numbers of the process's generator."""

    def __init__(self, sizes: tuple[int, ...] = (3, 11, 6)) -> None:
        self.sizes = sizes

    def part(self) -> range:
        info = get_worker_info()
        if info is None:
            return range(sum(self.sizes))
        assert info.dataset is self
        start = sum(self.sizes[: info.id])
        return range(start, start + self.sizes[info.id])

    def __iter__(self) -> Iterator[Any]:
        for number in self.part():
            yield number, int(torch.randint(1000, ()))


class Resumed(Stream):
    """The dataset has the state, and counts its epochs."""

    at = epoch = 0
    resume: int | None = None

    def __iter__(self) -> Iterator[Any]:
        part = self.part()
        self.at, self.resume = self.resume or 0, None
        for number in part[self.at :]:
            self.at += 1
            yield number, self.epoch
        self.at, self.epoch = 0, self.epoch + 1

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.resume, self.epoch = state["at"], state["epoch"]


class OfIterator(Stream):
    """The iterator has the state, which includes the random generator of the process."""

    class Iterator:
        def __init__(self, part: range) -> None:
            self.part, self.at = part, 0

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            if self.at == len(self.part):
                raise StopIteration
            self.at += 1
            return self.part[self.at - 1], int(torch.randint(1000, ()))

        def state_dict(self) -> dict[str, Any]:
            return {"nested": {"at": self.at}, "generator": torch.get_rng_state()}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.at = state["nested"]["at"]
            torch.set_rng_state(state["generator"])

    def __iter__(self) -> Any:
        return self.Iterator(self.part())


class Deck(Sampler[int]):
    """The sampler has the state, and draws from its own generator, which no loader knows."""

    def __init__(self, samples: int = 20, seed: int = 0) -> None:
        self.random, self.samples = np.random.default_rng(seed), samples
        self.deck: list[int] = []
        self.at, self.resumed = 0, False

    def __len__(self) -> int:
        return self.samples

    def __iter__(self) -> Iterator[int]:
        if not self.resumed:
            self.deck, self.at = self.random.permutation(self.samples).tolist(), 0
        self.resumed = False
        while self.at < self.samples:
            self.at += 1
            yield self.deck[self.at - 1]
        self.deck = []

    def state_dict(self) -> dict[str, Any]:
        return {"deck": self.deck, "at": self.at, "random": self.random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.deck, self.at, self.resumed = state["deck"], state["at"], bool(state["deck"])
        self.random.bit_generator.state = state["random"]


class Stepping(Sampler[int]):
    """The iterator has the state."""

    class Iterator:
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> int:
            if self.at == 20:
                raise StopIteration
            self.at += 1
            return (self.at * 7) % 20

        def state_dict(self) -> dict[str, Any]:
            return {"at": self.at}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.at = state["at"]

    def __len__(self) -> int:
        return 20

    def __iter__(self) -> Any:
        return self.Iterator()


class BatchesOfDeck(Sampler[list[int]]):
    """A custom batch sampler with a state."""

    def __init__(self, size: int = 3) -> None:
        self.deck, self.size = Deck(), size

    def __len__(self) -> int:
        return -(-20 // self.size)

    def __iter__(self) -> Iterator[list[int]]:
        batch = []
        for index in self.deck:
            batch.append(index)
            if len(batch) == self.size or self.deck.at == 20:
                yield batch
                batch = []

    def state_dict(self) -> dict[str, Any]:
        return self.deck.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.deck.load_state_dict(state)


def same(samples: Any) -> Any:
    """A collate_fn that returns the samples unchanged."""
    return samples


def drawing(samples: Any) -> Any:
    """A collate_fn that draws a random number."""
    return samples, int(torch.randint(1000, ()))

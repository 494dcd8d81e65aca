"""A dataset around a program's own, whose decoded samples are kept once for all processes of a machine."""

from __future__ import annotations

import hashlib
import operator
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.utils.data import Dataset

from headrace._base.checks import checked_size
from headrace._recipe.draws.python_randomness import comparable_generator_states
from headrace.datasets.pixel_cache.sample_format import NotKept, decoded_sample, encoded_sample
from headrace.datasets.pixel_cache.shared_store import SharedStore

_LONGEST = 100  # characters of a name
_named: dict[str, weakref.ref[SharedStore]] = {}  # a process opens each once; without callbacks, as elsewhere


@dataclass(frozen=True)
class Kept:
    """What a `PixelCache` keeps, for all processes together.

    Attributes:
        samples: their number.
        bytes: of these; they are in memory once.
        full: whether this process has found no room for one.
        refused: what of the newest sample that was not kept is not kept, as this process has found; "": nothing.
    """

    samples: int
    bytes: int
    full: bool
    refused: str


class PixelCache(Dataset[Any]):
    """Keeps what ``dataset[i]`` returns, in memory that torch's workers share; with a `name`, all ranks of a machine.

    The first time, a sample is made by `dataset`; each later time, in any process, it is a copy of the bytes that were
    kept. Put what is the same in each epoch into `dataset` (reading, decoding, a resize to a fixed size), and what is
    random into `transform`. Samples that find no room are made each time.

    Args:
        dataset: any map-style dataset, whose samples are numpy arrays, tensors, Pillow's images or plain values, in
            tuples, lists and dicts. ``dataset[i]`` must return the same each time. Samples with other things, and
            Pillow's images as they are opened, are made each time.
        memory: most bytes: a number, or a text such as ``"8 GB"``.
        transform: called with each sample; None: samples are those of `dataset`.
        name: processes of this user that give one name share the samples, such as the ranks of a job on a machine.
            None: this process and its workers share them.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `memory` is no size, or other processes keep another dataset by this name.
        OSError: this system has no such memory (it needs Linux).
    """

    def __init__(
        self,
        dataset: Any,
        memory: int | str,
        transform: Callable[[Any], Any] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        if name is not None and (not name.replace("-", "").replace("_", "").isalnum() or len(name) > _LONGEST):
            raise ValueError(f"name must be of letters, digits, - and _, not {name!r}")
        self.dataset: Any = dataset
        self.transform: Callable[[Any], Any] | None = transform
        self.name: str | None = name
        limit, kind = checked_size(memory, "memory"), type(dataset)
        kept = hashlib.sha256(f"{kind.__module__}.{kind.__qualname__} {len(dataset)}".encode()).digest()
        known = None if name is None else _named.get(name)
        store = None if known is None else known()
        if store is None or not store.fits(len(dataset), limit, kept):
            store = SharedStore(len(dataset), limit, name, kept)
        self._store = store
        if name is not None:
            _named[name] = weakref.ref(store)
        self._count, self._refused = len(dataset), ""

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "dataset" not in vars(self):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitem__(self, index: Any) -> Any:
        """Returns a sample.

        Raises:
            RuntimeError: `dataset` has drawn random numbers for it.
        """
        sample = self._sample(index)
        return sample if self.transform is None else self.transform(sample)

    def _sample(self, index: Any) -> Any:
        number = self._number(index)
        if number is None:
            return self.dataset[index]
        if (held := self._store.get(number)) is not None:
            return decoded_sample(held)
        if self._store.full:
            return self.dataset[index]
        before = comparable_generator_states()
        sample = self.dataset[index]
        if before != comparable_generator_states():
            raise RuntimeError(
                f"PixelCache: {type(self.dataset).__name__}[{number}] draws random numbers, so each epoch would get "
                "the sample of the first; move what is random to transform="
            )
        try:
            self._store.put(number, encoded_sample(sample))
        except NotKept as error:
            self._refused = str(error)
        return sample

    def _number(self, index: Any) -> int | None:
        """Returns the number of a sample; None if the dataset has its own meaning for the index."""
        try:
            number = operator.index(index)
        except TypeError:
            return None
        return number if 0 <= number < self._count else None

    def kept(self) -> Kept:
        """Returns what is kept."""
        return Kept(self._store.kept, self._store.used, self._store.full, self._refused)

"""Makes a torch DataLoader that a library creates from our dataset and batch sampler deliver headrace's batches.

The batch sampler yields tickets, which the dataset exchanges for batches. See decision 0010. Trainers that shard again
get a loader recreated from its public attributes.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any, Protocol

import torch

from headrace._base.types import Function, State
from headrace._loading.routes.route import Loader


class OwnLoader(Loader, Protocol):
    """The part of headrace's DataLoader that an adapter needs."""

    out_transform: Function | None

    @property
    def dataset(self) -> Any: ...

    @property
    def batch_sampler(self) -> Any: ...

    @property
    def cpu_affinity(self) -> object: ...

    @property
    def native(self) -> bool: ...

    @property
    def _auto_collation(self) -> bool: ...

    @property
    def _shards_itself(self) -> bool: ...

    @property
    def _resumes(self) -> bool: ...

    @property
    def upcoming_epoch(self) -> int: ...

    def set_epoch(self, epoch: int) -> None: ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state_dict: State) -> None: ...

    def __len__(self) -> int: ...


class LoopPosition:
    """Position of a loop over a loader. Accelerate's loops have taken one batch less than the loader has handed out.

    Args:
        keeps_states: whether states will be requested.
    """

    def __init__(self, loader: OwnLoader, *, keeps_states: bool) -> None:
        self._loader, self._keeps_states = loader, keeps_states
        self._state: State | None = None

    def take(self) -> None:
        """Must be called before each batch is taken from the loader; the loop has then received all earlier ones."""
        if self._keeps_states:
            self._state = self._loader.state_dict()

    def leave(self) -> None:
        """Called when no pass is in progress: the loader's own state is then used."""
        self._state = None

    def state(self) -> State:
        """Returns a state from which to resume after the batches that the loop has received.

        Where the next epoch has drawn nothing yet, it will draw from torch's default generator as it is now, not as it
        was when the loop took its last batch: the loop may have drawn since.
        """
        if self._state is None:
            return dict(self._loader.state_dict())
        state = dict(self._state)
        if state.get("begun") is False:
            state["default_generator_state"] = torch.get_rng_state()
        if state.get("begun") is False or state.get("asked") is False:
            state["late_default_generator_state"] = torch.get_rng_state()
        return state

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass, also on the samplers."""
        self._loader.set_epoch(epoch)
        self.leave()


class Redeemed:
    """Wraps a loader's dataset; ``__getitems__`` also accepts a ticket and returns its batch."""

    def __init__(self, loader: OwnLoader) -> None:
        self._dataset = loader.dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: object) -> object:
        return self._dataset[index]

    def __getitems__(self, indices: Any) -> object:
        if isinstance(indices, Ticket):
            return indices.redeem()
        at_once = getattr(self._dataset, "__getitems__", None)
        return [self._dataset[index] for index in indices] if at_once is None else at_once(indices)

    def __getattr__(self, name: str) -> object:
        if name == "_dataset":  # not set yet, during unpickling
            raise AttributeError(name)
        return getattr(self._dataset, name)


class Tickets:
    """The batch sampler of a prepared loader: yields one ticket for each batch of an epoch.

    It has no reference to the prepared loader, to avoid a cycle: threads end with the last reference to their loader.
    """

    def __init__(self, loader: OwnLoader, position: LoopPosition) -> None:
        self._loader, self._position = loader, position

    def __iter__(self) -> Iterator[Ticket]:
        loop_pass, number = Pass(self._loader, self._position), 0
        for number in range(len(self)):
            yield Ticket(loop_pass, number)
        loop_pass.end_after(number)

    def __len__(self) -> int:
        return len(self._loader)

    @property
    def sampler(self) -> Tickets:
        """Receives ``set_epoch``: with a loader that skips, Accelerate calls it on its sampler, not on the loader."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Sets the loader's next epoch."""
        self._position.set_epoch(epoch)

    @property
    def even_batches(self) -> bool:
        """Attribute of Accelerate's batch sampler that ``join_uneven_inputs`` sets for a while. Setting it has no
        effect if Accelerate does not shard."""
        return bool(getattr(self._loader.batch_sampler, "even_batches", True))

    @even_batches.setter
    def even_batches(self, even: bool) -> None:
        if hasattr(self._loader.batch_sampler, "even_batches"):
            self._loader.batch_sampler.even_batches = even

    def __getattr__(self, name: str) -> object:
        if name in ("_loader", "_position", "batch_sampler"):  # hides the batch sampler that yields indices
            raise AttributeError(name)
        return getattr(self._loader.batch_sampler, name)


class Pass:
    """One pass over a loader; it begins when the first batch is requested."""

    def __init__(self, loader: OwnLoader, position: LoopPosition) -> None:
        self._loader, self._position = loader, position
        self._batches: Iterator[object] | None = None
        self._next = 0

    def batch(self, number: int) -> object:
        """Returns a batch of the pass; `number` must increase from call to call."""
        if self._batches is None:
            if self._loader.native:
                state = self._loader.state_dict()
                self._loader.load_state_dict({**state, "position": state["position"] + number})
                self._next = number
            self._batches = iter(self._loader)
        self._position.take()
        skipped, self._next = number - self._next, number + 1
        return next(itertools.islice(self._batches, skipped, None))

    def end_after(self, last: int) -> None:
        """Ends the loader's pass if its `last` batch was taken, so that the next pass is the next epoch."""
        if self._batches is not None and self._next == last + 1:
            next(self._batches, None)
            self._position.leave()


class Ticket:
    """Stands for one batch; a skipped ticket is never redeemed, so its batch is not made."""

    def __init__(self, loop_pass: Pass, number: int) -> None:
        self._pass, self._number = loop_pass, number

    def redeem(self) -> object:
        """Returns the batch."""
        return self._pass.batch(self._number)


def remake_loader(loader: Any, *, batch_sampler: object) -> Any:
    """Returns a loader with the same arguments and epoch, but another batch sampler.

    Raises:
        RuntimeError: a state was loaded; its position would not be valid in the new order.
    """
    if loader._resumes:
        raise RuntimeError("this loader's batches are sharded again: load the state after accelerator.prepare")
    names = inspect.signature(type(loader).__init__).parameters
    kept = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    for replaced in ("batch_size", "sampler", "shuffle", "drop_last", "rank", "world_size", "distributed"):
        kept.pop(replaced, None)
    made = type(loader)(**{**kept, "batch_sampler": batch_sampler})
    made.set_epoch(loader.upcoming_epoch)
    return made

"""Lets a torch DataLoader that others make of our dataset and batch sampler deliver headrace's batches.

The batch sampler yields tickets, and the dataset takes them for batches. See decision 0010.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any


class Place:
    """Where a loop over a loader is: Accelerate's loops are one batch behind what the loader has handed out.

    Args:
        keeps_states: whether anybody asks for states.
    """

    def __init__(self, loader: Any, *, keeps_states: bool) -> None:
        self._loader, self._keeps_states = loader, keeps_states
        self._state: dict[str, Any] | None = None

    def take(self) -> None:
        """To be called before each further batch is taken from the loader: the loop then has what came before it."""
        if self._keeps_states:
            self._state = self._loader.state_dict()

    def leave(self) -> None:
        """No pass is under way: the loader itself knows best what is to come."""
        self._state = None

    def state(self) -> dict[str, Any]:
        """Goes on behind the batches that the loop has."""
        return dict(self._loader.state_dict() if self._state is None else self._state)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch; all samplers are told."""
        self._loader.set_epoch(epoch)
        self.leave()


class Redeemed:
    """The dataset of a loader, whose ``__getitems__`` also takes a ticket and gives the batch that is due for it."""

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getitems__(self, indices: Any) -> Any:
        if isinstance(indices, Ticket):
            return indices.redeem()
        at_once = getattr(self._dataset, "__getitems__", None)
        return [self._dataset[index] for index in indices] if at_once is None else at_once(indices)

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)


class Tickets:
    """The batch sampler of a prepared loader: yields tickets for the batches of an epoch, one after the other.

    It does not hold the prepared loader, which holds it: threads end with the last reference to their loader.
    """

    def __init__(self, loader: Any, place: Place) -> None:
        self._loader, self._place = loader, place

    def __iter__(self) -> Iterator[Ticket]:
        delivery, number = Delivery(self._loader, self._place), 0
        for number in range(len(self)):
            yield Ticket(delivery, number)
        delivery.end_after(number)

    def __len__(self) -> int:
        return len(self._loader)

    @property
    def sampler(self) -> Tickets:
        """What is told the epoch: Accelerate tells a sampler inside of a loader that skips, and not that loader."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """As of the loader."""
        self._place.set_epoch(epoch)

    @property
    def even_batches(self) -> bool:
        """As of Accelerate's own batch sampler, for which ``join_uneven_inputs`` sets it for a while. Where Accelerate
        does not deal out, there is nothing to set."""
        return bool(getattr(self._loader.batch_sampler, "even_batches", True))

    @even_batches.setter
    def even_batches(self, even: bool) -> None:
        if hasattr(self._loader.batch_sampler, "even_batches"):
            self._loader.batch_sampler.even_batches = even

    def __getattr__(self, name: str) -> Any:
        if name in ("_loader", "_place", "batch_sampler"):  # nothing that yields indices is to be found here
            raise AttributeError(name)
        return getattr(self._loader.batch_sampler, name)


class Delivery:
    """One pass over a loader, which begins with the first batch that is asked for."""

    def __init__(self, loader: Any, place: Place) -> None:
        self._loader, self._place = loader, place
        self._batches: Iterator[Any] | None = None
        self._next = 0

    def batch(self, number: int) -> Any:
        """A batch of the pass; numbers ascend."""
        if self._batches is None:
            if self._loader.native:
                state = self._loader.state_dict()
                self._loader.load_state_dict({**state, "position": state["position"] + number})
                self._next = number
            self._batches = iter(self._loader)
        self._place.take()
        skipped, self._next = number - self._next, number + 1
        return next(itertools.islice(self._batches, skipped, None))

    def end_after(self, last: int) -> None:
        """Ends the loader's pass, if its `last` batch was the one taken last: the next pass is another epoch."""
        if self._batches is not None and self._next == last + 1:
            next(self._batches, None)
            self._place.leave()


class Ticket:
    """Says which batch is due; whoever skips it throws it away."""

    def __init__(self, delivery: Delivery, number: int) -> None:
        self._delivery, self._number = delivery, number

    def redeem(self) -> Any:
        """The batch."""
        return self._delivery.batch(self._number)

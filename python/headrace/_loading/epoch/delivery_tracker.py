"""Tracks which batches of an epoch the caller has received, so that an interrupt never makes a saved state skip one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Delivery:
    """The delivery of one batch, from the moment its ``next()`` begins.

    Each field is set by a single assignment, so a signal cannot leave it half written.
    """

    number: int  # position of the batch in the epoch
    returned: bool = False  # returned to the caller
    passed: bool = False  # not returned: an error was raised instead, or the batch was skipped as requested
    turn: int = 0  # of the newest ``next()`` that took it, counted from 1; 0: none has

    @property
    def settled(self) -> bool:
        return self.returned or self.passed


def newest_turn(deliveries: tuple[Delivery, ...]) -> int:
    """Returns the turn of the newest call that has returned a batch; 0 if none has."""
    return max((one.turn for one in deliveries if one.returned), default=0)


def settle(settled: int, newest: int, deliveries: tuple[Delivery, ...]) -> tuple[int, int, tuple[Delivery, ...]]:
    """Returns the number of batches that a resumed epoch skips at its front, the newest turn that returned a batch, and
    the deliveries that are left.

    Args:
        settled, newest: as the previous call returned them.
        deliveries: the deliveries begun since, in order of their numbers. A passed batch counts only once a later call
            has returned one.
    """
    first, newest = 0, max(newest, newest_turn(deliveries))
    for one in deliveries:
        if not _counts(one, newest):
            break
        first += 1
        settled = one.number + 1
    return settled, newest, deliveries[first:]


def find_overtaken_by(settled: int, newest: int, deliveries: tuple[Delivery, ...]) -> tuple[int, ...]:
    """Returns the numbers of the batches beyond the first `settled` ones that a resumed epoch skips, too; arguments as
    `settle` returns them."""
    return tuple(one.number for one in deliveries if one.number >= settled and _counts(one, newest))


def _counts(one: Delivery, newest: int) -> bool:
    return one.returned or (one.passed and one.turn < newest)

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

    @property
    def settled(self) -> bool:
        return self.returned or self.passed


def settle(settled: int, deliveries: tuple[Delivery, ...]) -> tuple[int, tuple[Delivery, ...]]:
    """Returns the number of batches that a resumed epoch skips, and the deliveries that are not settled yet.

    Args:
        settled: the number from the previous call.
        deliveries: the deliveries begun since, in order. A passed batch counts only once a later one was returned.
    """
    first = 0
    for one in deliveries:
        returned = one.returned
        if not (returned or one.passed):
            break
        first += 1
        if returned:
            settled = one.number + 1
    return settled, deliveries[first:]

"""Which batches of an epoch its caller has: so noted that no interrupt makes a state pass over one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Delivery:
    """Of one batch, from when it is begun.

    Each field is set by one assignment, which is there or is not, wherever a signal strikes.
    """

    number: int  # batches of the epoch before it
    returned: bool = False  # the caller has it
    passed: bool = False  # the caller has been told why not, or it was left out as asked

    @property
    def settled(self) -> bool:
        return self.returned or self.passed


def settle(behind: int, deliveries: tuple[Delivery, ...]) -> tuple[int, tuple[Delivery, ...]]:
    """How many batches a resumed epoch may pass over, and those that are still to be settled.

    Args:
        behind: as many as were known of before.
        deliveries: those begun since, in order. What was passed counts once a later one has been returned.
    """
    first = 0
    for one in deliveries:
        returned = one.returned
        if not (returned or one.passed):
            break
        first += 1
        if returned:
            behind = one.number + 1
    return behind, deliveries[first:]

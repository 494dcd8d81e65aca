"""The argument `helpers` of a loader: addresses, or how many nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headrace._base.checks import checked_size
from headrace._helpers.connection import Address, token_here


@dataclass(frozen=True)
class RayHelpers:
    """Which nodes of a Ray cluster make samples for a loader, ``DataLoader(helpers=RayHelpers(...))``.

    ``helpers="ray"`` is ``RayHelpers()``: every other node, with all CPUs that it has for Ray. A helper that a node has
    already is shared as it is.

    Args:
        nodes: most nodes, of those that have `cores` and `memory`; None: all but the loader's own.
        cores: CPUs that a helper reserves and uses, of Ray's resource; None: those of its node.
        memory: bytes that it reserves, a number or a text such as ``"4 GB"``: Ray places other tasks accordingly, and
            limits nobody. None: nothing.

    Raises:
        ValueError: a value is out of range.
    """

    nodes: int | None = None
    cores: int | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        for name in ("nodes", "cores"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(f"{name} must be None or a whole number from 1 up, not {value!r}")
        if self.memory is not None:
            checked_size(self.memory, "memory")


#: The argument, checked.
Helpers: TypeAlias = "tuple[Address, ...] | RayHelpers"


def checked_helpers(given: object) -> Helpers:
    """Returns the addresses of a loader's argument, whose token is that of the variable HEADRACE_TOKEN, or the nodes.

    Raises:
        TypeError, ValueError: they are none.
    """
    if given is None:
        return ()
    if given == "ray":
        return RayHelpers()
    if isinstance(given, RayHelpers):
        return given
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(
            'helpers must be "ray", a headrace.RayHelpers, or a list of addresses such as ["10.0.0.2:9917"], '
            f"not {given!r}"
        )
    token = token_here()
    found = tuple(one if isinstance(one, Address) else Address.of(one, token) for one in given)
    if len(set(found)) < len(found):
        raise ValueError("helpers has an address twice")
    return found

"""Objects with a state of their own: those with both ``state_dict`` and ``load_state_dict``, as torchdata has it."""

from __future__ import annotations

import copy
from typing import Any

from headrace.sampler_state import is_stateful as stateful

__all__ = ["restore", "state_of", "stateful"]


def state_of(one: Any) -> Any:
    """A copy of its state, which stays as it is when the object goes on; None where it has none."""
    return copy.deepcopy(one.state_dict()) if stateful(one) else None


def restore(one: Any, state: Any, what: str) -> None:
    """Gives an object its state back; nothing where there is none.

    Raises:
        ValueError: there is a state, but the object cannot take one; `what` says which object it is.
    """
    if state is None:
        return
    if not stateful(one):
        raise ValueError(
            f"the state holds one of the {what}, but {type(one).__qualname__} has no state_dict and load_state_dict"
        )
    one.load_state_dict(state)

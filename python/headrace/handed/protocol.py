"""Objects with a state of their own: those with both ``state_dict`` and ``load_state_dict``, as torchdata has it."""

from __future__ import annotations

from typing import Any

from headrace.epochs.sampler_state import is_stateful as stateful
from headrace.epochs.sampler_state import state_of

__all__ = ["restore", "state_of", "stateful"]


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

"""Stateful objects: those with both ``state_dict`` and ``load_state_dict``, as in torchdata."""

from __future__ import annotations

from typing import Any

from headrace.epochs.sampler_state import is_stateful


def restore(one: Any, state: Any, what: str) -> None:
    """Restores an object's state; does nothing if `state` is None.

    Args:
        what: kind of the object, for the message.

    Raises:
        ValueError: there is a state, but the object has no ``load_state_dict``.
    """
    if state is None:
        return
    if not is_stateful(one):
        raise ValueError(
            f"the state contains one for the {what}, but {type(one).__qualname__} has no state_dict and load_state_dict"
        )
    one.load_state_dict(state)

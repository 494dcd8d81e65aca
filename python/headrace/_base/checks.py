"""Arguments: integers, sizes in bytes, defaults that differ from an equal value, names that are misspelt."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_TRANSFORMS = ("transform", "transforms", "augment", "augmentation")


def whole_number(name: str, value: Any, smallest: int | None = None) -> int:
    """Returns `value` as an int.

    Args:
        name: the argument's name, for messages.
        value: the argument; any type with ``__index__``, except bool.
        smallest: the smallest allowed value; None: no limit.

    Raises:
        TypeError: `value` is not an integer.
        ValueError: `value` is below `smallest`.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    number = operator.index(value)
    if smallest is not None and number < smallest:
        raise ValueError(f"{name} must be {smallest} or more, not {number}")
    return number


def length_or_none(dataset: Any) -> int | None:
    """Returns the number of samples of a dataset; None if it has no length."""
    try:
        return len(dataset)
    except Exception:  # one that raises: torch may never ask for it
        return None


class Unasked(int):
    """A default of an argument that acts in another way than the same number given."""


_UNITS = {"": 1, "b": 1} | {
    letter.lower() + suffix: base**power
    for power, letter in enumerate("KMGTP", 1)
    for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def checked_size(size: int | str, name: str) -> int:
    """Returns a number of bytes. ``"100 GB"`` is 100 * 1000**3, ``"100 GiB"`` is 100 * 1024**3.

    Raises:
        ValueError: it is no size, or not positive.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size) if isinstance(size, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or int(float(match[1]) * unit) <= 0:
        raise ValueError(f"{name} must be a number of bytes, or a text such as '100 GB' or '8 GiB', not {size!r}")
    return int(float(match[1]) * unit)


def explained(advise: Callable[[Exception, dict[str, Any]], object] | None = None) -> Callable[[_F], _F]:
    """Returns a decorator of an ``__init__``: the TypeError about an unknown keyword says which one may be meant, as
    Python 3.13's does. Its signature stays that of the function.

    Args:
        advise: adds to other errors what to change; called with the error and the arguments by their names.
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except Exception as error:
                _explain(error, function, args, options, advise)
                raise

        return call  # type: ignore[return-value]

    return decorate


def _explain(
    error: Exception,
    function: Callable[..., object],
    args: tuple[Any, ...],
    options: dict[str, Any],
    advise: Callable[[Exception, dict[str, Any]], object] | None,
) -> None:
    trace = error.__traceback__
    if trace is not None and trace.tb_next is None:  # raised by the call itself
        if isinstance(error, TypeError):
            _suggest(error, function)
    elif advise is not None:
        import inspect

        given = inspect.signature(function).bind(*args, **options)
        given.apply_defaults()
        advise(error, given.arguments)


def _suggest(error: TypeError, function: Callable[..., object]) -> None:
    import difflib
    import inspect

    found = re.match(r".* got an unexpected keyword argument '(\w+)'", str(error))
    if found is None:
        return
    names = list(inspect.signature(function).parameters)[1:]
    near = difflib.get_close_matches(found[1], names, 1)
    if found[1] in _TRANSFORMS and "dataset" in names:
        hint = "Transforms belong to the dataset: ImageFolder(root, transform)"
    else:
        hint = f"Did you mean '{near[0]}'?" if near else f"There are {', '.join(names)}"
    error.args = (f"{found[0]}. {hint}",)

"""What a program sees: values, batches, errors and random generators, as text that two runs have in common or not."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import marshal
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

#: An epoch ends after this number of batches, or of errors.
MOST_BATCHES, MOST_ERRORS = 24, 2


@dataclass(frozen=True)
class Raised:
    """An error.

    Attributes:
        classes: names of its class and of the bases, in the order of the search.
        text: `str()` of it; "" if that fails.
        filename, errno: of an OSError.
    """

    classes: tuple[str, ...]
    text: str
    filename: str = ""
    errno: str = ""


@dataclass(frozen=True)
class Entry:
    """One observation.

    Attributes:
        line: number of the program's line.
        what: "value", "batch", "end", "generators", "raises".
        text: the value.
        raised: the error.
    """

    line: int
    what: str
    text: str
    raised: Raised | None = None

    def __str__(self) -> str:
        return f"line {self.line}: {self.what} {self.text}"


def digest(data: bytes) -> str:
    """A short name of bytes."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()[:10]


def described(value: Any, depth: int = 0) -> str:
    """The value as text: equal for equal values, dtypes and containers alone."""
    if depth > 6:
        return "..."
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        given = value.detach().cpu()
        data = digest(given.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()) if given.numel() else ""
        shown = given.tolist() if given.numel() <= 8 else f"{given.double().mean().item():.4g}.. {data}"
        more = "" if value.is_contiguous() else ", not contiguous"
        more += ", requires_grad" if value.requires_grad else ""
        more += ", inference" if value.is_inference() else ""
        return f"{kind}({str(value.dtype)[6:]} {tuple(value.shape)} {shown}{more})"
    if isinstance(value, np.ndarray):
        return f"{kind}({value.dtype} {value.shape} {value.tolist() if value.size <= 8 else digest(value.tobytes())})"
    if isinstance(value, Image.Image):
        return f"Image({value.mode} {value.size} {digest(value.tobytes())})"
    if isinstance(value, Mapping):
        return f"{kind}({', '.join(f'{one!r}: {described(each, depth + 1)}' for one, each in value.items())})"
    if isinstance(value, list | tuple):
        return f"{kind}({', '.join(described(one, depth + 1) for one in value)})"
    if isinstance(value, bytes):
        return f"bytes({digest(value)})"
    if value is None or isinstance(value, str | int | float | complex | np.generic):
        return f"{kind}({value!r})"
    return kind


def raised(error: BaseException) -> Raised:
    """The error without its traceback."""
    try:
        text = re.sub(r"\b0x[0-9a-f]+", "0x", str(error))  # addresses differ in each run
    except Exception:
        text = ""
    classes = tuple(one.__name__ for one in type(error).__mro__)
    if not isinstance(error, OSError):
        return Raised(classes, text)
    return Raised(classes, text, repr(error.filename), repr(error.errno))


class Observer:
    """`see` in a program.

    Attributes:
        entries: the observations.
        line: number of the program's line that runs.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.line = 0
        self._undo = contextlib.ExitStack()

    def __call__(self, *values: Any) -> None:
        """Notes values."""
        self.note("value", described(values[0] if len(values) == 1 else values))

    def note(self, what: str, text: str, error: BaseException | None = None) -> None:
        """Adds an observation."""
        self.entries.append(Entry(self.line, what, text, raised(error) if error is not None else None))

    def error(self, error: BaseException) -> None:
        """Notes an error."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        self.note("raises", type(error).__name__, error)

    def epoch(self, loader: Any, most: int = MOST_BATCHES) -> None:
        """A loop over a loader that is left after `most` batches, or by an error."""
        for number, batch in enumerate(loader, 1):
            self.note("batch", described(batch))
            if number >= most:
                break
        else:
            self.note("end", "")

    def take(self, batches: Iterator[Any], most: int = MOST_BATCHES) -> None:
        """Takes batches, also after errors."""
        errors = 0
        for _ in range(most):
            try:
                batch = next(batches)
            except StopIteration as error:
                self.note("end", described(error.value))
                return
            except BaseException as error:
                self.error(error)
                errors += 1
                if errors == MOST_ERRORS:
                    return
            else:
                self.note("batch", described(batch))

    def pairs(self, one: Any, other: Any) -> None:
        """A loop over two loaders, or twice over the same."""
        for batches in itertools.islice(zip(one, other, strict=False), MOST_BATCHES):
            self.note("batch", described(batches))

    def generators(self) -> None:
        """Notes the states of the process's generators."""
        python = digest(marshal.dumps(random.getstate()))
        _, words, *rest = np.random.get_state()  # noqa: NPY002
        numpy = digest(np.asarray(words).tobytes() + repr(rest).encode())
        text = f"torch {digest(torch.get_rng_state().numpy().tobytes())} random {python} numpy {numpy}"
        self.note("generators", text)

    # ---- changes that end with the program

    def patch(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute until the end, or until `restore`."""
        missing = object()
        before = vars(owner).get(name, missing)
        setattr(owner, name, value)
        self._undo.callback(lambda: delattr(owner, name) if before is missing else setattr(owner, name, before))

    def around(self, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
        """Replaces a function by one that calls it."""
        self.patch(owner, name, change(getattr(owner, name)))

    def put(self, mapping: Any, key: Any, value: Any) -> None:
        """Replaces an entry until the end."""
        missing = object()
        before = mapping.get(key, missing)
        mapping[key] = value
        self._undo.callback(lambda: mapping.pop(key, None) if before is missing else mapping.__setitem__(key, before))

    def under(self, change: Callable[[Any], Any], value: Any) -> None:
        """Changes a setting of torch, of decimal or of a context variable until the end."""
        name, module = getattr(change, "__name__", ""), getattr(change, "__self__", None)
        if name == "set" and module is not None:
            token = change(value)
            self._undo.callback(module.reset, token)
            return
        before = {
            "setcontext": lambda: __import__("decimal").getcontext().copy(),
            "set_grad_enabled": torch.is_grad_enabled,
            "set_default_dtype": torch.get_default_dtype,
            "set_num_threads": torch.get_num_threads,
        }[getattr(change, "__name__", "set_grad_enabled")]()
        change(value)
        self._undo.callback(change, before)

    def within(self, context: Any) -> None:
        """Enters a context until the end."""
        self._undo.enter_context(context)

    def restore(self) -> None:
        """Takes all changes back."""
        self._undo.close()
        self._undo = contextlib.ExitStack()

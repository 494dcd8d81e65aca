"""A program as source text in parts, each of which can be left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Statements:
    """A program that cannot be made smaller.

    Attributes:
        lines: the statements.
        setup: how many of them make the loader.
        workers: the loader's num_workers, at the least.
    """

    lines: tuple[str, ...]
    setup: int
    workers: int


@dataclass(frozen=True)
class Program:
    """A program that uses a loader.

    Attributes:
        seed: the number that it was drawn from.
        before: definitions: objects that the other parts name.
        base: the dataset's expression, with {transform} and {target} where it takes these.
        steps: the transform's steps.
        target: the target_transform; "" for none.
        wraps: expressions of `data` that replace it, one after another.
        arguments: the loader's further arguments.
        actions: statements.
    """

    seed: int
    before: tuple[str, ...]
    base: str
    steps: tuple[str, ...]
    target: str
    wraps: tuple[str, ...]
    arguments: tuple[str, ...]
    actions: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The statements."""
        transform = f"V.Compose([{', '.join(self.steps)}])" if self.steps else "None"
        base = self.base.replace("{transform}", transform).replace("{target}", self.target or "None")
        head = [*self.before, f"base = data = {base}", *(f"data = {wrap}" for wrap in self.wraps)]
        return (*head, f"loader = Loader({', '.join(('data', *self.arguments))})", *self.actions)

    @property
    def setup(self) -> int:
        """How many of the lines make the loader."""
        return len(self.before) + len(self.wraps) + 2

    @property
    def workers(self) -> int:
        """The loader's num_workers."""
        return next((int(one.split("=")[1]) for one in self.arguments if one.startswith("num_workers=")), 0)

    @property
    def snippet(self) -> str:
        """A program that shows the difference."""
        body = "\n".join(f"    {part}" for line in self.lines for part in line.split("\n"))
        return (
            "from fuzz.programs.world.names import *\nfrom fuzz.programs.trial import compare\n\n"
            f"def program(Loader, see):\n{body}\n\nprint(compare(program))"
        )

    def smaller(self) -> Iterator[Program]:
        """Yields programs with one part less, those first that leave out most."""
        for size in (8, 4, 2, 1):
            for first in range(0, len(self.actions), size):
                yield replace(self, actions=self.actions[:first] + self.actions[first + size :])
        for name in ("arguments", "steps", "wraps", "before"):
            parts: tuple[str, ...] = getattr(self, name)
            for number in range(len(parts)):
                fewer: dict[str, Any] = {name: parts[:number] + parts[number + 1 :]}
                yield replace(self, **fewer)
        if self.target:
            yield replace(self, target="")
        for number, argument in enumerate(self.arguments):
            for instead in _simpler(argument):
                yield replace(self, arguments=(*self.arguments[:number], instead, *self.arguments[number + 1 :]))
        for number, action in enumerate(self.actions):
            for instead in _SIMPLER_ACTIONS.get(action, ()):
                yield replace(self, actions=(*self.actions[:number], instead, *self.actions[number + 1 :]))


def _simpler(argument: str) -> list[str]:
    name, _, value = argument.partition("=")
    simpler = {"num_workers": ["1"], "batch_size": ["2", "4"], "prefetch_factor": ["1"]}.get(name, [])
    if name == "num_workers" and value == "1":
        return []
    return [f"{name}={one}" for one in simpler if one != value and value != "None"]


_SIMPLER_ACTIONS = {
    "see.epoch(loader, 2)": ["see.epoch(loader)"],
    "see.epoch(loader, 1)": ["see.epoch(loader)"],
}

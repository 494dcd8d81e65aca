"""Runs a program with torch's class and with headrace's, and names the first observation that differs."""

from __future__ import annotations

import ast
import gc
import inspect
import random
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fuzz.programs import rules
from fuzz.programs.drawing.parts import Program, Statements
from fuzz.programs.observer import Entry, Observer
from fuzz.programs.world import names, steps
from fuzz.programs.world.files import Copies

REPOSITORY = Path(__file__).parents[2]

#: Ways to differ: another value, or a value where torch raises; an error where torch delivers; another error.
SILENT, LOUD, ERROR = "silent", "loud", "another error"


@dataclass(frozen=True)
class Difference:
    """The first observation that differs.

    Attributes:
        kind: SILENT, LOUD or ERROR.
        line: number of the program's line.
        theirs, ours: what torch's loader gave, and headrace's.
    """

    kind: str
    line: int
    theirs: str
    ours: str

    def __str__(self) -> str:
        return f"{self.kind} difference in line {self.line}\n  torch    {self.theirs}\n  headrace {self.ours}"


class Runs:
    """The runs of one program.

    Attributes:
        program: what is run.
        routes: how headrace's loaders delivered.
        documented: names of the documented differences.
    """

    def __init__(self, program: Program | Statements) -> None:
        self.program = program
        self.routes: set[str] = set()
        self.documented: set[str] = set()
        self._code = [compile(line, f"line {number}", "exec") for number, line in enumerate(program.lines)]

    def entries(self, kind: Any) -> list[Entry]:
        """What the program sees with a class of loaders."""
        see, copies = Observer(), Copies()
        space: dict[str, Any] = {**vars(names), "Loader": kind, "see": see, "copied": copies}
        steps.Shared.calls = 0
        steps.ZERO.zero_()
        random.seed(5), np.random.seed(4), torch.manual_seed(3)  # noqa: NPY002 - torch's workers seed it
        torch.set_default_dtype(torch.float32)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for number, code in enumerate(self._code):
                    see.line = number
                    try:
                        exec(code, space)
                    except BaseException as error:
                        see.error(error)
                        del error
                        if number < self.program.setup:
                            break
                    see.generators()
        finally:
            see.restore()
            copies.remove()
        loader = space.get("loader")
        self.routes.add(str(getattr(loader, "route", "")))
        del loader
        space.clear()
        gc.collect(2 if self.program.workers else 0)
        return see.entries


def difference(program: Program | Statements) -> tuple[Difference | None, Runs]:
    """Returns what differs, and the runs. Raises Unsteady if torch's own runs differ."""
    from headrace import DataLoader

    runs = Runs(program)
    theirs = runs.entries(torch.utils.data.DataLoader)
    runs.routes.clear()
    ours = runs.entries(DataLoader)
    found = first_difference(program, theirs, ours, runs.documented)
    if found is not None and runs.entries(torch.utils.data.DataLoader) != theirs:
        raise Unsteady
    return found, runs


class Unsteady(Exception):
    """Two runs with torch's class differ."""


def first_difference(
    program: Program | Statements, theirs: list[Entry], ours: list[Entry], documented: set[str]
) -> Difference | None:
    """Compares two lists of observations. Notes the names of differences that are documented, and passes over them."""
    for number in range(max(len(theirs), len(ours))):
        one, other = (entries[number] if number < len(entries) else None for entries in (theirs, ours))
        if one is not None and other is not None and _same(program, one, other):
            continue
        if rule := rules.applying(program, one, other):
            documented.add(rule.name)
            if rule.ends:
                return None
            continue
        line = (one or other).line  # type: ignore[union-attr]
        kind = SILENT
        if other is not None and other.raised is not None:
            kind = LOUD if one is None or one.raised is None else ERROR
        return Difference(kind, line, _shown(one), _shown(other))
    return None


def _shown(entry: Entry | None) -> str:
    if entry is None:
        return "nothing more"
    if entry.raised is None:
        return str(entry)
    said = entry.raised
    where = f" filename={said.filename} errno={said.errno}" if said.filename else ""
    return f"{entry}: {'/'.join(said.classes[:4])}: {said.text[-600:]!r}{where}"


def _same(program: Program | Statements, one: Entry, other: Entry) -> bool:
    if one.raised is None or other.raised is None:
        return one == other
    if (one.line, one.what) != (other.line, other.what):
        return False
    theirs, ours = one.raised, other.raised
    if theirs == ours:
        return True
    if theirs.classes[0] not in ours.classes or (theirs.filename, theirs.errno) != (ours.filename, ours.errno):
        return False
    if one.line < program.setup:  # what is said of arguments is torch's
        return theirs.text == ours.text
    return "boom" in ours.text or "boom" not in theirs.text


def of_text(text: str) -> Difference | None:
    """What differs in a program that is given as text, one of whose statements is ``loader = Loader(...)``."""
    statements = tuple(ast.unparse(one) for one in ast.parse(text).body)
    at = next(number for number, line in enumerate(statements) if line.startswith("loader = Loader("))
    found, runs = difference(Statements(statements, at + 1, int("num_workers" in text)))
    print("routes:", ", ".join(sorted(runs.routes)), file=sys.stderr)
    return found


def compare(function: Callable[[Any, Observer], None]) -> str:
    """What differs in a program that is a function of a class and an observer: for the programs that are printed."""
    return str(of_text(textwrap.dedent("\n".join(inspect.getsource(function).split("\n")[1:]))))

"""Documented differences: the only ones that a campaign does not count, each with the sentence that promises it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.programs.drawing.parts import Program, Statements
from fuzz.programs.observer import Entry


@dataclass(frozen=True)
class Rule:
    """A documented difference.

    Attributes:
        name: of the rule.
        where: the document.
        sentence: of it.
        applies: whether two observations differ by it.
        ends: whether the observations after it are not compared.
    """

    name: str
    where: str
    sentence: str
    applies: Callable[[Program | Statements, Entry | None, Entry | None], bool]
    ends: bool = False


def _delivered(theirs: Entry | None, ours: Entry | None) -> bool:
    """Whether both observations are there, and none is an error."""
    return theirs is not None and ours is not None and theirs.raised is None and ours.raised is None


def _unrebuilt(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if not program.workers or theirs is None or ours is None or theirs.raised is None or ours.raised is None:
        return False
    if theirs.raised.classes[0] in ours.raised.classes and theirs.raised.filename == "None":
        return ours.raised.filename != "None" and ours.raised.filename.strip("'") in theirs.raised.text
    unmade = theirs.raised.classes[0] == "RuntimeError" or "__new__() takes" in theirs.raised.text
    return unmade and "boom" in ours.raised.text


def _ended(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if theirs is None or ours is None or not theirs.what == ours.what == "end":
        return False
    return "Caught StopIteration in DataLoader worker process" in theirs.text and "boom" in ours.text


def _again(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if theirs is None or ours is None or ours.raised is None or "Exception" in ours.raised.classes:
        return False
    return program.workers == 0 and "boom" in ours.raised.text


def _in_place(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if not program.workers or not _delivered(theirs, ours):
        return False
    fields = any("headrace.Fields(" in line or "headrace.Columns(" in line for line in program.lines)
    arrays = r"labels|base\.data|(base\.)?columns\[.*\]" if fields else r"base\.data"
    return any(re.match(rf"({arrays})\[.*\] = ", line) for line in program.lines)


def _other_items(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if not program.workers or not _delivered(theirs, ours):
        return False
    return any(re.match(r"sampler = .*(True|False|slice)", line) for line in program.lines)


def _contiguous(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if theirs is None or ours is None or not _delivered(theirs, ours):
        return False
    return (theirs.line, theirs.text.replace(", not contiguous", "")) == (ours.line, ours.text)


def _copied(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> bool:
    if theirs is None or ours is None or theirs.raised is None or ours.raised is not None:
        return False
    return theirs.raised.classes[0] == "NotImplementedError" and "_MultiProcessingDataLoaderIter" in theirs.raised.text


RULES = (
    Rule(
        "an interrupted batch comes again",
        "docs/decisions/0015-a-batch-counts-when-it-is-returned.md",
        "belong to no batch",
        _again,  # a step's BaseException is taken for an interrupt
        ends=True,
    ),
    Rule(
        "values of arrays are read when a batch is made",
        "docs/datasets.md",
        "Three things are read when a batch is made",
        _in_place,
    ),
    Rule(
        "other items than whole numbers are made when a batch is due",
        "docs/datasets.md",
        "Three things are read when a batch is made",
        _other_items,
    ),
    Rule(
        "a single sample is contiguous",
        "python/headrace/loader.py",
        "memory_format: ``torch.contiguous_format`` or ``torch.channels_last``",
        _contiguous,  # where nothing stacks the samples, torch delivers the strides of the last transform
    ),
    Rule(
        "a loader with persistent workers is copied",
        "docs/from-torch.md",
        "has no such workers: the copy begins an epoch of its own",
        _copied,  # torch's way raises as torch does
        ends=True,
    ),
    Rule(
        "an error keeps its class",
        "docs/from-torch.md",
        "a bad file | the exception of the worker | the same reason, with stage, path and index",
        # torch's workers make a RuntimeError of a class that they cannot construct, an OSError without its fields, and
        # add their text to the value of a StopIteration
        lambda program, theirs, ours: _unrebuilt(program, theirs, ours) or _ended(program, theirs, ours),
    ),
)


def applying(program: Program | Statements, theirs: Entry | None, ours: Entry | None) -> Rule | None:
    """The rule by which two observations differ."""
    return next((rule for rule in RULES if rule.applies(program, theirs, ours)), None)

"""A process of a campaign: runs programs one after another and writes a line of JSON about each.

python -m fuzz.programs.child FIRST LAST [NUMBERS ...]
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import traceback
import warnings
from collections import Counter
from typing import Any

import torch

from fuzz.programs import trial
from fuzz.programs.drawing.generate import program
from fuzz.programs.drawing.parts import Program
from fuzz.programs.shrinking import shrunk, steady
from fuzz.programs.world import files

#: Differences of a kind that a process makes smaller.
SHRUNK = 2


class Child:
    """Runs programs.

    Args:
        out: a file descriptor.
        without: a regular expression; programs whose text it matches are passed over.
    """

    def __init__(self, out: int, without: str = "") -> None:
        self._without = re.compile(without, re.MULTILINE) if without else None
        self._out = os.fdopen(out, "w", buffering=1)
        self._seen: Counter[str] = Counter()

    def say(self, **what: Any) -> None:
        """Writes a line."""
        print(json.dumps(what), file=self._out, flush=True)

    def run(self, seed: int) -> None:
        """Runs the program of a number."""
        self.say(begun=seed)
        one = program(seed)
        if self._without is not None and self._without.search("\n".join(one.lines)):
            self.say(done=seed, kind="passed over")
            return
        try:
            found, runs = trial.difference(one)
        except trial.Unsteady:
            self.say(done=seed, kind="unsteady")
            return
        except Exception:
            self.say(done=seed, kind="broken", program=one.snippet, difference=traceback.format_exc())
            return
        about = {"routes": sorted(runs.routes), "documented": sorted(runs.documented)}
        if found is None:
            self.say(done=seed, kind="same", **about)
        else:
            self.say(done=seed, kind=found.kind, **about, **self._told(one, found))

    def _told(self, one: Program, found: trial.Difference) -> dict[str, Any]:
        statement = one.lines[found.line]
        key = f"{found.kind} {statement} {found.theirs.split(':')[1][:12]}"
        self._seen[key] += 1
        if self._seen[key] <= SHRUNK:
            one, found = shrunk(one, found, lambda: self.say(shrinking=one.seed))
        more = {} if steady(one) else {"unsteady": True}
        return {"program": one.snippet, "lines": one.lines, "difference": str(found), **more}


def main() -> None:
    first, last = map(int, sys.argv[1:3])
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1), os.dup2(null, 2)  # what workers print about errors that are wanted
    faulthandler.register(files.DUMP, files.stacks(os.getpid()).open("w"), all_threads=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    child = Child(out, *sys.argv[3:])
    for seed in range(first, last):
        child.run(seed)


if __name__ == "__main__":
    main()

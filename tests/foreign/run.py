"""Runs tests of another project with its own loader or images and with headrace's, and prints where they differ.

    python tests/foreign/run.py torchdata path/to/checkout [--device emulated]

Nothing is fetched: the checkout is copied to a temporary folder, where the import of the loader is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from suites import HEADRACE, ON_DEVICE, SUITES, Suite


def run(suite: Suite, checkout: Path, statement: str, arguments: argparse.Namespace) -> dict[str, Outcome]:
    """Test -> its outcome, of those that were run in time."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / suite.copied
        shutil.copytree(checkout / suite.copied, copied)
        for file in copied.rglob("*.py"):
            file.write_text(suite.change(file.read_text(), statement))
        notes = Path(folder) / "notes"
        patched = (f"import {name}; {name}.DataLoader = DataLoader" for name in suite.patched)
        (Path(folder) / "foreign_loader.py").write_text(
            "\n".join([*arguments.first, statement, *patched, _NOTING.format(str(notes))])
        )
        if arguments.device:
            (Path(folder) / "device_loader.py").write_text(_ON_DEVICE.format(arguments.device))
        paths = [folder, str(copied), *map(os.path.abspath, arguments.path), *sys.path]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "foreign_loader", "--rootdir", folder]
        command += ["-o", "addopts=", *suite.options, *(["-k", arguments.only] if arguments.only else [])]
        process = subprocess.Popen(
            [*command, *(str(Path(folder) / file) for file in suite.files)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdout=None if arguments.verbose else subprocess.DEVNULL,
            stderr=None if arguments.verbose else subprocess.DEVNULL,
        )
        try:
            process.wait(arguments.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            print("stopped: the time is over")
        found: dict[str, Outcome] = {}
        for line in notes.read_text().splitlines() if notes.exists() else ():
            name, kind, reason = json.loads(line)
            if name not in found or kind != "passed":
                found[name] = Outcome(kind, reason)
        return found


# The loader whose batches end on a device where a test does not ask for one.
_ON_DEVICE = """
import typing, headrace
T = typing.TypeVar("T")
class DataLoader(headrace.DataLoader[T]):
    def __init__(self, *args, **options):
        super().__init__(*args, **{{"device": {!r}, **options}})
"""

# A plugin of pytest's: what a test came to is noted at once, so that it is known of a run that is stopped, too.
_NOTING = """
import json
def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed:
        reason = str(report.longrepr).strip().splitlines()[-1:] if report.longrepr else ""
        with open({!r}, "a") as notes:
            notes.write(json.dumps([report.nodeid, report.outcome, "".join(reason)]) + "\\n")
"""


class Outcome(NamedTuple):
    """Of a test: passed, failed or skipped; and the last line of why, or of what a plugin says of its run."""

    kind: str
    reason: str = ""


def counts(found: dict[str, Outcome]) -> str:
    """How many tests there are of each outcome."""
    kinds = [one.kind for one in found.values()]
    return f"{len(found)} tests: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))


def main() -> int:
    """0 where all outcomes are the same, 1 where they differ, 2 where no test ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path, help="of the foreign project")
    parser.add_argument("--path", action="append", default=[], help="a folder with packages that the tests need")
    parser.add_argument("--first", action="append", default=[], help="a statement that is run before the tests")
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--device", help="where headrace's batches end, such as emulated; for suites of loaders")
    parser.add_argument("--ours", action="store_true", help="only headrace's run: what does not pass")
    parser.add_argument("--theirs", action="store_true", help="only the run before: what does not pass")
    parser.add_argument("--verbose", action="store_true", help="show pytest's output")
    parser.add_argument("--timeout", type=float, help="seconds for each of the two runs")
    arguments = parser.parse_args()
    suite = SUITES[arguments.suite]
    if arguments.device:
        if suite.changed != HEADRACE:
            parser.error("--device is for suites of loaders")
        suite = replace(suite, changed=ON_DEVICE)
    statements = [suite.baseline, suite.changed][int(arguments.ours) : 1 if arguments.theirs else 2]
    runs = []
    for statement in statements:
        runs.append(run(suite, arguments.checkout, statement, arguments))
        print(f"{statement}\n    {counts(runs[-1])}", flush=True)
        for name, (kind, reason) in runs[-1].items():
            if kind == "passed" and reason:
                print(f"    {name}: {reason}")
        if not runs[-1]:
            print("no test ran: with --verbose, pytest says why")
            return 2
    before, now = runs if len(runs) == 2 else ({name: Outcome("passed") for name in runs[0]}, runs[0])
    different = 0
    for name in sorted({*before, *now}):
        a, b = before.get(name, Outcome("not run")), now.get(name, Outcome("not run"))
        if a.kind != b.kind and not (len(runs) == 1 and b.kind == "skipped"):
            different += 1
            print(f"{name}: {a.kind} -> {b.kind}: {a.reason or b.reason}")
    print(f"{different} tests {'differ' if len(runs) == 2 else 'do not pass'}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Builds, imports and tests headrace with each given Python, and prints a line of a table for each.

    python tools/matrix.py [--tests PATH...] [--out FILE] -- PYTHON...

PYTHON: an interpreter of an environment that has torch, Pillow, NumPy, tqdm, pytest and hypothesis, and what builds
headrace (`tools/requirements.py build`, cmake, ninja). Each gets a wheel of its own in build/matrix, installed beside
the environment: nothing in it changes. Without --tests, the quick tests run. Exits with 1 if a cell failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "matrix"
QUICK = "not slow and not processes and not trainers"
HEAD = """| Python | torch | torchvision | Pillow | NumPy | platform | wheel | import | tests |
|---|---|---|---|---|---|---|---|---|
"""
VERSIONS = """
import json, platform, sys, sysconfig
from importlib.metadata import PackageNotFoundError, version
def of(name):
    try: return version(name)
    except PackageNotFoundError: return "none"
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(json.dumps([platform.python_version() + free, *map(of, ("torch", "torchvision", "Pillow", "numpy")),
                  platform.system() + " " + platform.machine()]))
"""
# What a program does first, and what Python says of it.
IMPORT = """
import sys, torch, warnings
before = getattr(sys, "_is_gil_enabled", lambda: True)()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from headrace import DataLoader, ImageFolder, transforms
after = getattr(sys, "_is_gil_enabled", lambda: True)()
said = [str(one.message) for one in said if before == after]
print("; ".join(["yes" if before == after else "yes, enables the GIL", *said]))
"""


def run(python: str, *arguments: str, log: Path, **environment: str) -> tuple[bool, str]:
    """Runs an interpreter; returns whether it succeeded, and its output."""
    done = subprocess.run(
        [python, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    log.write_text(done.stdout)
    return done.returncode == 0, done.stdout


def counts(output: str) -> str:
    """pytest's last line, without the time: "812 passed, 3 skipped"."""
    found = re.findall(r"^=*\s*(\d+ (?:passed|failed|skipped|error).*?) in [\d.]+s", output, re.MULTILINE)
    return found[-1] if found else "did not run"


def row(python: str, tests: list[str]) -> tuple[list[str], bool]:
    """Returns the cells of one interpreter, and whether all of them are good."""
    name = subprocess.run([python, "-c", VERSIONS], check=True, capture_output=True, text=True).stdout
    versions: list[str] = json.loads(name)
    folder = OUT / "-".join(versions[:4])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wheels, site = folder / "wheels", folder / "site"
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    build = (*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), ".")
    built, _ = run(python, *build, log=folder / "build.log")
    if not built:
        return [*versions, "failed", "", ""], False
    (wheel,) = wheels.glob("*.whl")
    run(python, *pip, "install", "--no-deps", "--target", str(site), str(wheel), log=folder / "install.log")
    cells = [f"{wheel.stat().st_size / 1e6:.1f} MB"]
    imported, said = run(python, "-c", IMPORT, log=folder / "import.log", PYTHONPATH=str(site))
    cells.append(said.strip() if imported else said.strip().rpartition("\n")[2][:80])
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", QUICK, *tests)
    settings = {"PYTHONPATH": str(site), "HYPOTHESIS_PROFILE": "quick"}
    if versions[0].endswith("t"):
        settings["PYTHON_GIL"] = os.environ.get("PYTHON_GIL", "0")  # _gpu enables it, and the warning ends pytest
    passed, said = run(python, *arguments, log=folder / "tests.log", **settings)
    return [*versions, *cells, counts(said)], imported and passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="run these tests in place of all")
    parser.add_argument("--out", type=Path, help="write the table to this file, too")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    given = parser.parse_args()
    table, good = HEAD, True
    for python in given.pythons:
        cells, fine = row(python, given.tests)
        table, good = f"{table}| {' | '.join(cells)} |\n", good and fine
        print(table.splitlines()[-1], flush=True)
        if given.out:
            given.out.write_text(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

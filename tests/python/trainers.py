"""Runs the training examples in processes, with headrace's loader or the oracle's, and reads their losses."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import headrace
import program_server
from program_server import Run
from support import WATCHDOG_S

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUNNER = Path(__file__).with_name("oracle_loader.py")


def needs(*modules: str) -> None:
    """Skips the test where a trainer is not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def variables() -> dict[str, str]:
    """An environment with headrace, these tests and the examples on Python's path, and torch limited to one thread."""
    folders = [Path(headrace.__file__).parents[1], Path(__file__).parent, EXAMPLES]
    ours = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    return {**os.environ, **ours, "TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def start(*command: object, **more: str) -> subprocess.Popen[str]:
    """Starts a new Python."""
    out = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=out, stderr=out, text=True, env={**variables(), **more}
    )


def torchrun(ranks: int) -> list[object]:
    """The beginning of a command that starts a program on several ranks."""
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]


def fork(kind: str, *command: object, ranks: int = 1, **more: str) -> subprocess.Popen[str] | Run:
    """Starts a Python that has imported what programs of this kind import: `program_server.IMPORTS`. On Linux."""
    if sys.platform != "linux":
        return start(*(torchrun(ranks) if ranks > 1 else []), *command, **more)
    return program_server.start(kind, *command, variables=variables(), ranks=ranks, **more)


def finish(process: subprocess.Popen[str] | Run, *, killed: bool = False, ranks: int = 1) -> list[str]:
    """The lines that a program printed. It must exit with 0, or if `killed` by SIGKILL, which torchrun reports as 1."""
    try:
        out, err = process.communicate(timeout=WATCHDOG_S)
    except subprocess.TimeoutExpired:
        assert isinstance(process, subprocess.Popen)
        process.send_signal(signal.SIGABRT)  # Python writes where its threads are
        out, err = process.communicate(timeout=program_server.GRACE)  # its children may hold the pipes
    finally:
        process.kill()
    sudden = -signal.SIGKILL if ranks == 1 else 1
    assert process.returncode == (sudden if killed else 0), f"{process.returncode}\n{out}\n{err[-4000:]}"
    return out.splitlines()


def example(
    whose: str, name: str, *arguments: object, ranks: int = 1, note: str = os.devnull
) -> subprocess.Popen[str] | Run:
    """Starts an example with the `native` or the `oracle` loader, of several ranks as torchrun does."""
    command, more = (RUNNER, whose, EXAMPLES / f"{name}.py", *arguments), {"HEADRACE_ORACLE_LOG": note}
    return start(*command, **more) if name == "ray_train" else fork(kind_of(name), *command, ranks=ranks, **more)


def kind_of(name: str) -> str:
    """The kind of server that has imported what an example imports."""
    trainer = name.split("_")[0]
    return trainer if trainer in program_server.IMPORTS else "torch"


def losses(lines: Sequence[str]) -> dict[int, str]:
    """The loss of each step, to the last bit. A step that is printed twice must have the same loss."""
    found: dict[int, str] = {}
    for line in lines:
        if line.startswith("step "):
            step, loss = int(line.split()[1].rstrip(":")), line.split()[-1]
            assert found.setdefault(step, loss) == loss
    return found


def curve(whose: str, notes: Path, name: str, *arguments: object, ranks: int = 1) -> dict[int, str]:
    """The losses of a whole run with headrace's loader or with the oracle's.

    Args:
        notes: a folder in which the oracle records that it delivered.
    """
    lines = finish(example(whose, name, *arguments, ranks=ranks, note=str(notes / whose)))
    assert any(line.endswith(" images/s") for line in lines)
    assert (notes / whose).exists() == (whose == "oracle")
    return losses(lines)


def killed_and_resumed(
    name: str, *arguments: object, kills: Sequence[int], ranks: int = 1
) -> tuple[dict[int, str], list[int]]:
    """The losses of runs that are killed after each of `kills` batches or steps, and the first step of each run."""
    lines: list[str] = []
    first: list[int] = []
    for kill in [*kills, None]:
        options = [] if kill is None else ["--kill-after", kill]
        run = finish(example("native", name, *arguments, *options, ranks=ranks), killed=kill is not None, ranks=ranks)
        first.append(min(losses(run)))
        lines += run
    return losses(lines), first


def stock(name: str, folder: Path) -> Path:
    """A copy of an example with torch's loader, which the example's comment "# It was:" contains."""
    lines = (EXAMPLES / f"{name}.py").read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines) if line.strip().startswith("# It was: ")]
    indent = lines[number][: lines[number].index("#")]
    before = lines[number].strip().removeprefix("# It was: ")
    assert "torch.utils.data.DataLoader(" in before and " = headrace.DataLoader(" in lines[number + 1]
    lines[number : number + 2] = [indent + before]
    also = [number for number, line in enumerate(lines) if line.strip().startswith("# Stock torch also needs here: ")]
    for number in also:
        lines[number] = lines[number].replace("# Stock torch also needs here: ", "")
    assert bool(also) == ("DistributedSampler" in before)
    lines.insert(lines.index("import headrace"), "import torch")
    path = folder / f"{name}.py"
    path.write_text("\n".join(lines))
    return path

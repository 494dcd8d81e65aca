"""torchrun with gloo and 2 or 3 ranks: a shared epoch, resume with another number of ranks, the death of a rank."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

import headrace
from support import WATCHDOG_S, blobs, train
from trainers import finish, fork, variables

pytestmark = pytest.mark.processes

COUNT = 45

SCRIPT = f"""
import json, os, signal, sys
import torch, torch.distributed as dist
from headrace import DataLoader
from support import WATCHDOG_S, blobs, train

torch.set_num_threads(1)
out, batch_size, stop, die, state = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
asked = {{"num_workers": 1, "distributed": True}}
before = DataLoader(blobs({COUNT}, train(24)), batch_size, True, **asked)  # torchrun alone tells it the world
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
loader = DataLoader(blobs({COUNT}, train(24)), batch_size, True, **asked)
for one in (before, loader):
    if state:
        one.load_state_dict(torch.load(state, weights_only=True))
seen = []
for step, ((images, labels), again) in enumerate(zip(loader, before, strict=True)):
    assert torch.equal(images, again[0])
    total = images.double().sum()
    if rank == size - 1 and step == die:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(total)  # a training step: all ranks must take it
    seen.append([labels.tolist(), images.double().sum((1, 2, 3)).tolist()])
    if step + 1 == stop:
        break
torch.save(loader.state_dict(), f"{{out}}/state{{rank}}.pt")
with open(f"{{out}}/{{rank}}.json", "w") as file:
    found = [before._own.world.found, loader._own.world.found]
    json.dump({{"rank": loader._own.world.rank, "found": found, "seen": seen}}, file)
dist.destroy_process_group()
"""


def command(out: Path, batch_size: int, stop: int = -1, die: int = -1, state: str = "") -> list[str]:
    out.mkdir()
    script = out / "script.py"
    script.write_text(SCRIPT)
    return [str(script), str(out), str(batch_size), str(stop), str(die), state]


def torchrun(size: int, out: Path, *, batch_size: int, die: int = -1) -> subprocess.Popen:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    return subprocess.Popen(
        [*run, *command(out, batch_size, die=die)],
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen, seconds: float = WATCHDOG_S) -> str:
    try:
        output, _ = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return output


def samples(out: Path, size: int) -> list[list[tuple[int, float]]]:
    """(label, sum of pixels) of all ranks' samples at each step, in sampler order."""
    parts = [json.loads((out / f"{rank}.json").read_text()) for rank in range(size)]
    assert [part["rank"] for part in parts] == list(range(size))
    assert all(part["found"] == ["torchrun", "torch.distributed"] for part in parts)
    steps = zip(*(part["seen"] for part in parts), strict=True)
    return [
        [one for every in zip(*(zip(*seen, strict=True) for seen in step), strict=True) for one in every]
        for step in steps
    ]


def alone(batch_size: int) -> list[list[tuple[int, float]]]:
    loader = headrace.DataLoader(blobs(COUNT, train(24)), batch_size, True, seed=0)
    return [
        list(zip(labels.tolist(), images.double().sum((1, 2, 3)).tolist(), strict=True)) for images, labels in loader
    ]


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_of_torchrun_share_an_epoch(tmp_path: Path, size: int) -> None:
    """The loader gets only `distributed=True`: no seed, sampler or rank."""
    process = torchrun(size, tmp_path / "run", batch_size=12 // size)
    output = finished(process)
    assert process.returncode == 0, output
    made = samples(tmp_path / "run", size)
    expected = alone(12)
    assert [step[: len(known)] for step, known in zip(made, expected, strict=True)] == expected
    counts = Counter(label for step in made for label, _ in step)
    assert len(counts) == COUNT and sum(counts.values()) == -(-COUNT // size) * size


@pytest.mark.parametrize(("then", "now"), [(2, 3), (3, 2)])
def test_resume_with_another_number_of_ranks(tmp_path: Path, then: int, now: int) -> None:
    """Under the server of programs, whose ranks find the variables of torchrun's."""
    finish(fork("torch", *command(tmp_path / "first", 12 // then, stop=2), ranks=then))
    state = str(tmp_path / "first" / "state0.pt")
    finish(fork("torch", *command(tmp_path / "second", 12 // now, state=state), ranks=now))
    made = samples(tmp_path / "first", then) + samples(tmp_path / "second", now)
    expected = alone(12)
    assert [step[: len(known)] for step, known in zip(made, expected, strict=True)] == expected


def test_one_rank_that_dies_ends_the_others_with_a_clear_error(tmp_path: Path) -> None:
    process = torchrun(2, tmp_path / "run", batch_size=6, die=1)
    output = finished(process)
    assert process.returncode != 0
    assert "SIGKILL" in output  # torchrun's message about the rank that died
    assert "Connection closed by peer" in output or "SIGTERM" in output  # gloo's, and torchrun's, for the other
    assert "headrace" not in "\n".join(line for line in output.splitlines() if "Error" in line)


def test_a_world_that_changes_under_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    loader = headrace.DataLoader(blobs(COUNT, train(24)), 4, distributed=True)
    assert (loader._own.world.rank, loader._own.world.size, loader._own.world.found) == (1, 2, "torchrun")
    monkeypatch.setenv("WORLD_SIZE", "3")
    words = "made for rank 1 of 2, but torchrun says rank 1 of 3 now; make a new DataLoader"
    with pytest.raises(RuntimeError, match=words):
        iter(loader)
    whole = headrace.DataLoader(blobs(COUNT, train(24)), 4, world_size=1)
    assert torch.cat([labels for _, labels in whole]).tolist() == list(range(COUNT))

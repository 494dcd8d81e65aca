"""Random programs that use a loader: some of those that `python -m fuzz.programs` runs; it finds what is wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

if importlib.util.find_spec("torchvision") is None:
    pytest.skip("programs use torchvision's datasets", allow_module_level=True)

from fuzz.programs import rules, trial
from fuzz.programs.campaign import Campaign, Job
from fuzz.programs.drawing.generate import program
from fuzz.programs.drawing.parts import Program
from fuzz.programs.observer import described
from fuzz.programs.shrinking import shrunk
from fuzz.programs.world import files

import headrace

PROGRAM = Program(
    seed=0,
    before=("g = torch.Generator().manual_seed(7)",),
    base="datasets.ImageFolder(folder('plain'), transform={transform}, target_transform={target})",
    steps=("V.Resize((8, 8))", "V.ToTensor()"),
    target="",
    wraps=("Subset(data, [3, 1, 4, 1, 5])",),
    arguments=("batch_size=2", "drop_last=True"),
    actions=("see(len(loader))", "see.epoch(loader)", "see(torch.rand(1))"),
)


@pytest.mark.slow
@pytest.mark.processes
def test_a_few_programs(capsys: pytest.CaptureFixture[str]) -> None:
    campaign = Campaign()
    for _ in campaign.run(0, 30, 1, float("inf")):
        pass
    found = [one for one in campaign.found if one["kind"] not in ("loud", "another error")]
    assert not found, capsys.readouterr().out
    assert campaign.programs == 30 and campaign.counts["same"] > 20
    assert min(campaign.routes["native"], campaign.routes["deferred"]) > 2


def test_a_program_is_a_function_of_its_number() -> None:
    assert [program(seed) for seed in range(50)] == [program(seed) for seed in range(50)]
    assert len({program(seed).snippet for seed in range(50)}) == 50


def broken(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> Any:
    """The difference that a loader makes whose attribute was replaced."""
    assert trial.difference(PROGRAM)[0] is None
    monkeypatch.setattr(headrace.DataLoader, name, value)
    found, _ = trial.difference(PROGRAM)
    assert found is not None
    return found


def test_another_value_is_found_and_its_program_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    made = headrace.DataLoader.__iter__

    def other(self: Any) -> Any:
        return ([images, labels + (labels == 1)] for images, labels in made(self))

    found = broken(monkeypatch, "__iter__", other)
    assert found.kind == trial.SILENT and "batch" in found.theirs and found.line == PROGRAM.setup + 1
    small, found = shrunk(PROGRAM, found, lambda: None)
    assert small.actions == ("see.epoch(loader)",) and small.before == small.arguments == ()
    assert found.kind == trial.SILENT


def test_draws_and_errors_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = headrace.DataLoader.__iter__

    def drawing(self: Any) -> Any:
        torch.rand(1)
        return made(self)

    assert "generators" in broken(monkeypatch, "__iter__", drawing).theirs
    monkeypatch.undo()

    def refusing(self: Any) -> Any:
        raise TypeError("not today")

    assert broken(monkeypatch, "__iter__", refusing).kind == trial.LOUD


def test_values_are_told_apart() -> None:
    values = [
        *(1, True, 1.0, "1", b"1", None, (1,), [1], {"a": 1}),
        *(torch.tensor(1), torch.tensor(1, dtype=torch.int32), torch.tensor([1]), torch.tensor(1.0)),
        *(torch.zeros(9), torch.zeros(9) - 0.0, -torch.zeros(9), torch.zeros(9).requires_grad_()),
    ]
    assert len({described(value) for value in values}) == len(values) - 1  # 0.0 - 0.0 is 0.0


def test_documented_differences_are_in_the_documents() -> None:
    for rule in rules.RULES:
        assert rule.sentence in " ".join((trial.REPOSITORY / rule.where).read_text().split()), rule.name


def test_printed_programs_run(tmp_path: Any) -> None:
    path = tmp_path / "printed.py"
    path.write_text(PROGRAM.snippet)
    space: dict[str, Any] = {}
    code = compile(path.read_text(), str(path), "exec")
    exec(code, space)
    assert trial.compare(space["program"]) == "None"


@pytest.mark.processes
def test_stacks_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed about a program that hangs."""
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    files.prepare(tmp_path)
    job = Job(0, 500, "")
    try:
        while not job.begun:
            assert "ended" not in list(job.lines())[-1]
        assert "fuzz/programs/child.py" in job.stacks()
    finally:
        job.kill()

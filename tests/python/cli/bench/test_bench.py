"""``headrace bench``: batches compared first, figures of every round, one sentence for each fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace._cli.bench import comparison, loaders, plot, rounds, sample_choice
from headrace._cli.bench.equality import DifferentError, check_equal_batches, describe_difference
from headrace._cli.main import main
from support import WATCHDOG_S, blobs, evaluation, heed_ctrl_c, pictures, train, truncated, write_folder

QUICK = ["--rounds", "2", "--seconds", "0.01", "--samples", "24", "--batch-size", "4"]
QUICK += ["--recipe", "Compose([Resize(24), CenterCrop(16), ToTensor()])"]

pytestmark = pytest.mark.processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "data", 24)


@pytest.fixture
def torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves torchdata out, whose processes cost time."""
    monkeypatch.setattr(
        comparison, "list_contenders", lambda: {"torch": torch.utils.data.DataLoader, "headrace": DataLoader}
    )


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Asserts that exactly one sentence was printed, and returns it."""
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err


def test_the_table_and_the_files_say_the_same(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], torch_alone: None
) -> None:
    files = [tmp_path / name for name in ("b.json", "b.md", "b.png")]
    options = [
        part for name, path in zip(("json", "markdown", "png"), files, strict=True) for part in (f"--{name}", str(path))
    ]
    pytest.importorskip("matplotlib")
    assert main(["bench", str(folder), *QUICK, "--workers", "1", "2", *options]) == 0
    out = capsys.readouterr().out
    assert "0 differ" in out and "all values of 4 batches of torch's loader are equal" in out.replace("\n", " ")
    lines = out.splitlines()
    names = {line.split()[0] for line in lines if line.split()[1:2] in (["1"], ["2"])}
    assert names == {"torch", "headrace"}
    assert max(len(line) for line in lines if str(folder) not in line) <= 80
    held = json.loads(files[0].read_text())
    assert held["samples"] == held["timed"] == 24 and held["rounds"] == 2 and not held["interrupted"]
    assert [(one["loader"], one["workers"]) for one in held["figures"]] == [
        (name, count) for count in (1, 2) for name in ("torch", "headrace")
    ]
    for one in held["figures"]:
        assert len(one["samples_per_s"]) == 2 and one["min"] <= one["median"] <= one["max"]
        assert f"{one['median']:,.0f}" in out
        assert f"| {one['loader']} | {one['workers']} | {one['median']:,.0f} |" in files[1].read_text()
    ratio = held["figures"][1]["times_torch"]
    assert held["figures"][0]["times_torch"] == 1.0 and f"{ratio:.2f}" in out
    assert files[2].read_bytes()[:4] == b"\x89PNG"


def test_all_installed_loaders_are_compared() -> None:
    found = loaders.list_contenders()
    first, *_, last = found
    assert (first, last) == ("torch", "headrace")
    pytest.importorskip("torchdata", reason="torchdata is not installed")
    assert "torchdata" in found


def test_broken_samples_are_left_out_and_named(
    folder: Path, capsys: pytest.CaptureFixture[str], torch_alone: None
) -> None:
    (folder / "class_0" / "zz.jpg").write_bytes(truncated(pictures()[0]))
    assert main(["bench", str(folder), *QUICK, "--samples", "25", "--workers", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "24 of 25 samples" in out
    assert "1 sample that cannot be decoded is left out: " in out and "zz.jpg: image file is truncated" in out


def test_a_dataset_of_broken_files_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "class").mkdir()
    for i in range(3):
        (tmp_path / "class" / f"{i}.jpg").write_bytes(truncated(pictures()[0]))
    assert main(["bench", str(tmp_path), *QUICK]) == 1
    assert "none of the 3 samples can be decoded; the first: " in said(capsys)


def test_unusable_arguments_are_one_sentence_each(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, message in (
        (["--json", str(tmp_path / "no" / "file.json")], "file.json cannot be written: No such file or directory"),
        (["--json", str(tmp_path)], "cannot be written: Is a directory"),
        (["--recipe", "Nonsense()"], "--recipe Nonsense() raises NameError"),
        (["--recipe", "5"], "--recipe 5 is no transform but int"),
        (["--recipe", "own"], "the dataset has no transforms of its own"),
        (["--recipe", "no_such_module:train"], "there is no module no_such_module"),
    ):
        assert main(["bench", str(folder), *arguments]) == 2
        assert message in said(capsys)
    assert main(["bench", str(tmp_path / "missing")]) == 2
    assert "missing does not exist" in said(capsys)
    assert main(["bench", "no_such_module:made"]) == 2
    assert "there is no module no_such_module" in said(capsys)
    monkeypatch.setattr(plot, "has_matplotlib", lambda: False)
    assert main(["bench", str(folder), "--png", str(tmp_path / "a.png")]) == 2
    assert said(capsys) == "headrace bench: --png needs matplotlib: pip install matplotlib\n"
    assert not (tmp_path / "a.png").exists()


def test_what_differs_is_not_timed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        comparison, "check_equal_batches", lambda *_: (_ for _ in ()).throw(DifferentError("batch 0: 5 values differ"))
    )
    assert main(["bench", str(folder), *QUICK]) == 1
    assert said(capsys) == "headrace bench: batch 0: 5 values differ\n"


class Wrong(DataLoader):
    """A loader whose second batch has a wrong value."""

    def __iter__(self) -> Any:
        for number, (images, labels) in enumerate(super().__iter__()):
            if number == 1:
                images[0, 0, 0, 0] += 1
            yield [images, labels]


def test_the_check_finds_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._cli.bench import equality

    assert "all values of 2 batches" in check_equal_batches(blobs(transform=evaluation(32, 24)), 8, 1, 2)
    assert "labels, shapes and dtypes of 2 batches" in check_equal_batches(blobs(transform=train(24)), 8, 1, 2)
    monkeypatch.setattr(equality, "DataLoader", Wrong)
    with pytest.raises(DifferentError, match="batch 1, part 0: 1 of 13824 values differ"):
        check_equal_batches(blobs(transform=evaluation(32, 24)), 8, 1, 2)


class Own(torch.utils.data.Dataset[Any]):
    """A dataset that headrace does not know: torch delivers."""

    def __init__(self) -> None:
        self.blobs = EncodedImages(pictures(8), list(range(8)), train(16))

    def __len__(self) -> int:
        return len(self.blobs)

    def __getitem__(self, index: int) -> Any:
        return self.blobs[index]


def test_what_torch_delivers_is_compared_under_the_same_seeds() -> None:
    assert (
        check_equal_batches(Own(), 4, 1, 2)
        == "2 batches of headrace (delivered by torch) equal torch's under the same seeds"
    )


def test_differences_name_their_place() -> None:
    a = {"x": torch.zeros(2, 3), "y": [1, "a", 0.5]}
    assert describe_difference(a, {"x": torch.zeros(2, 3), "y": [1, "a", 0.5]}, "b") is None
    assert describe_difference(a, {**a, "x": torch.ones(2, 3)}, "b") == "b, 'x': 6 of 6 values differ"
    assert describe_difference(a, {**a, "x": torch.ones(2, 3)}, "b", values=False) is None
    assert describe_difference(a, {**a, "x": torch.zeros(2, 4)}, "b", values=False) is not None
    assert describe_difference(a, {**a, "y": [1, "b", 0.5]}, "b", values=False) == "b, 'y', part 1: 'b' against 'a'"
    assert describe_difference(a, {**a, "y": [1, "a"]}, "b") == "b, 'y': 2 parts against 3"
    assert describe_difference(a, {"x": a["x"]}, "b") == "b: keys ['x'] against ['x', 'y']"
    assert describe_difference(torch.zeros(2), torch.zeros(2, dtype=torch.int64), "b") is not None


def test_an_interrupt_keeps_what_was_measured(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, torch_alone: None
) -> None:
    measured = rounds.Rounds._speed
    calls = 0

    def interrupted(self: rounds.Rounds, loader: Any, seconds: float) -> float:
        nonlocal calls
        calls += 1
        if calls == 5:  # two of the first epochs, and one round
            raise KeyboardInterrupt
        return measured(self, loader, seconds)

    monkeypatch.setattr(rounds.Rounds, "_speed", interrupted)
    out = tmp_path / "b.json"
    assert main(["bench", str(folder), *QUICK, "--workers", "1", "--json", str(out)]) == 130
    assert "interrupted: partial results" in " ".join(capsys.readouterr().out.split())
    held = json.loads(out.read_text())
    assert held["interrupted"] and [len(one["samples_per_s"]) for one in held["figures"]] == [1, 1]
    calls = 4
    assert main(["bench", str(folder), *QUICK, "--workers", "1"]) == 130
    assert "interrupted before the first round" in said(capsys)


INTERRUPTED = """
import os, signal, sys
from headrace._cli.main import main
from headrace._cli.bench import comparison
from headrace._cli.bench.rounds import Rounds
from torch.utils.data import DataLoader
import headrace
comparison.contenders = lambda: {"torch": DataLoader, "headrace": headrace.DataLoader}
calls, measured = [], Rounds._speed
def interrupting(self, loader, seconds):
    calls.append(type(loader))
    if len(calls) > 5 and calls[-1] is DataLoader:
        os.killpg(0, signal.SIGINT)
    return measured(self, loader, seconds)
Rounds._speed = interrupting
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_ctrl_c_in_a_terminal(folder: Path, tmp_path: Path) -> None:
    """The signal reaches the whole group: this process, and torch's workers."""
    out = tmp_path / "b.json"
    options = ["bench", str(folder), *QUICK, "--rounds", "100", "--workers", "1", "--json", str(out)]
    line = [sys.executable, "-c", INTERRUPTED, *options]
    done = subprocess.run(
        line, capture_output=True, text=True, start_new_session=True, timeout=WATCHDOG_S, preexec_fn=heed_ctrl_c
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "partial results" in " ".join(done.stdout.split())
    assert json.loads(out.read_text())["interrupted"]


def test_a_loader_that_fails_is_left_out_with_its_reason(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_workers(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no processes\nunable to open shared memory")

    monkeypatch.setattr(comparison, "list_contenders", lambda: {"torch": no_workers, "headrace": DataLoader})
    assert main(["bench", str(folder), *QUICK, "--workers", "1"]) == 0
    assert "torch is left out: unable to open shared memory" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(comparison, "list_contenders", lambda: {"headrace": no_workers})
    assert main(["bench", str(folder), *QUICK, "--workers", "1"]) == 1
    assert "headrace's loader failed: unable to open shared memory" in said(capsys)


def test_one_core_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, torch_alone: None
) -> None:
    monkeypatch.setattr(comparison, "usable_cores", lambda: 1)
    assert main(["bench", str(folder), *QUICK]) == 0
    assert "This process may use one core" in capsys.readouterr().out


def test_the_samples_of_an_epoch() -> None:
    assert sample_choice.number_of_samples(100.0, 2, 2.0, 32) == 384  # 12 batches, of 400 samples
    assert sample_choice.number_of_samples(1.0, 1, 1.0, 32) == 256  # 8 batches at least
    dataset = blobs(24)
    assert sample_choice.choose_samples(dataset, 24) is dataset
    assert len(sample_choice.choose_samples(dataset, 10)) == 10
    assert sample_choice.choose_samples(dataset, 10).indices == sample_choice.choose_samples(dataset, 10).indices
    assert sample_choice.measure_python_speed(dataset) > 0


def test_an_empty_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nothing_benched.py").write_text("from headrace import EncodedImages\nmade = EncodedImages([])\n")
    assert main(["bench", "nothing_benched:made"]) == 1
    assert said(capsys) == "headrace bench: the dataset is empty\n"


@pytest.mark.parametrize("name", ["bench", "report"])
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: headrace {name}" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "long"])
def test_a_number_of_seconds(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "x", f"--seconds={seconds}"])
    assert f"argument --seconds: {seconds} is not a number of seconds above 0" in capsys.readouterr().err

"""``headrace tune``: the settings that are tried, which one is taken, the table and the file, one sentence a fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace._cli.main import main
from headrace._cli.tune.measurement import Point, Sweep
from headrace._loading.autotune.budget import Budget
from headrace._loading.autotune.tuner import Choice
from support import blobs, truncated, write_folder

QUICK = ["--seconds", "1", "--batch-size", "4", "--recipe", "Compose([Resize(24), CenterCrop(16), ToTensor()])"]


class Known(Sweep):
    """A sweep whose speeds are known."""

    speeds: dict[Choice, float]

    def _measure(self, choice: Choice, seconds: float) -> float:
        point = self.points.setdefault(choice, Point(choice))
        point.speeds.append(self.speeds.get(choice, 100.0))
        point.advised = [Choice(8, 2)] if choice == Choice(2, 2) else []
        return point.speeds[-1]


def test_the_verdicts_advice_and_the_neighbours_of_the_best_are_tried() -> None:
    sweep = Known(blobs(8), 4, Budget(2.0, 2**30), 0.0)
    sweep.speeds = {Choice(2, 2): 100.0, Choice(8, 2): 300.0}
    sweep._measure(Choice(2, 2), 0.0)
    assert next(sweep._suggest_choices()) == Choice(8, 2)
    sweep._measure(Choice(8, 2), 0.0)
    assert list(sweep._suggest_choices()) == [Choice(9, 2), Choice(7, 2), Choice(16, 2), Choice(8, 4), Choice(4, 2)]


def test_memory_and_threads_bound_what_is_tried() -> None:
    sweep = Known(blobs(8), 4, Budget(1.0, 400), 0.0)
    sweep.speeds = {}
    sweep._measure(Choice(1, 2), 0.0)
    sweep.points[Choice(1, 2)].batch_bytes = 100
    assert list(sweep._suggest_choices()) == [Choice(2, 2), Choice(2, 2)]  # not (0, 2), and not (1, 4)


def test_of_settings_that_are_as_fast_the_smallest_is_taken() -> None:
    sweep = Known(blobs(8), 4, Budget(2.0, 2**30), 10.0)
    sweep.speeds = {Choice(2, 2): 101.0, Choice(3, 2): 103.0, Choice(1, 2): 60.0, Choice(8, 2): 90.0}
    sweep.run()
    assert sweep.chosen is not None and sweep.chosen.choice == Choice(2, 2)


def test_no_batch_ends_the_sweep_without_a_recommendation() -> None:
    sweep = Known(blobs(8), 4, Budget(2.0, 2**30), 0.0)
    sweep.speeds = dict.fromkeys((Choice(threads, depth) for threads in range(20) for depth in (1, 2, 4)), 0.0)
    sweep.run()
    assert sweep.chosen is None and sweep.points


def test_the_table_the_line_to_paste_and_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, held = write_folder(tmp_path / "data", 24), tmp_path / "tune.json"
    assert main(["tune", str(folder), *QUICK, "--cores", "2", "--memory", "64MiB", "--json", str(held)]) == 0
    out = capsys.readouterr().out
    found: dict[str, Any] = json.loads(held.read_text())
    assert (found["cores"], found["memory"]) == (2.0, 64 * 2**20)
    assert len(found["figures"]) == sum(line.lstrip()[:1].isdigit() for line in out.splitlines()) >= 3
    for one in found["figures"]:
        assert one["median"] > 0
        assert f"{one['median']:,.1f}" in out
    if found["num_workers"] is None:  # the machine is busy
        assert "No setting is recommended" in out and "<- take this" not in out
    else:
        line = f"DataLoader(dataset, batch_size=4, num_workers={found['num_workers']}, prefetch_factor="
        assert line + str(found["prefetch_factor"]) in out and out.count("<- take this") == 1


def test_a_busy_machine_gets_no_recommendation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (99.0, 99.0, 99.0))
    assert main(["tune", str(write_folder(tmp_path / "data", 24)), *QUICK]) == 0
    out = capsys.readouterr().out
    assert "This machine is busy (load 99.0" in out and 'write num_workers="auto"' in out.replace("\n", " ")
    assert "<- take this" not in out and "num_workers=1," not in out


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_faults_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "data", 6)
    assert main(["tune", str(tmp_path / "none"), *QUICK]) == 2
    assert "none" in said(capsys)
    assert main(["tune", str(folder), *QUICK, "--json", str(tmp_path / "no" / "x.json")]) == 2
    assert "cannot be written" in said(capsys)
    for path in folder.rglob("*.jpg"):
        path.write_bytes(truncated(path.read_bytes()))
    assert main(["tune", str(folder), *QUICK]) == 1
    assert "a batch cannot be made" in said(capsys)
    with pytest.raises(SystemExit):
        main(["tune", str(folder), "--cores", "0"])
    assert "0 is not a number of cores above 0" in capsys.readouterr().err


def test_an_interrupt_keeps_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "data", 24)
    measure = Sweep._measure

    def second_time(self: Sweep, choice: Choice, seconds: float) -> float:
        if self.points:
            raise KeyboardInterrupt
        return measure(self, choice, seconds)

    monkeypatch.setattr(Sweep, "_measure", second_time)
    assert main(["tune", str(folder), *QUICK, "--seconds", "9"]) == 130
    out = capsys.readouterr().out
    assert "No setting is recommended" in out and "num_workers  prefetch_factor" in out

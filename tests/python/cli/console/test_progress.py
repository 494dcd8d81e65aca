"""Progress: a bar on a terminal, and otherwise a plain line now and then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from headrace._cli.console import progress
from headrace._cli.console.progress import Progress, SpacedLines
from headrace._cli.main import main
from support import WATCHDOG_S, write_folder


class Clock:
    """A time that passes when a test says so."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def test_a_line_every_ten_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("verify", 1215, "file") as shown:
        for _ in range(50):  # 50 seconds, a second for each step
            clock.now += 1
            shown.update(24)
    assert capsys.readouterr().err.splitlines() == [
        f"verify: {done:,} of 1,215 files" for done in (240, 480, 720, 960, 1200)
    ]


def test_what_ends_early_prints_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("verify", 3, "file") as shown:
        clock.now += 9
        shown.update(3)
    assert capsys.readouterr() == ("", "")


def test_labels_and_earlier_work(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("bench", 10, "run", label="first epochs", done=4) as shown:
        shown.describe("round 1")
        clock.now += 11
        shown.update()
    assert capsys.readouterr().err == "bench: 5 of 10 runs (round 1)\n"
    with Progress("bench", 10, "run", shown=False) as shown:
        clock.now += 11
        shown.update()
    assert capsys.readouterr().err == ""


def test_settings_of_tune(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    lines = SpacedLines()
    for number in range(6):
        clock.now += 5
        lines.say(f"tune: {number}")
    assert capsys.readouterr().err.splitlines() == ["tune: 1", "tune: 3", "tune: 5"]


def test_without_a_standard_error(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("verify", 3, "file") as shown:
        clock.now += 11
        shown.update(3)
    SpacedLines().say("text")


def test_a_terminal_has_a_bar_and_no_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("verify", 100, "file", label="train") as shown:
        clock.now += 11
        shown.update(50)
        shown.describe("eval")
    assert "train:   0%" in screen.getvalue() and "verify:" not in screen.getvalue()


@pytest.mark.parametrize(
    "arguments, line",
    [
        (["doctor", "DATA"], r"doctor: [\d,]+ of 24 files \(scan\)"),
        (["verify", "DATA", "--recipe", "eval"], r"verify: [\d,]+ of 24 files \(eval\)"),
        (["pack", "DATA", "PACK", "--workers", "1"], r"pack: [\d,]+ of 24 samples"),
        (["bench", "DATA", "--seconds", "0.01", "--rounds", "1", "--workers", "1"], r"bench: 1 of \d+ runs"),
    ],
)
def test_commands_say_how_far_they_are(
    arguments: list[str],
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    names = {"DATA": str(write_folder(tmp_path / "data", 24)), "PACK": str(tmp_path / "pack")}
    assert main([names.get(one, one) for one in arguments]) in (0, 1)
    assert re.search(f"^{line}", capsys.readouterr().err, re.MULTILINE)


def test_index_and_packs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    source, pack = str(write_folder(tmp_path / "data", 24)), tmp_path / "pack"
    assert main(["pack", source, str(pack), "--copy", "--shard-size", "25KB", "--workers", "1"]) == 0
    assert main(["verify", str(pack), source, "--workers", "1"]) == 0
    assert "\nverify: 24 of 24 samples\n" in capsys.readouterr().err
    (pack / "pack.json").unlink()
    shards = len([*pack.glob("*.tar")])
    assert main(["index", str(pack)]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"index: {shards} of {shards} shards"


@pytest.mark.processes
def test_a_bar_stays_on_the_terminal_while_libtiff_is_counted(tmp_path: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    root = write_folder(tmp_path / "data", 24)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "headrace", "doctor", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while data := os.read(ours, 4096):
            seen += data
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    assert process.wait(WATCHDOG_S) in (0, 1)
    assert b"scan:" in seen and b"0/24" in seen

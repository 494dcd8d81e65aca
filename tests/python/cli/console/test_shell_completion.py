"""The help, its examples, and the scripts that complete commands in a shell."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headrace._base.messages import install_command
from headrace._cli.console.shell_completion import SHELLS
from headrace._cli.main import main, parser
from support import WATCHDOG_S

COMMANDS = ("demo", "verify", "doctor", "bench", "tune", "report", "top", "pack", "index")


def test_a_bare_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    captured = capsys.readouterr()
    assert captured.err == "" and captured.out == parser().format_help()
    for command in COMMANDS:
        assert re.search(rf"^    {command} ", captured.out, re.MULTILINE)


def examples_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    ending = re.search(r"\nexamples?:\n((?:  .+\n)+)\Z", capsys.readouterr().out)
    assert ending is not None
    return [line.strip() for line in ending[1].splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_ends_with_examples_that_parse(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = examples_of(command, capsys)
    assert 1 <= len(found) <= 3
    for line in found:
        program, *arguments = shlex.split(line.partition(" | ")[0])
        assert program == "headrace" and arguments[0] == command
        assert isinstance(parser().parse_args(arguments), argparse.Namespace)
        assert len(line) <= 78


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_all_commands(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab", reason="shtab, an optional package, makes the scripts")
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", shell])
    script = capsys.readouterr().out
    assert end.value.code == 0
    for word in (*COMMANDS, "--bad"):
        assert word in script
    if shell == "bash":
        assert "_shtab_headrace_doctor_pos_0_COMPGEN=_shtab_compgen_files" in script
        assert "_shtab_headrace_demo___out_COMPGEN=_shtab_compgen_dirs" in script
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=WATCHDOG_S)


def test_without_shtab_one_sentence_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", "bash"])
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    remedy = install_command("completion", "shtab")
    said = f"headrace: --print-completion needs shtab, which is not installed: {remedy}\n"
    assert captured.err == said


def test_another_shell_is_a_usage_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", "cmd"])
    assert end.value.code == 2 and "invalid choice: 'cmd'" in capsys.readouterr().err

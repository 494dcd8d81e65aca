"""The command line: exit statuses, messages, and no tracebacks for wrong settings."""

from __future__ import annotations

import os
import subprocess
import sys

import PIL
import pytest
import torch
from PIL import features

import headrace
from headrace._base import control_group
from headrace._cli.main import main
from headrace._recipe.arithmetic import pillow_rule
from support import WATCHDOG_S

pytestmark = pytest.mark.processes


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments in another process."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        env={**os.environ, **environment},
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"headrace {headrace.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["verify"], ["verify", "x", "--recipe", "y"], ["verify", "x", "--limit", "0"]]
)
def test_wrong_arguments_are_a_usage_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: headrace" in capsys.readouterr().err


def test_an_unknown_option_shows_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tune", "--batchsize", "4", "train"])
    said = capsys.readouterr().err
    assert said.startswith("usage: headrace tune ") and "headrace tune: error: unrecognized arguments" in said
    assert said.endswith("did you mean --batch-size?\n")
    with pytest.raises(SystemExit, match="2"):
        main(["--bad-option"])
    assert capsys.readouterr().err.startswith("usage: headrace [-h]")


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_a_count_is_a_whole_number_from_1_up(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["verify", "x", f"--workers={number}"])
    assert f"argument --workers: {number} is not a whole number from 1 up" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["demo", "verify", "doctor", "bench", "tune", "report", "top", "pack", "index"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"usage: headrace {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["verify", "--help"], ["pack", "--help"]])
def test_what_only_prints_needs_no_torch(arguments: list[str]) -> None:
    code = f"""
import sys
from headrace._cli.main import main
try:
    main({arguments!r})
finally:
    print([name for name in ("torch", "numpy", "PIL", "headrace._core") if name in sys.modules])
"""
    done = command("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_runs_as_a_module() -> None:
    done = command("-m", "headrace", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"headrace {headrace.__version__}\n", "")


@pytest.mark.parametrize("arguments", [["verify", "."], ["doctor"], ["demo", "--quick"]])
def test_a_wrong_setting_is_one_sentence(arguments: list[str]) -> None:
    done = command("-m", "headrace", *arguments, HEADRACE_ISA="nonsense")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("headrace: HEADRACE_ISA=nonsense: ")
    assert done.stderr.endswith("use scalar, avx2, avx512 or neon, or unset it\n")
    assert done.stderr.count("\n") == 1


def test_a_wrong_setting_is_a_value_error_at_import() -> None:
    done = command("-c", "from headrace import ImageFolder", HEADRACE_ISA="nonsense")
    assert done.returncode == 1
    said = "HEADRACE_ISA=nonsense: this processor or build lacks it; use scalar, avx2, avx512 or neon, or unset it"
    assert done.stderr.splitlines()[-1] == f"ValueError: {said}"
    assert "RuntimeError" not in done.stderr


def test_a_native_module_that_does_not_load_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; sys.modules['headrace._core'] = None; "
    code += "from headrace._cli.main import main; sys.exit(main(['doctor']))"
    done = command("-c", code)
    assert done.returncode == 1
    assert done.stderr.startswith("headrace: headrace's native module does not load")
    assert done.stderr.count("\n") == 1


def test_doctor_finds_nothing_wrong_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for subject in (
        "headrace",
        "torch",
        "Pillow",
        "libjpeg-turbo",
        "resize",
        "decode",
        "kernels",
        "cores",
        "huge pages",
    ):
        assert any(line[6:].startswith(subject) for line in out.splitlines()), subject
    assert out.endswith("Nothing is wrong.\n")


def test_doctor_says_what_to_do(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "check_feature", lambda name: False)
    monkeypatch.setattr(
        pillow_rule, "probe_pass_order", lambda: pillow_rule.ProbeReport("99.0", "by_reduction", (), 8, 0.01)
    )
    monkeypatch.setattr(control_group, "cpu_quota", lambda: 0.5)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "wrong libjpeg-turbo" in out
    assert "-> pip install --force-reinstall Pillow" in out
    assert "wrong resize" in out
    assert "note  cores" in out
    assert "-> num_workers=1 is enough" in out
    assert "2 of 18 checks failed." in out


def test_doctor_judges_an_old_pillow_by_its_pixels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = "9.5.0"
    report = pillow_rule.ProbeReport(version, "horizontal_first", ("horizontal_first",), 8, 0.01)
    monkeypatch.setattr(PIL, "__version__", version)
    monkeypatch.setattr(pillow_rule, "probe_pass_order", lambda: report)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"note  Pillow          {version} is older than 10") for line in lines)
    assert any(
        line.startswith(f"ok    resize          the horizontal pass first, as Pillow {version}") for line in lines
    )
    assert lines[-1] == "Nothing is wrong."


def test_doctor_names_a_torch_that_is_too_old(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch, "accelerator")
    assert main(["doctor"]) == 1
    assert f"wrong torch           {torch.__version__} is older than 2.6" in capsys.readouterr().out


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    line = f"{sys.executable} -m headrace doctor | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=WATCHDOG_S)
    assert done.stderr == ""

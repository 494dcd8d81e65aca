"""The command line: exit statuses, what is said, and what is never a traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import features

import headrace
from headrace import DataLoader, VerificationError, pillow_rule
from headrace.cli import main
from headrace.commands import doctor
from support import PHOTOS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six photographs in two sub-folders."""
    for i, path in enumerate(sorted(PHOTOS.glob("*.jpg"))[:6]):
        target = tmp_path / f"class{i % 2}"
        target.mkdir(exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"headrace {headrace.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["verify"], ["verify", "x", "--recipe", "y"], ["verify", "x", "--limit", "0"]]
)
def test_wrong_arguments_are_a_usage_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: headrace" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["demo", "verify", "doctor"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"usage: headrace {command}" in capsys.readouterr().out


def test_verify_says_what_it_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder)]) == 0
    size = 6 * 3 * 224 * 224 * 4
    said = f"6 images, {size:,} bytes compared with Pillow and torch: 0 differ"
    assert capsys.readouterr().out.splitlines() == [f"train: {said}", f"eval: {said}"]


def test_verify_takes_one_recipe_and_a_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder), "--recipe", "eval", "--limit", "2", "--workers", "1"]) == 0
    assert capsys.readouterr().out.startswith("eval: 2 images")


def test_verify_names_files_that_nobody_can_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = next((folder / "class0").iterdir()).read_bytes()
    (folder / "class0" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "class1" / "empty.png").touch()
    assert main(["verify", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "train: 6 images" in out
    assert "2 files cannot be read" in out
    assert "cut.jpg: image file is truncated" in out
    assert "empty.png: cannot identify image file" in out


def test_verify_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        assert main(["verify", str(path)]) == 2
        assert capsys.readouterr().err == f"headrace verify: no images below {path}\n"


def test_verify_of_a_difference(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def differ(self: DataLoader, n: int = 4) -> None:
        raise VerificationError("batch 0: sample 3 differs")

    monkeypatch.setattr(DataLoader, "verify", differ)
    assert main(["verify", str(folder)]) == 1
    assert capsys.readouterr().out == "train: differs: batch 0: sample 3 differs\n"


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
    monkeypatch.setattr(pillow_rule, "probe", lambda: pillow_rule.ProbeReport("99.0", "by_reduction", (), 8, 0.01))
    monkeypatch.setattr(doctor, "_cpu_quota", lambda: 0.5)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "wrong libjpeg-turbo" in out
    assert "-> pip install --force-reinstall Pillow" in out
    assert "wrong resize" in out
    assert "note  cores" in out
    assert "-> num_workers=1 is enough" in out
    assert "2 of 12 checks failed." in out


def test_doctor_outlives_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_ISA", "nonsense")
    done = subprocess.run([sys.executable, "-m", "headrace.cli", "doctor"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "wrong kernels" in done.stdout
    assert "-> unset HEADRACE_ISA" in done.stdout
    assert done.stderr == ""


def test_a_reader_who_leaves_early_gets_no_traceback() -> None:
    command = f"{sys.executable} -m headrace.cli doctor | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""

"""The examples run as their first lines say, and resuming one changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headrace.demo.folder import lay_out

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(*arguments: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_training_resumes_with_the_very_next_batch(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "set", files=50).train
    script = [EXAMPLES / "train.py", folder, "--epochs", 2, "--checkpoint"]
    whole = run(*script, tmp_path / "whole.pt")
    assert len(whole) == 2 and whole[1].startswith("epoch 1: loss ")
    first = run(*script, tmp_path / "parts.pt", "--stop-after", 7)
    assert first[-1].startswith("left in epoch ")
    second = run(*script, tmp_path / "parts.pt")
    assert second[0].startswith("resumed in epoch ")
    assert second[-1] == whole[-1]

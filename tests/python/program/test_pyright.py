"""pyright accepts the snippets of README.md and of the pages, as editors with Pylance do; mypy checks the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import SNIPPETS

from support import WATCHDOG_S

pytest.importorskip("pyright", reason="pyright is not installed")
PACKAGES = Path(__file__).resolve().parents[3] / "python"
# Values that a loop's body binds are flagged where the loop might not run; datasets may be lists, as with torch.
LENIENT = {"reportPossiblyUnboundVariable": False, "reportMissingModuleSource": False}


def findings(folder: Path, mode: str) -> list[str]:
    """The errors of the Python files in a folder."""
    config = {"extraPaths": [str(PACKAGES)], "typeCheckingMode": mode, **LENIENT}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not start here: {done.stderr.strip()[-200:]}")
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] > 0
    return [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in said["generalDiagnostics"]
        if one["severity"] == "error"
    ]


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize(("mode", "only"), [("strict", "README.md"), ("standard", None)])
def test_snippets_are_accepted(mode: str, only: str | None, tmp_path: Path) -> None:
    for number, (page, snippet) in enumerate(SNIPPETS):
        if only in (None, page):
            (tmp_path / f"{page.removesuffix('.md').replace('-', '_')}_{number}.py").write_text(snippet)
    assert findings(tmp_path, mode) == []


@pytest.mark.slow
@pytest.mark.processes
def test_an_error_is_found(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("from headrace import DataLoader\n\nDataLoader([1, 2], batch_sise=3).verify()\n")
    assert any("batch_sise" in one for one in findings(tmp_path, "standard"))

"""``--json`` and ``--bad``: one document or one list on the standard output, and everything else on the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import DataLoader, VerificationError
from headrace._cli.console.results import STDOUT, describe_broken_files, write_bad
from headrace._cli.main import main
from support import WATCHDOG_S, pictures, truncated, write_folder

DOCS = (Path(__file__).resolve().parents[4] / "docs/command-line.md").read_text()
SMALL = "Compose([Resize(24), CenterCrop(16), ToTensor()])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve images in class folders, and a broken one."""
    root = write_folder(tmp_path / "data", 12)
    (root / "class_0" / "cut in two.jpg").write_bytes(truncated(pictures()[0]))
    return root


def document(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> dict[str, Any]:
    """What a command prints as JSON; its text is on the standard error."""
    assert main([str(one) for one in arguments]) == status
    captured = capsys.readouterr()
    assert captured.err
    found: dict[str, Any] = json.loads(captured.out)
    assert all(f"`{key}`" in DOCS for key in found)
    return found


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "doctor", "--json")
    assert found["failed"] == 0
    assert {tuple(one) for one in found["checks"]} == {("level", "subject", "text", "remedy", "means")}
    assert any(one["subject"] == "Pillow" for one in found["checks"])


def test_doctor_of_a_dataset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "doctor", folder, "--json", status=1)
    assert (found["dataset"], found["samples"], found["scanned"]) == (str(folder), 13, 13)
    assert [Path(one["path"]).name for one in found["broken"]] == ["cut in two.jpg"]
    assert "truncated" in found["broken"][0]["reason"]
    assert sum(found["formats"].values()) == 13 and set(found["quantiles"]) == {"width", "height", "pixels", "bytes"}
    assert set(found["quantiles"]["width"]) == {"0%", "5%", "50%", "95%", "100%"}
    assert found["libtiff_lines"] == 0 and found["interrupted"] is False and found["recommendations"]


def test_verify(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = document(capsys, "verify", folder, "--recipe", "eval", "--json", status=1)
    assert found["files"] == 13
    images = found["recipes"][0]["images"]
    assert images == 12 and found["recipes"] == [
        {"recipe": "eval", "images": 12, "bytes": 12 * 3 * 224 * 224 * 4, "difference": None}
    ]
    assert [Path(one["path"]).name for one in found["unreadable"]] == ["cut in two.jpg"]

    def differ(self: DataLoader, n: int = 4) -> None:
        raise VerificationError("batch 0: sample 3 differs")

    monkeypatch.setattr(DataLoader, "verify", differ)
    found = document(capsys, "verify", folder, "--json", status=1)
    assert [one["difference"] for one in found["recipes"]] == ["batch 0: sample 3 differs"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_packs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, pack = write_folder(tmp_path / "data", 24), tmp_path / "pack"
    half = ("pack", source, pack, "--shard-size", "25KB", "--workers", 1, "--json", "--shard")
    found = document(capsys, *half, "1/2")
    assert found["missing"] and len(found["missing"]) + found["written"] == found["shards"]
    joined = document(capsys, "index", pack, "--json", status=1)
    assert (joined["samples"], joined["missing"], joined["path"]) == (24, found["missing"], str(pack))
    document(capsys, *half, "2/2")
    assert document(capsys, "index", pack, "--json")["missing"] == []
    found = document(capsys, "verify", pack, source, "--workers", 1, "--json")
    assert (found["samples"], found["difference"]) == (24, None)
    one = tmp_path / "all.npz"
    assert document(capsys, "index", pack, "--out", one, "--json")["path"] == str(one)
    shard = pack / "shard-000000.tar"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    found = document(capsys, "verify", pack, source, "--json", status=1)
    assert found["samples"] is None and "damaged" in found["difference"]


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, page = write_folder(tmp_path / "data", 12), tmp_path / "page.html"
    found = document(capsys, "report", root, "-o", page, "--recipe", SMALL, "--batch-size", 4, "--workers", 1, "--json")
    assert (found["page"], found["unit"]) == (str(page), "samples")
    assert found["delivered"] == 4 * found["batches"] and found["batches"] % 3 == 0  # of whole epochs
    assert found["verdict"] and page.exists()


def test_bench_and_tune_write_to_the_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_folder(tmp_path / "data", 12)
    options = ("--batch-size", 4, "--recipe", SMALL, "--json", "-")
    found = document(capsys, "tune", root, "--seconds", 1, *options)
    assert found["figures"][0]["num_workers"] >= 1 and found["busy"] in (False, True)
    found = document(capsys, "bench", root, "--seconds", 0.01, "--rounds", 1, "--workers", 1, *options)
    assert "headrace" in {one["loader"] for one in found["figures"]}
    assert not Path("-").exists()


@pytest.mark.parametrize("command", ["doctor", "verify", "index", "report"])
def test_a_fault_prints_no_document(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "missing"), "--json"]) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1


def test_what_a_dataset_prints_is_not_in_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    root = write_folder(tmp_path / "data", 4)
    (tmp_path / "talkative_data.py").write_text(
        f"from headrace import ImageFolder\nprint('hello')\ndef made():\n    return ImageFolder({str(root)!r})\n"
    )
    assert document(capsys, "doctor", "talkative_data:made", "--json")["samples"] == 4


@pytest.mark.parametrize("command", ["doctor", "verify"])
def test_bad_files_are_written_one_a_line(
    command: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = os.fsencode(folder / "class_0") + b"/caf\xe9.jpg"
    Path(os.fsdecode(name)).write_bytes(b"no image")
    (folder / "class_0" / "two\nlines.jpg").write_bytes(b"no image")
    expected = [name, os.fsencode(folder / "class_0" / "cut in two.jpg")]
    listed = tmp_path / "bad.txt"
    assert main([command, str(folder), "--bad", str(listed)]) == 1
    captured = capsys.readouterr()
    assert listed.read_bytes() == b"".join(one + b"\n" for one in expected)
    assert captured.out and "--bad leaves out paths that hold a line break: 1" in captured.err


def test_bad_files_on_the_standard_output(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["doctor", str(folder), "--bad", "-"]) == 1
    captured = capfdbinary.readouterr()
    assert captured.out == os.fsencode(folder / "class_0" / "cut in two.jpg") + b"\n"
    assert b"scanned" in captured.err and b"broken        1:" in captured.err


def test_without_broken_files_the_list_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_folder(tmp_path / "data", 4)
    (tmp_path / "bad.txt").write_text("an old list\n")
    assert main(["doctor", str(root), "--bad", str(tmp_path / "bad.txt")]) == 0
    assert (tmp_path / "bad.txt").read_text() == ""


def test_two_results_for_one_output_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("doctor", "verify"):
        assert main([command, str(folder), "--json", "--bad", "-"]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and "--json and --bad - both write to the standard output" in captured.err


@pytest.mark.processes
def test_where_a_result_cannot_be_written_one_sentence_says_so(folder: Path) -> None:
    for options, said in {
        "--json >&-": "the standard output is closed",
        "--json >/dev/full": "the standard output cannot be written: No space left on device",
        "--bad - >/dev/full": "the standard output cannot be written: No space left on device",
        "--bad /dev/full >/dev/null": "/dev/full cannot be written: No space left on device",
    }.items():
        line = f"{sys.executable} -m headrace doctor {folder} {options}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=WATCHDOG_S)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr and done.stderr.endswith(f"headrace doctor: {said}\n")


def test_bad_needs_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["doctor", "--bad", "-"], ["verify", "pack", "source", "--bad", "-"]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 2
    assert main(["verify", str(tmp_path), "--bad", str(tmp_path / "missing" / "bad.txt")]) == 2
    assert "bad.txt cannot be written" in capsys.readouterr().err


def test_the_screen_shows_twenty_and_says_how_to_get_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    broken = [(f"{n}.jpg", "cut") for n in range(21)]
    assert len([*describe_broken_files(broken[:20])]) == 20
    assert [*describe_broken_files(broken)][20:] == ["  and 1 more: --bad FILE writes the paths of all 21"]


def test_each_path_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bad(["b", "a", "b"], STDOUT, sys.stdout)
    assert capsys.readouterr().out == "b\na\n"

"""The demo: its folder is the same every time, its parts do what they say, the quick tour needs no terminal."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import ImageFolder
from headrace._cli import recipes
from headrace._cli.demo import benchmark, contact_sheet, demo_command, equality_proof, training
from headrace._cli.demo import photo_folder as demo_folder
from headrace._cli.demo.equality_proof import count_same_batches
from headrace._cli.demo.photo_folder import GROUPS, make_photo_folder
from headrace._cli.main import main
from support import PHOTOS, WATCHDOG_S

pytestmark = pytest.mark.processes


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_photograph_is_in_one_group() -> None:
    names = Counter(name for group in GROUPS.values() for name in group)
    assert set(names) == {path.stem for path in PHOTOS.glob("*.jpg")}
    assert set(names.values()) == {1}


def test_the_folder_is_the_same_every_time(tmp_path: Path) -> None:
    layout = make_photo_folder(tmp_path / "a", 60)
    make_photo_folder(tmp_path / "b", 60)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    training, validation = ImageFolder(layout.train), ImageFolder(layout.validation)
    assert training.classes == validation.classes == sorted(GROUPS)
    assert len(training) + len(validation) == layout.files == 60
    assert len(set(contents(tmp_path / "a").values())) == 61  # no two files are the same; one is the marker


def test_a_folder_that_is_there_is_used_again(tmp_path: Path) -> None:
    make_photo_folder(tmp_path, 50)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    make_photo_folder(tmp_path, 50)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times
    assert len(ImageFolder(make_photo_folder(tmp_path, 60).train)) == 50  # 10 of each class, and 2 for validation


def test_processes_that_ask_at_once_all_get_the_whole_folder(tmp_path: Path) -> None:
    expected = contents(make_photo_folder(tmp_path / "alone", 50).train)
    ask = "from headrace._cli.demo.photo_folder import make_photo_folder\n"
    ask += f"make_photo_folder({str(tmp_path / 'shared')!r}, 50)"
    ranks = [subprocess.Popen([sys.executable, "-c", ask]) for _ in range(3)]
    assert [rank.wait() for rank in ranks] == [0, 0, 0]
    assert contents(tmp_path / "shared/train") == expected


def test_a_folder_that_was_left_half_made_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = contents(make_photo_folder(tmp_path / "whole", 50).train)
    files = iter([(b"", "jpg")] * 7)  # then next() raises
    with monkeypatch.context() as patch, pytest.raises(StopIteration):
        patch.setattr(demo_folder, "_make_photo_variant", lambda *_: next(files))
        make_photo_folder(tmp_path / "half", 50)
    assert len(contents(tmp_path / "half")) == 8  # the marker, and seven files
    assert contents(make_photo_folder(tmp_path / "half", 50).train) == expected


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="other files"):
        make_photo_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("files", [0, 5, 49, 101])
def test_only_whole_classes_can_be_made(tmp_path: Path, files: int) -> None:
    with pytest.raises(ValueError, match="multiple of 5"):
        make_photo_folder(tmp_path, files)


def test_the_folder_has_what_real_ones_have(tmp_path: Path) -> None:
    make_photo_folder(tmp_path, 320)
    modes, formats = Counter[str](), Counter[str | None]()
    for path in tmp_path.rglob("*.*"):
        if path.suffix != ".json":
            with Image.open(path) as image:
                modes[image.mode] += 1
                formats[image.format] += 1
                assert max(image.size) <= 500
    assert formats == {"JPEG": 319, "PNG": 1}
    assert modes["CMYK"] == 1
    assert modes["L"] > 5


def test_denormalise_gives_the_bytes_back() -> None:
    image = Image.effect_noise((64, 48), 90).convert("RGB")
    pixels = torch.from_numpy(np.array(image))
    _, _, to_tensor, normalise = recipes.train().transforms
    made = normalise(to_tensor(image))
    assert isinstance(made, torch.Tensor)
    assert torch.equal(recipes.denormalise(made[None])[0].permute(1, 2, 0), pixels)


def test_same_batches_sees_a_difference() -> None:
    batch = (torch.zeros(2, 3), torch.tensor([1, 2]))
    assert count_same_batches([batch, batch], [batch, batch]) == 2
    with pytest.raises(AssertionError, match="batch 1 differs"):
        count_same_batches([batch, batch], [batch, (torch.ones(2, 3), batch[1])])
    with pytest.raises(AssertionError, match="batch 1 differs"):
        count_same_batches([batch], [batch, batch])


def test_a_race_is_kept_on_its_cores() -> None:
    before = os.sched_getaffinity(0)
    one = {min(before)}
    with benchmark.limit_cpus(one):
        assert os.sched_getaffinity(0) == one
    assert os.sched_getaffinity(0) == before


def test_the_table_has_medians_and_spread() -> None:
    speeds = {("torch", 1): [100.0, 110.0, 90.0], ("headrace", 1): [300.0, 2000.0, 250.0]}
    lines = benchmark.format_speed_table(speeds).splitlines()
    assert lines[1].split() == ["torch's", "DataLoader", "+", "Pillow", "100", "(90", "to", "110)"]
    assert lines[2].split() == ["headrace", "300", "(250", "to", "2,000)"]
    assert lines[3].split()[-1] == "3.00"


def test_the_sheet_shows_every_image_where_it_belongs() -> None:
    images = torch.arange(5, dtype=torch.uint8).mul(40).view(5, 1, 1, 1).expand(5, 3, 20, 200)
    drawn = contact_sheet.draw_sheet(images, ["one", "two", "three", "four", "five"], 2, "title", "note")
    assert drawn.width > 400
    places = [(x, y) for y in range(3) for x in range(2)][:5]
    left, top, right, below = (
        contact_sheet._MARGIN,
        contact_sheet._HEAD,
        200 + contact_sheet._GAP,
        20 + contact_sheet._CAPTION + contact_sheet._GAP,
    )
    colours = [drawn.getpixel((left + x * right + 10, top + y * below + 10)) for x, y in places]
    assert colours == [(40 * i,) * 3 for i in range(5)]
    assert drawn.getpixel((2, 2)) == contact_sheet._PAPER


def test_quick_tour(tmp_path: Path) -> None:
    """The whole tour, in another process whose output is a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "demo", "--quick", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    out = done.stdout
    for part in (
        "1. An ImageFolder of 50 files",
        "0 differ",
        "times as fast",
        "epoch 1/1: loss",
        "of the same photographs) recognised",
        "Done in",
    ):
        assert part in out
    assert "\r" not in out
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 110
    with Image.open(tmp_path / "out" / "contact_sheet.png") as drawn:
        assert drawn.width > 1000
        assert len(drawn.convert("RGB").getcolors(1 << 24) or []) > 10_000


def test_a_place_that_is_taken_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "mine.txt").write_text("mine")
    assert main(["demo", "--quick", "--out", str(tmp_path)]) == 2
    assert main(["demo", "--quick", "--out", str(tmp_path / "photos" / "mine.txt")]) == 2
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 2
    assert all(line.startswith("headrace demo: ") and "--out DIR" in line for line in err)


@pytest.fixture
def nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes Python find no folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "missing")])


@pytest.mark.usefixtures("nowhere_to_write")
def test_no_folder_for_temporary_files_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--quick"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("headrace demo: No usable temporary directory found in [")
    assert err.endswith("; name a writable folder with --out DIR\n")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("nowhere_to_write")
def test_the_folder_that_is_named_holds_the_temporary_files_too(tmp_path: Path) -> None:
    """Otherwise torch's workers find no folder for their sockets and fail, and torch waits for them."""
    demo_command._set_temporary_folder(tmp_path)
    assert tempfile.gettempdir() == str(tmp_path)


def test_a_sheet_that_cannot_be_saved_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for module, name in (
        (equality_proof, "prove_equality"),
        (benchmark, "measure_speeds"),
        (benchmark, "format_speed_table"),
        (training, "train"),
    ):
        monkeypatch.setattr(module, name, lambda *arguments: "")
    monkeypatch.setattr(contact_sheet, "save_sheet", full)
    assert main(["demo", "--quick", "--out", str(tmp_path)]) == 2
    said = "headrace demo: No space left on device; name a writable folder with --out DIR\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (RuntimeError("Caught RuntimeError in worker 0.\nTraceback\nRuntimeError: No space left"), "No space left"),
    ],
)
def test_the_race_is_left_out_where_torch_has_no_workers(
    error: Exception,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container whose /dev/shm is missing or small; the parts after the race still run."""

    def fail(loader: object) -> int:
        raise error

    for module, name in (
        (equality_proof, "prove_equality"),
        (training, "train"),
        (contact_sheet, "save_sheet"),
    ):
        monkeypatch.setattr(module, name, lambda *arguments: None)
    monkeypatch.setattr(benchmark, "_drain", fail)
    assert main(["demo", "--quick", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Left out: torch's DataLoader cannot run worker processes here (" in out
    assert said in out
    assert "Caught" not in out
    assert "Done in" in out


def test_a_quota_of_one_core_is_no_race_on_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = make_photo_folder(tmp_path, 50)
    monkeypatch.setattr(benchmark, "usable_cores", lambda: 1)
    monkeypatch.setattr(benchmark, "_measure", lambda loader, seconds: 1.0)
    monkeypatch.setattr(benchmark, "_check_that_torch_delivers", lambda loader: None)
    assert set(benchmark.measure_speeds(photos.train, 1, 0.1)) == {("torch", 1), ("headrace", 1)}

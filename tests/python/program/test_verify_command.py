"""``headrace verify``: what it compares, what it names, and its exit status."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headrace import DataLoader, VerificationError
from headrace._cli.main import main
from support import PHOTOS

BYTES = 3 * 224 * 224 * 4  # of one image of a recipe


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six photographs in two sub-folders."""
    for i, path in enumerate(sorted(PHOTOS.glob("*.jpg"))[:6]):
        target = tmp_path / f"class{i % 2}"
        target.mkdir(exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


def said(images: int) -> str:
    return f"{images} images, {images * BYTES:,} bytes compared with Pillow and torch: 0 differ"


def cut(path: Path) -> None:
    """Writes the first half of a photograph."""
    whole = (PHOTOS / "cat.jpg").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def test_says_what_it_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"train: {said(6)}", f"eval: {said(6)}"]


def test_takes_one_recipe_and_a_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder), "--recipe", "eval", "--limit", "2", "--workers", "1"]) == 0
    assert capsys.readouterr().out.startswith("eval: 2 images")


def test_takes_a_single_file_of_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photograph = shutil.copy(PHOTOS / "cat.jpg", tmp_path / "photograph")
    assert main(["verify", str(photograph)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"train: {said(1)}", f"eval: {said(1)}"]
    cut(tmp_path / "cut.jpg")
    assert main(["verify", str(tmp_path / "cut.jpg")]) == 1
    assert "1 of 1 files cannot be read" in capsys.readouterr().out


def test_names_files_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut(folder / "class0" / "cut.jpg")
    (folder / "class1" / "empty.png").touch()
    (folder / "class1" / "lost.jpg").symlink_to("nowhere.jpg")
    os.mkfifo(folder / "class1" / "pipe.jpg")
    assert main(["verify", str(folder)]) == 1
    out = capsys.readouterr().out
    assert f"train: {said(6)}" in out
    assert "4 of 10 files cannot be read, here as with Pillow:" in out
    assert "cut.jpg: image file is truncated" in out
    assert "empty.png: cannot identify image file" in out
    assert "lost.jpg: No such file or directory" in out
    assert "pipe.jpg: is not a file" in out


def test_where_no_file_can_be_read_nothing_was_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut(tmp_path / "cut.jpg")
    assert main(["verify", str(tmp_path), "--recipe", "eval"]) == 1
    out = capsys.readouterr().out
    assert "0 images, 0 bytes compared with Pillow and torch: nothing to compare" in out
    assert "differ" not in out
    assert "1 of 1 files cannot be read" in out


def test_a_folder_without_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    assert main(["verify", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"headrace verify: no images in {tmp_path}: no file name ends in .jpg")


def test_a_path_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "missing")]) == 2
    assert capsys.readouterr().err == f"headrace verify: {tmp_path / 'missing'} does not exist\n"
    (tmp_path / "file").touch()
    assert main(["verify", str(tmp_path / "file" / "below")]) == 2
    assert (
        capsys.readouterr().err == f"headrace verify: {tmp_path / 'file' / 'below'} cannot be read: Not a directory\n"
    )


def test_links_to_folders_are_followed_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in ImageFolder; otherwise the search would never end at a link to a parent folder."""
    links = folder / "links"
    links.mkdir()
    (links / "first").symlink_to(folder / "class0")
    (links / "up").symlink_to(links)
    assert main(["verify", str(links), "--recipe", "eval"]) == 0
    assert capsys.readouterr().out == f"eval: {said(3)}\n"


def test_names_folders_that_cannot_be_searched(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, scandir = str(folder / "class1"), os.scandir

    def refuse(path: str) -> object:
        if str(path) == closed:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert main(["verify", str(folder), "--recipe", "eval"]) == 1
    captured = capsys.readouterr()
    assert captured.out == f"eval: {said(3)}\n"
    assert captured.err == f"headrace verify: {closed} cannot be searched: Permission denied\n"


def test_a_difference(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(self: DataLoader, n: int = 4) -> None:
        raise VerificationError("batch 0: sample 3 differs")

    monkeypatch.setattr(DataLoader, "verify", differ)
    assert main(["verify", str(folder)]) == 1
    assert capsys.readouterr().out == "train: differs: batch 0: sample 3 differs\n"

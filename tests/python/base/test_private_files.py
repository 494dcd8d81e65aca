"""Files in folders that others can write to: only what this program can have written is opened, without waiting."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import token_columns
from headrace._base.private_files import create_file, is_own, mapped_array, private_folder, read_own, replace_file
from headrace._cli.pack.manifest import load_manifest, load_record
from headrace.datasets.tables.converted_files import made_once
from headrace.datasets.tar_shards.external_index import foreign_index


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(b"x")
    path.symlink_to(target)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def server(path: Path) -> None:
    one = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(path.parent)  # such names are short
    one.bind(path.name)
    os.chdir(before)
    one.close()


def of_another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    path.write_bytes(b"x")
    os.chown(path, 12345, -1)


ODD: list[Callable[[Path], None]] = [pipe, link, device, server, of_another_user, Path.mkdir]


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("make", ODD)
def test_what_is_not_opened(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "file"
    make(path)
    assert not is_own(path)
    with pytest.raises(OSError):
        read_own(path)


@pytest.mark.parametrize("make", [pipe, device, server, of_another_user])
def test_of_a_path_that_may_be_a_link(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "file"
    make(path)
    with pytest.raises(OSError):
        read_own(path, follow=True)
    target = tmp_path / "target"
    target.write_bytes(b"held")
    (tmp_path / "link").symlink_to(target)
    assert read_own(tmp_path / "link", follow=True) == read_own(target) == b"held"


def test_the_owner_of_a_folder_may_put_files_there(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"held")
    for path in (folder, folder / "file"):
        os.chown(path, 12345, -1)
    assert read_own(folder / "file") == b"held"


@pytest.mark.usefixtures("usual_umask")
def test_files_are_made_private_and_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "link")
    with replace_file(tmp_path / "link") as file:
        file.write(b"held")
    assert read_own(tmp_path / "link") == b"held" and not (tmp_path / "victim").exists()
    assert (tmp_path / "link").stat().st_mode & 0o777 == 0o600
    with replace_file(tmp_path / "open", 0o666):
        pass
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o644
    with pytest.raises(KeyError), replace_file(tmp_path / "open") as file:
        raise KeyError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "open"]


@pytest.mark.usefixtures("usual_umask")
def test_private_folders(tmp_path: Path) -> None:
    for path in (tmp_path / "a" / "b", tmp_path / "open"):
        if path.name == "open":
            path.mkdir(mode=0o777)
        private_folder(path)
        assert path.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "open")
    with pytest.raises(OSError):
        private_folder(tmp_path / "link")


def test_arrays_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for array in (np.arange(12).reshape(3, 4), np.asfortranarray(np.ones((3, 4))), np.empty((0, 5), np.int32)):
        np.save(path, array)
        found = mapped_array(path)
        assert np.array_equal(found, array) and found.dtype == array.dtype and found.shape == array.shape
    np.save(path, np.arange(1000))
    os.truncate(path, 500)
    with pytest.raises(ValueError):
        mapped_array(path)
    np.save(path, np.array([object()], object), allow_pickle=True)
    with pytest.raises(ValueError):
        mapped_array(path)
    np.save(path, np.arange(5))
    for number, value in ((63, b"7"), (26, b"B"), (21, b",")):  # what the tokenizer, sorting and the parser refuse
        whole = bytearray(path.read_bytes())
        whole[number : number + 1] = value
        (tmp_path / "damaged.npy").write_bytes(whole)
        with pytest.raises(ValueError):
            mapped_array(tmp_path / "damaged.npy")


def words(texts: list[str]) -> list[list[int]]:
    return [[len(text)] for text in texts]


def test_odd_files_where_this_program_looks_for_its_own(tmp_path: Path) -> None:
    """None of them is waited for: each is as if it were not there, or one clear error."""
    pipe(tmp_path / "pack.json")
    with pytest.raises((OSError, ValueError)):
        load_manifest(tmp_path)
    pipe(tmp_path / "shard.tar.json")
    assert load_record(tmp_path / "shard.tar") is None
    pipe(tmp_path / "entries.npz")
    with pytest.raises((OSError, ValueError)):
        headrace.EntryPoints("1 MB", tmp_path / "entries.npz")
    for name in ("t.json", "u.npy", "v.lengths.npy"):
        path = tmp_path / f"{name[0]}.npy"
        if name != "t.json":
            token_columns(["a"], words, path)
        (tmp_path / name).unlink(missing_ok=True)
        pipe(tmp_path / name)
        with pytest.raises((OSError, ValueError)):
            token_columns(["a"], words, path)
    (tmp_path / "s.tar").write_bytes(bytes(1024))
    pipe(tmp_path / "s.idx")
    assert foreign_index(str(tmp_path / "s.tar")) is None


@pytest.mark.parametrize("make", [pipe, device, link])
@pytest.mark.usefixtures("usual_umask")
def test_a_copy_that_is_no_file_of_ours_is_made_again(make: Callable[[Path], None], tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "new" / "cache"
    source.write_bytes(b"x")

    def copy(target: str) -> None:
        Path(target).write_bytes(b"made")

    path = Path(made_once(str(source), "what", ".bin", folder, copy))
    assert path.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    path.unlink()
    make(path)
    assert Path(made_once(str(source), "what", ".bin", folder, copy)).read_bytes() == b"made"


def test_a_copy_belongs_to_one_file_in_one_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths in two folders, and another file of the same size and time under one name."""
    made: list[str] = []

    def copied() -> str:
        path = made_once("source", "what", ".bin", tmp_path / "cache", lambda target: made.append(target))
        return path

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "source").write_bytes(b"x")
        os.utime(tmp_path / name / "source", (1e9, 1e9))
    found = []
    for name in ("a", "b", "a", "b"):
        monkeypatch.chdir(tmp_path / name)
        found.append(copied())
    assert found[0] == found[2] != found[1] == found[3] and len(made) == 2
    (tmp_path / "b" / "new").write_bytes(b"y")
    os.utime(tmp_path / "b" / "new", (1e9, 1e9))
    (tmp_path / "b" / "new").replace(tmp_path / "b" / "source")
    assert copied() != found[1] and len(made) == 3

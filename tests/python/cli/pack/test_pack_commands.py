"""``headrace pack``, ``verify PACK SRC`` and ``index``: output, exit statuses, processes that end early."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from packs import content

from headrace._cli.main import main, parser
from headrace._cli.pack import shard_file
from headrace._cli.pack.manifest import require_manifest
from support import WATCHDOG_S, eventually, write_folder

COUNT = 24


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "images", COUNT)


def run(*arguments: object) -> int:
    return main([str(one) for one in arguments])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_pack_and_verify(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pack"
    assert run("pack", images, folder, "--shard-size", "25KB", "--workers", 1) == 0
    out = capsys.readouterr().out
    assert re.match(rf"24 samples in (\d+) of \1 shards \(0 of earlier runs\): {folder}\n", out)
    assert "4 of 24 images are stored as they were:\n  2: not a JPEG\n  2: CMYK or YCCK\n" in out
    assert out.endswith(f'Read it with headrace.TarShards("{folder}/*.tar").\n')
    assert run("verify", folder, images, "--workers", 1) == 0
    assert capsys.readouterr().out == f"24 samples compared with {images}: 0 differ\n"
    assert run("verify", folder, images, "--workers", 2) == 0
    assert capsys.readouterr().out == f"24 samples compared with {images}: 0 differ\n"
    assert run("verify", folder, images, "--limit", 3, "--workers", 1) == 0
    assert capsys.readouterr().out.startswith("3 samples compared")
    shard = folder / "shard-000000.tar"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    assert run("verify", folder, images) == 1
    assert capsys.readouterr().out.startswith("differs: 1 of ")
    assert run("verify", tmp_path, images) == 2
    assert "holds no pack" in capsys.readouterr().err


def test_shares_and_index(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pack"
    options = ("--shard-size", "25KB", "--copy", "--workers", 1)
    assert run("pack", images, folder, *options, "--shard", "1/2") == 0
    assert f"shards are written by others; then run: headrace index {folder}\n" in capsys.readouterr().out
    assert run("index", folder) == 1
    assert re.search(
        r"headrace index: \d of \d shards are missing or damaged: shard-000001.tar", capsys.readouterr().err
    )
    assert run("pack", images, folder, *options, "--shard", "2/2") == 0
    assert run("index", folder) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("24 samples in ")


def test_index_of_shards_without_a_pack(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pack", images, tmp_path / "pack", "--copy") == 0
    (tmp_path / "pack" / "pack.json").unlink()
    sidecar = tmp_path / "pack" / "shard-000000.tar.index.npz"
    sidecar.unlink()
    assert run("index", tmp_path / "pack") == 0
    assert sidecar.exists()
    assert capsys.readouterr().out.splitlines()[-1] == f"24 samples in 1 shards: {tmp_path / 'pack'}"
    assert run("index", images) == 2
    assert "has neither pack.json nor tar shards" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, message",
    [
        (["--shard-size", "many"], "many is not a number of bytes such as 500MB or 2GiB"),
        (["--shard", "3/2"], "3/2 is not a share such as 2/4, the second of four"),
        (["--quality", "101"], "101 is not a quality from 1 to 100"),
        (["--quality", "50"], "--quality needs --max-size"),
        (["--copy", "--max-size", "9"], "not allowed with argument"),
    ],
)
def test_wrong_options_are_usage_messages(options: list[Any], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["pack", "x", "y", *options])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_wrong_sources_are_one_sentence(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pack", tmp_path / "nothing", tmp_path / "pack") == 1
    assert "nothing does not exist" in capsys.readouterr().err
    for inside in (images, images / "class_0", images / "new"):
        assert run("pack", images, inside) == 1
        assert f"{inside} is in {images} and would be a part of the dataset" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert run("pack", images, tmp_path / "other") == 1
    error = capsys.readouterr().err
    assert "holds file and no pack.json; give a folder that is empty" in error and error.count("\n") == 1
    with pytest.raises(SystemExit):
        run("verify", tmp_path / "pack", images, "--recipe", "eval")
    assert "--recipe is for images" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, size", [("1", 1), ("500MB", 500 * 10**6), ("1.5 kb", 1500), ("2GiB", 2 << 30), ("3g", 3 * 10**9)]
)
def test_sizes(text: str, size: int) -> None:
    assert parser().parse_args(["pack", "x", "y", "--shard-size", text]).shard_size == size


# ---- processes


def packing(arguments: list[str], errors: Path) -> None:
    """Runs a command whose samples take a tenth of a second, as the first process of a group."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    members = shard_file._tar_members

    def slow(sample: Any) -> Any:
        time.sleep(0.1)
        return members(sample)

    shard_file._tar_members = slow
    sys.exit(main(arguments))


def stat(pid: int) -> list[str]:
    """State, parent, ... of a process; nothing if it has ended, even if nobody has waited for it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] == "Z" else fields


def children(pid: int) -> list[int]:
    every = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [one for one in every if stat(one)[1:2] == [str(pid)]]


def unfinished(folder: Path) -> list[Path]:
    return list(folder.glob("*unfinished*"))


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("how", ["interrupt", "kill the worker", "kill the parent"])
def test_processes_that_end_early_leave_nothing_and_go_on(how: str, images: Path, tmp_path: Path) -> None:
    folder, errors = tmp_path / "pack", tmp_path / "errors"
    command = ["pack", str(images), str(folder), "--shard-size", "25KB", "--copy", "--workers", "2"]
    process = get_context("fork").Process(target=packing, args=(command, errors))
    process.start()
    pid = process.pid
    assert pid is not None
    try:
        assert eventually(lambda: bool(list(folder.glob("*.tar.json"))) and len(children(pid)) == 2)
        workers = children(pid)
        if how == "interrupt":
            os.killpg(pid, signal.SIGINT)  # as a terminal does
        else:
            os.kill(workers[0] if how == "kill the worker" else pid, signal.SIGKILL)
        process.join(WATCHDOG_S)
    finally:
        process.kill()
    assert eventually(lambda: not any(stat(pid) for pid in workers))
    if how == "interrupt":
        assert (process.exitcode, errors.read_text()) == (130, "\nheadrace: interrupted\n")
    elif how == "kill the worker":
        assert process.exitcode == 1
        assert errors.read_text().startswith("headrace pack: a process ended with status -9: it was killed")
        assert errors.read_text().endswith("the same command goes on with the others.\n")
    assert how == "kill the worker" or not unfinished(folder)  # the others stopped after a sample
    assert not require_manifest(folder).complete
    begun = content(folder)
    assert run(*command[:-1], 1) == 0
    assert not unfinished(folder) and require_manifest(folder).complete
    assert begun.items() <= content(folder).items()


def test_a_full_disk_is_one_error(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files have a limit of 9 KB, as a disk that is full for shards but not for small files."""
    folder, old = tmp_path / "pack", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, old[1]))
    try:
        assert run("pack", images, folder, "--copy", "--workers", 1) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    error = capsys.readouterr().err
    assert error.startswith(f"headrace pack: [Errno 27] File too large: '{folder}/shard-000000.tar'\n")
    assert error.count("\n") == 2
    assert [path.name for path in folder.iterdir()] == ["pack.json"]
    assert run("pack", images, folder, "--copy") == 0

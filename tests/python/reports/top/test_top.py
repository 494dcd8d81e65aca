"""headrace top on real processes: in a terminal of 80 columns, once, as JSON; processes that ended, stopped, or are
others'."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import pwd
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace._base.messages import install_command
from headrace._cli.main import main
from headrace._reports.metrics import processes, status_files
from headrace._reports.metrics.process_figures import LoaderFigures, ProcessFigures
from headrace._reports.top.discovery import NothingFoundError, find_processes
from support import WATCHDOG_S, heed_ctrl_c

pytestmark = pytest.mark.processes

TESTS = str(Path(__file__).parents[2])
WORKING = """
import sys, time
sys.path.insert(0, sys.argv[1])
from headrace import EncodedImages, DataLoader
from support import pictures, train
for batch in DataLoader(EncodedImages(pictures() * 1000, None, train(32)), 4, num_workers=1):
    time.sleep(0.01)
"""


@contextmanager
def working(where: Path, code: str = WORKING) -> Iterator[subprocess.Popen[bytes]]:
    """A process that publishes into a folder, once its file tells of a loader."""
    environment = {**os.environ, "HEADRACE_PUBLISH": str(where)}
    with subprocess.Popen([sys.executable, "-c", code, TESTS], env=environment) as running:
        try:
            wait_for(lambda: b"verdict" in b"".join(path.read_bytes() for path in where.glob("*.json")))
            yield running
        finally:
            running.kill()


def wait_for(good: Callable[[], Any], limit_s: float = WATCHDOG_S) -> None:
    end = time.monotonic() + limit_s
    while not good():
        assert time.monotonic() < end
        time.sleep(0.05)


def figures_of(pid: int, started: int | None = None, **more: Any) -> ProcessFigures:
    known = processes.find_process(pid)
    began = started if started is not None else (known.started if known is not None else 1)
    return ProcessFigures(pid, began, time.time(), 1.0, 0, 1, "0.1.0", **more)


def write(where: Path, one: ProcessFigures) -> Path:
    path = where / status_files.name_of(one.pid)
    status_files.replace_status_file(path, one.as_text())
    return path


def dead() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    return gone.pid


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["top", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


class Terminal:
    """A terminal of 80 columns and 30 lines with a program in it; its screen is what a person would read."""

    def __init__(self, *command: str) -> None:
        pyte = pytest.importorskip("pyte")
        self._screen = pyte.Screen(80, 30)
        self._stream = pyte.ByteStream(self._screen)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            environment.pop(name, None)
        self.program = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        )
        os.close(theirs)
        self._ours = ours

    def lines(self) -> list[str]:
        """What the screen shows now."""
        ready = select.poll()  # select() takes no descriptor above 1,023
        ready.register(self._ours, select.POLLIN)
        while ready.poll(50):
            try:
                sent = os.read(self._ours, 65536)
            except OSError:  # the program has ended
                break
            if not sent:
                break
            self._stream.feed(sent)
        return [line.rstrip() for line in self._screen.display]

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self._ours)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        made.append(Terminal(sys.executable, "-m", "headrace._cli.main", "top", *arguments))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_real_terminal_follows_a_process_until_it_ends(tmp_path: Path, terminal: Any) -> None:
    pytest.importorskip("rich")
    with working(tmp_path) as running:
        screen = terminal(str(running.pid), "--folder", str(tmp_path), "--every", "0.2")
        wait_for(lambda: {"consumer", "bottleneck"} <= {line.split(" ")[0] for line in screen.lines()})
        shown = screen.lines()
        assert shown[0].startswith(f"process {running.pid}  {sys.executable} -c") and len(shown[0]) <= 80
        assert shown[1] == "─" * 80
        assert shown[2] == "loader 0: EncodedImages, 24,000 samples; native, 1 thread"
        assert shown[3].startswith("epoch 0 ") and shown[3].endswith(" of 6,000 batches")
        assert [line.split()[0] for line in shown[4:9]] == ["speed", "consumer", "steps", "waits", "samples"]
        assert shown[10].split() == ["stage", "share", "ms", "a", "sample", "p50", "ms", "p99", "ms"]
        rows = [line.split()[0] for line in shown[12:] if line.strip()]
        if rows[2] == "memory":  # where a timed sample is in new memory
            del rows[2]
        assert rows[:5] == ["read", "header", "decode", "resize", "pillow"]
        assert {"bottleneck", "why"} <= set(rows)
        running.kill()
        running.wait()
        wait_for(lambda: screen.program.poll() is not None)
        last = screen.lines()
    assert screen.program.returncode == 0
    assert "This process has ended; its last figures" in "\n".join(last)


def test_ctrl_c_is_how_one_leaves(tmp_path: Path, terminal: Any) -> None:
    pytest.importorskip("rich")
    write(tmp_path, figures_of(os.getpid(), loaders=[LoaderFigures(0, "Mine", 5, "native", 1)]))
    screen = terminal("--folder", str(tmp_path))
    wait_for(lambda: "loader 0: Mine, 5 samples; native, 1 thread" in screen.lines())
    screen.program.send_signal(signal.SIGINT)
    wait_for(lambda: screen.lines() is not None and screen.program.poll() is not None)
    assert screen.program.returncode == 0
    assert "loader 0: Mine, 5 samples; native, 1 thread" in screen.lines()  # the last look stays


def test_a_process_that_is_killed_or_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    with working(tmp_path) as running:
        pid, where = str(running.pid), str(tmp_path)
        status, out, err = said(capsys, pid, "--folder", where)  # no terminal: once
        assert (status, err) == (0, "") and out.startswith(f"process {pid}  ") and "No news" not in out
        running.send_signal(signal.SIGSTOP)
        (path,) = tmp_path.glob("*.json")
        one = ProcessFigures.of_text(path.read_text())
        status_files.replace_status_file(path, one.as_text().replace(f'"at": {one.at}', f'"at": {one.at - 60}'))
        assert "No news for 6" in said(capsys, pid, "--folder", where)[1]
        running.kill()
        running.wait()
        status, out, err = said(capsys, pid, "--folder", where)
        assert status == 1 and "This process has ended; its last figures" in out
        status, out, err = said(capsys, "--folder", where)
        assert (status, out) == (1, "") and "no process of this user publishes" in err
    status_files.remove_dead(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_json_needs_no_rich(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    write(tmp_path, figures_of(os.getpid(), loaders=[LoaderFigures(0, "Mine", None, "torch", 2)]))
    for name in [one for one in sys.modules if one.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("headrace._reports.top.screen", "headrace._reports.top.bars"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "rich", None)
    where = ("--folder", str(tmp_path))
    status, out, err = said(capsys, *where, "--json")
    (one,) = json.loads(out)
    assert (status, err, one["pid"], one["alive"]) == (0, "", os.getpid(), True)
    assert one["loaders"][0]["dataset"] == "Mine"
    assert sys.executable in one["command"] or "pytest" in one["command"]
    status, out, err = said(capsys, *where)
    assert (status, out) == (2, "")
    assert err == (
        "headrace top: it draws with rich, which is not installed: "
        f"{install_command('top', 'rich')}; --json needs none\n"
    )


def test_a_launcher_shows_the_ranks_that_it_started(tmp_path: Path) -> None:
    mine, parent = figures_of(os.getpid()), os.getppid()
    write(tmp_path, mine)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        write(tmp_path, figures_of(stranger.pid))
        assert [one.figures.pid for one in find_processes([os.getpid()], tmp_path)] == sorted(
            [os.getpid(), stranger.pid]
        )
        assert [one.figures.pid for one in find_processes([stranger.pid], tmp_path)] == [stranger.pid]
        assert os.getpid() in [one.figures.pid for one in find_processes([parent], tmp_path)]
        assert len(find_processes([], tmp_path)) == 2
    finally:
        stranger.kill()
        stranger.wait()


def test_a_number_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    write(tmp_path, figures_of(os.getpid(), started=1))
    assert [one.alive for one in find_processes([os.getpid()], tmp_path)] == [False]
    with pytest.raises(NothingFoundError):
        find_processes([], tmp_path)


def test_why_there_is_nothing(tmp_path: Path) -> None:
    missing = dead()
    for pids, words in (
        ([missing], f"there is no process {missing} here: it has ended, or it runs in another container"),
        ([os.getpid()], f"process {os.getpid()} publishes nothing: start it with HEADRACE_PUBLISH=1, or call"),
        ([], "no process of this user publishes its loaders' figures: start it with HEADRACE_PUBLISH=1"),
    ):
        for where in (tmp_path, tmp_path / "missing"):
            with pytest.raises(NothingFoundError) as error:
                find_processes(pids, where)
            assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ('{"format": 2, "pid": 3', "Expecting"),
        ("[]", "another version of headrace wrote it"),
        ('{"format": 1}', "another version of headrace wrote it"),
        ('{"format": 2, "pid": 3}', "it does not have the fields of ProcessFigures"),
    ],
)
def test_a_damaged_file_is_one_sentence(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / status_files.name_of(os.getpid())
    path.write_text(text)
    with pytest.raises(NothingFoundError, match=f"{path.name} cannot be read: {reason}"):
        find_processes([os.getpid()], tmp_path)


def test_fields_of_other_types_are_no_figures() -> None:
    good = json.loads(figures_of(3, 1, loaders=[LoaderFigures(0, "Mine", 5, "native", 1)]).as_text())
    changes: tuple[dict[str, Any], ...] = (
        {"pid": "3"},
        {"loaders": 3},
        {"loaders": [{}]},
        {"loaders": [{**good["loaders"][0], "speeds": ["x"]}]},
        {"loaders": [{**good["loaders"][0], "stages": [3]}]},
    )
    for change in changes:
        with pytest.raises(ValueError, match=r"it does not have the fields of|its field .* is no"):
            ProcessFigures.of_text(json.dumps({**good, **change}))
    assert ProcessFigures.of_text(json.dumps(good)).loaders[0].dataset == "Mine"


def test_links_and_other_files_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / status_files.name_of(os.getpid())
    (tmp_path / "other").write_text(figures_of(os.getpid()).as_text())
    path.symlink_to(tmp_path / "other")
    with pytest.raises(NothingFoundError, match="cannot be read: Too many levels of symbolic links"):
        find_processes([os.getpid()], tmp_path)
    status_files.replace_status_file(path, "mine")  # writing replaces the link, not what it points to
    assert not path.is_symlink() and path.read_text() == "mine" and (tmp_path / "other").read_text() != "mine"
    path.unlink()
    os.mkfifo(path)  # opening it does not wait for a writer
    with pytest.raises(NothingFoundError, match="cannot be read: it does not belong"):
        find_processes([os.getpid()], tmp_path)


# ---- folders and users ---------------------------------------------------------------------------------------------


def test_the_folder_of_the_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = status_files.own_folder()
    assert made == tmp_path / "headrace" and made.stat().st_mode & 0o777 == 0o700
    assert status_files.own_folder() == made and made in status_files.folders_of(os.geteuid())
    made.chmod(0o770)
    with pytest.raises(OSError, match="is not a folder that only this user may use"):
        status_files.own_folder()
    made.rmdir()
    made.symlink_to(tmp_path)
    with pytest.raises(OSError, match="is not a folder that only this user may use"):
        status_files.own_folder()


@pytest.mark.parametrize("value", ["", "/does/not/exist", "/proc/1"])
def test_without_a_login_it_is_in_tmp(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if value == "/proc/1" and os.geteuid() == 0:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)  # su keeps the variable of another user
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    monkeypatch.setattr(status_files, "_shared_folder", lambda user: tmp_path / f"headrace-{user}")
    if os.geteuid() == 12345:
        with pytest.raises(OSError, match="headrace-12345 is not a folder that only this user may use"):
            status_files.own_folder()
    else:
        assert status_files.own_folder() == tmp_path / f"headrace-{os.geteuid()}"


@contextmanager
def nobody() -> Iterator[int]:
    """The number of the user nobody, for tests that root runs."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    try:
        yield pwd.getpwnam("nobody").pw_uid
    except KeyError:
        pytest.skip("there is no user nobody")


def test_a_process_of_another_user_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    write(tmp_path, figures_of(os.getpid()))
    with nobody() as user:
        code = (
            "import os, sys; from pathlib import Path; from headrace._reports.top import discovery; "
            f"os.setuid({user}); discovery.find_processes([{os.getpid()}], Path(sys.argv[1]))"
        )
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "headrace._reports.top.discovery.NothingFoundError: "
        f"process {os.getpid()} belongs to the user root: only that user and root can read its figures"
    )


def test_a_file_that_another_user_wrote_is_not_believed(tmp_path: Path) -> None:
    path = write(tmp_path, figures_of(os.getpid()))
    with nobody() as user:
        os.chown(path, user, -1)
        with pytest.raises(NothingFoundError, match="cannot be read: it does not belong to the user of the process"):
            find_processes([os.getpid()], tmp_path)


def test_root_sees_another_users_process(tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    with nobody() as user:
        assert sleep is not None
        with subprocess.Popen([sleep, "60"], user=user) as other:
            try:
                path = write(tmp_path, figures_of(other.pid))
                os.chown(path, user, -1)
                (one,) = find_processes([other.pid], tmp_path)
                assert one.alive and one.command == f"{sleep} 60"
            finally:
                other.kill()


def test_a_zombie_has_ended() -> None:
    child = os.posix_spawn("/bin/true", ["true"], {})
    wait_for(lambda: processes.find_process(child) is None)  # its status was not asked for yet
    assert processes.owner_of_process(child) is not None
    os.waitpid(child, 0)
    assert processes.command_of_process(child) == "" and not processes.is_descendant(child, os.getpid())

"""Runs Python programs as forks of a process that has imported what they need, which takes seconds, once.

    run = start("lightning", "program.py", "argument", ranks=2)
    out, err = run.communicate(timeout=60)

A program finds what a new process has: `sys.argv`, `__main__`, the variables, an end with all that Python does then.
Its modules are imported already, but no thread has been started, and no group of processes. Of several ranks each finds
the variables of `torch.distributed.run`, and a rank that fails ends the others.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: What the server of each kind imports, in this order: headrace before the trainers, as programs do. (torch imports its
#: `_dynamo` with the first optimiser.)
IMPORTS = {
    "torch": ("torch.distributed", "torch._dynamo", "headrace.loader", "headrace.transforms"),
    "accelerate": ("accelerate", "accelerate.utils", "torchdata.stateful_dataloader"),
    "lightning": ("torchvision", "lightning"),
    "diffusers": ("accelerate", "torchvision", "diffusers.models.unets.unet_2d"),
    "transformers": ("torchvision", "transformers.trainer", "transformers.models.resnet.modeling_resnet"),
}
#: Threads of native libraries that a fork can do without: jemalloc, of pyarrow, prepares for a fork.
HARMLESS = {"jemalloc_bg_thd"}
#: Seconds between the request to end and the end by force of the other ranks: torchrun's.
GRACE = 30.0
#: Seconds that a program has to write where its threads are, after which it is ended by force.
STACKS = 5.0
#: Servers of a test process at one time: each takes some hundred megabytes.
MOST = 2


class Run:
    """A program that runs, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, server: _Server, request: Mapping[str, Any]) -> None:
        self.returncode: int | None = None
        self._store: object = None
        if request["ranks"] > 1:
            from torch._C._distributed_c10d import TCPStore  # here: a server begins before it imports torch

            # As torchrun does: it outlives the ranks, and its port cannot be taken by others in between.
            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            request = {**request, "port": store.port}
            self._store = store
        self._out, self._err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115
        self._status, theirs = socket.socketpair()
        with theirs:
            server.send(request, [self._out.fileno(), self._err.fileno(), theirs.fileno()])

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What the program wrote to stdout and stderr, once it has ended. Can be called once.

        Raises TimeoutError with what it wrote, and where each of its threads was.
        """
        late = ""
        self._status.settimeout(timeout)
        try:
            code = self._status.recv(16)
        except TimeoutError:
            late = f"the program has not ended within {timeout:g} s"
            self._status.shutdown(socket.SHUT_WR)
            self._status.settimeout(2 * GRACE)
            code = self._status.recv(16)
        self.returncode = int(code or b"-9")  # nothing: the server was ended
        said = []
        for file in (self._out, self._err):
            file.seek(0)
            said.append(file.read())
        self.kill()
        if late:
            raise TimeoutError("\n".join([late, *said]))
        return said[0], said[1]

    def kill(self) -> None:
        """Ends the program if it still runs."""
        if self.returncode is None:
            self._status.shutdown(socket.SHUT_RDWR)
        self._store = None
        for one in (self._status, self._out, self._err):
            one.close()


class _Server:
    """A process that has imported what programs need, in its own Python."""

    def __init__(self, kind: str, variables: Mapping[str, str]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, str(Path(__file__)), kind, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, env=variables, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def send(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)

    def close(self) -> None:
        """Ends it, once its programs have ended."""
        self._control.shutdown(socket.SHUT_RDWR)  # also where a worker process of torch's has a copy
        self._control.close()
        self._process.wait()


_servers: dict[tuple[str, tuple[tuple[str, str], ...]], _Server] = {}  # the one used last comes last
_lock = threading.Lock()


def _find_server(kind: str, variables: Mapping[str, str]) -> _Server:
    """A server that runs, or a new one."""
    key = kind, tuple(sorted(variables.items()))
    server = _servers.pop(key, None)
    if server is None:
        while len(_servers) >= MOST:
            _servers.pop(next(iter(_servers))).close()
        server = _Server(kind, variables)
    _servers[key] = server
    return server


@atexit.register
def _close_servers() -> None:
    for server in _servers.values():
        server.close()


def start(kind: str, *command: object, variables: Mapping[str, str], ranks: int = 1, **more: str) -> Run:
    """Starts a program.

    Args:
        kind: a key of IMPORTS.
        command: the path of the program, and its arguments.
        variables: the environment, also while the server imports.
        more: variables of this program alone.
    """
    of_pytest = {"PYTEST_CURRENT_TEST", "PYTEST_VERSION"}
    common = {name: value for name, value in variables.items() if name not in of_pytest}
    own = {"command": [*map(str, command)], "variables": {**variables, **more}, "ranks": ranks}
    with _lock:
        return Run(_find_server(kind, common), {**own, "folder": str(Path.cwd())})


def _import(kind: str) -> None:
    """Imports what programs of the kind need, and nothing that starts a thread."""
    for name in IMPORTS["torch"]:
        importlib.import_module(name)
    assert not {"accelerate", "lightning", "torchdata", "torchvision", "transformers"} & set(sys.modules)
    for name in IMPORTS[kind]:
        if name == "torchvision":
            from torchvision_shim import import_torchvision

            if importlib.util.find_spec(name):
                import_torchvision()
        else:
            importlib.import_module(name)
    threads = {path.read_text().strip() for path in Path("/proc/self/task").glob("[0-9]*/comm")}
    threads -= {Path("/proc/self/comm").read_text().strip(), *HARMLESS}
    assert not threads and threading.active_count() == 1, f"a fork would lose these threads: {threads}"
    gc.collect()
    gc.freeze()


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Forks for each request, until there are no more: returns None then, and in each child its program."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 3)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not message:
            with contextlib.suppress(ChildProcessError):
                while os.wait():
                    pass
            return None
        if os.fork() == 0:
            control.close()
            return _supervise(json.loads(message), *descriptors)
        for one in descriptors:
            os.close(one)


def _supervise(request: dict[str, Any], out: int, err: int, status: int) -> dict[str, Any]:
    """Starts the ranks and reports how they ended. Returns only in the ranks."""
    running = {}
    for rank in range(request["ranks"]):
        pid = os.fork()
        if pid == 0:
            os.close(status)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no dump where a test gives it up
            for mine, standard in ((out, 1), (err, 2)):
                os.dup2(mine, standard)
                os.close(mine)
            return {**request, "rank": rank}
        running[os.pidfd_open(pid)] = pid
    code, end = 0, float("inf")
    watched, signals = [status], [signal.SIGKILL, signal.SIGABRT]  # the last comes first: Python writes its stacks
    while running:
        ready, _, _ = select.select([*running, *watched], [], [], min(max(0.0, end - time.monotonic()), 3600))
        if status in ready or time.monotonic() > end:  # the test gives it up
            last = signals.pop()
            for pid in running.values():
                os.kill(pid, last)
            code, watched, end = code or 1, [], time.monotonic() + STACKS if signals else float("inf")
        for one in set(ready) & set(running):
            pid = running.pop(one)
            ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if ended and not code:
                code, end = ended if request["ranks"] == 1 else 1, time.monotonic() + GRACE
                for other in running.values():
                    os.kill(other, signal.SIGTERM)
    with contextlib.suppress(OSError):
        os.write(status, str(code).encode())
    os._exit(0)


def _variables_of_torchrun(rank: int, ranks: int, port: int) -> dict[str, str]:
    of_rank = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "ROLE_RANK": rank, "ROLE_NAME": "default"}
    of_all = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "ROLE_WORLD_SIZE": ranks, "GROUP_WORLD_SIZE": 1}
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True}
    life = {"TORCHELASTIC_RUN_ID": "tests", "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0}
    return {name: str(value) for name, value in {**of_rank, **of_all, **where, **life}.items()}


def _run(request: dict[str, Any]) -> None:
    """Runs the program as `python program.py ...` does."""
    os.environ.clear()
    os.environ.update(request["variables"])
    if request["ranks"] > 1:
        os.environ.update(_variables_of_torchrun(request["rank"], request["ranks"], request["port"]))
    os.chdir(request["folder"])
    program = request["command"][0]
    sys.argv, sys.path[0] = request["command"], str(Path(program).resolve().parent)
    main = types.ModuleType("__main__")
    main.__file__ = program
    sys.modules["__main__"] = main
    exec(compile(Path(program).read_bytes(), program, "exec"), main.__dict__)


def main() -> None:
    kind, control = sys.argv[1:]
    _import(kind)
    request = _serve(socket.socket(fileno=int(control)))
    if request is not None:
        _run(request)


if __name__ == "__main__":
    main()

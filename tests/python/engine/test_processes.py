"""Ctrl-C, interpreter exit, forks and spawned processes: a clean end, a clear error, nothing on stderr."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace._engine.engine import Flight
from headrace._loading.native.batch_waits import BatchWaits
from support import (
    WATCHDOG_S,
    assert_same,
    blobs,
    eventually,
    output_of,
    pictures,
    python,
    threads,
    threads_without_ours,
    train,
)

pytestmark = pytest.mark.processes

# Enough work that the loop cannot end by itself; with `pillow`, the Pillow lane decodes every sample.
ENDLESS = """
from support import *
import itertools
def loader(workers, pillow, **options):
    one = [pictures()[3]] if pillow else list(pictures())
    data = headrace.EncodedImages(one * (2000 // len(one)), None, train(128))
    return headrace.DataLoader(data, 64, num_workers=workers, **options)
"""
CASES = pytest.mark.parametrize(
    ("workers", "pillow"), [(0, True), (2, False), (2, True)], ids=["inline", "threads", "threads and pillow"]
)


@CASES
def test_ctrl_c(workers: int, pillow: bool) -> None:
    """KeyboardInterrupt is raised and the loader closed, though its loop has no end."""
    process = python(f"""{ENDLESS}
made = loader({workers}, {pillow})
iterator = iter(made)
next(iterator)
try:
    print("ready", flush=True)
    for _ in itertools.chain(iterator, itertools.cycle(made)):
        pass
except KeyboardInterrupt:
    del iterator
    made.close()
    print("closed", len(made), flush=True)
""")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.05)  # into the middle of a batch
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WATCHDOG_S)
    assert (process.returncode, out, err) == (0, "closed 32\n", "")


def test_ctrl_c_while_a_file_system_does_not_answer(tmp_path: Path) -> None:
    """next() raises at once; the thread that waits for the file ends with the process."""
    os.mkfifo(tmp_path / "stuck.jpg")
    process = python(f"""
from support import *
made = headrace.DataLoader(headrace.ImageFiles([{str(tmp_path / "stuck.jpg")!r}], None, train(16)), num_workers=1)
iterator = iter(made)
try:
    print("ready", flush=True)
    next(iterator)
except KeyboardInterrupt:
    print("interrupted", flush=True)
""")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WATCHDOG_S)
    assert (process.returncode, out, err) == (0, "interrupted\n", "")


def test_timeout(tmp_path: Path) -> None:
    """RuntimeError as in torch; the process can end while a thread still waits for the file."""
    os.mkfifo(tmp_path / "stuck.jpg")
    out = output_of(
        f"""
from support import *
from headrace import DataLoader
data = headrace.ImageFiles([{str(tmp_path / "stuck.jpg")!r}], None, train(16))
begin = time.monotonic()
try:
    next(iter(DataLoader(data, num_workers=1, timeout=0.3)))
except RuntimeError as error:
    print(error, 0.3 <= time.monotonic() - begin)
"""
    )
    assert out == "DataLoader timed out after 0.3 seconds True\n"


@CASES
def test_the_interpreter_ends_with_a_live_iterator(workers: int, pillow: bool) -> None:
    options = "prefetch_factor=4" if workers else "shuffle=True"
    assert (
        output_of(f"""{ENDLESS}
made = loader({workers}, {pillow}, {options})
iterator = iter(made)
kept = next(iterator)
if {workers}:
    other = loader({workers}, {not pillow}, {options}, persistent_workers=True)
    next(iter(other))
print("end")
""")
        == "end\n"
    )


def test_the_interpreter_ends_while_daemon_threads_are_in_native_code() -> None:
    """They ask for the GIL that the end of the interpreter does not give back: up to Python 3.13 that ends a thread
    by unwinding its stack, through native code as well, which must not abort the process."""
    for _ in range(3):
        process = python("""
import threading
from headrace._base.native import core
core.resample_table(2, 1, 3, 0, 1)  # imports numpy
inside = threading.Semaphore(0)
def work():
    while True:
        inside.release()
        core.resample_table(200_000, 100_000, 3, 0, 100_000)
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
for _ in range(8):
    inside.acquire()
""")
        assert process.communicate(timeout=WATCHDOG_S) == ("", "") and process.returncode == 0


def test_the_interpreter_ends_by_an_error_and_by_sys_exit() -> None:
    process = python(f"{ENDLESS}\niterator = iter(loader(2, True))\nnext(iterator)\nsys.exit(3)")
    assert process.communicate(timeout=WATCHDOG_S) == ("", "") and process.returncode == 3
    process = python(f"{ENDLESS}\niterator = iter(loader(2, True))\nnext(iterator)\nraise ValueError('mine')")
    _, err = process.communicate(timeout=WATCHDOG_S)
    assert process.returncode == 1 and err.splitlines()[-1] == "ValueError: mine" and err.count("Traceback") == 1


def test_fork_with_a_live_loader() -> None:
    """In the child an inherited iterator raises a clear error and a new one works; the parent's iterator continues."""
    assert (
        output_of(
            f"""{ENDLESS}
for workers, pillow in [(0, False), (0, True), (2, False), (2, True)]:
    made = loader(workers, pillow, seed=1)
    iterator = iter(made)
    kept = next(iterator)
    copied = kept.clone()
    for last in (False, False, False, pillow):
        child = os.fork()
        if child == 0:
            try:
                next(iterator)
            except RuntimeError as error:
                assert "before the process forked" in str(error) and "iter(loader)" in str(error), error
            else:
                assert False
            assert torch.equal(kept, copied)
            again = iter(made)
            assert len(next(again)) == 64
            del kept, again, iterator
            made.close()
            sys.exit(7) if last else os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    next(iterator)
    assert torch.equal(kept, copied)
print("end")
""",
            "-W",  # Python 3.12 warns of a fork with live threads, which is intended here
            "ignore::DeprecationWarning",
        )
        == "end\n"
    )


def _batches_of_a_process(loader: DataLoader, queue: Any) -> None:
    queue.put([[tensor.numpy() for tensor in batch] for batch in loader])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str) -> None:
    """A loader that is in use here also works in another process."""
    loader = DataLoader(blobs(), 6, True, seed=3, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    context: Any = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=_batches_of_a_process, args=(loader, queue))
    process.start()
    theirs = queue.get(timeout=WATCHDOG_S)
    process.join(WATCHDOG_S)
    assert process.exitcode == 0
    assert_same([[torch.from_numpy(one) for one in batch] for batch in theirs], loader)
    assert len(list(iterator)) == len(loader) - 1


class Inner(torch.utils.data.IterableDataset):
    """A headrace loader inside a worker process of torch."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        return (batch[1] for batch in self.loader)


@pytest.mark.parametrize("live", [False, True])
def test_inside_torchs_workers(live: bool) -> None:
    loader = DataLoader(blobs(), 6, seed=3, num_workers=2)
    iterator = iter(loader) if live else None
    outer = torch.utils.data.DataLoader(Inner(loader), batch_size=None, num_workers=2)
    assert sorted(batch[0].item() for batch in outer) == [0, 0, 6, 6, 12, 12, 18, 18]
    if iterator is not None:
        assert next(iterator)[1][0] == 0


def test_dataset_of_ours_under_torchs_loader() -> None:
    """A headrace dataset is map-style: torch's own worker processes can use it."""
    data = blobs(transform=train(16))
    batches = torch.utils.data.DataLoader(data, 6, num_workers=2)
    assert [batch[1].tolist() for batch in batches] == [list(range(i, i + 6)) for i in range(0, 24, 6)]


def test_a_keyboard_interrupt_in_the_middle_leaves_the_batch_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal interrupts next(): the iterator then returns that batch, which the state had not counted."""
    before = threads_without_ours()
    many = EncodedImages(pictures() * 500, None, train(8))  # a batch takes far longer than the timer
    wait = BatchWaits.wait

    def wait_for_the_timer(waits: BatchWaits, flight: Flight) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.005)  # not before: an interrupted sampler has lost a batch
        wait(waits, flight)

    for workers in (0, 2):
        loader = DataLoader(many, 6_000, num_workers=workers, seed=1)
        iterator = iter(loader)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(BatchWaits, "wait", wait_for_the_timer)
                next(iterator)
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        assert loader.state_dict()["position"] == 0
        assert torch.equal(next(iterator), next(iter(DataLoader(many, 6_000, num_workers=2, seed=1))))
        assert loader.state_dict()["position"] == 1
        del iterator
        assert eventually(lambda: threads() <= before)


def test_no_tool_of_the_tests_hides_a_failure() -> None:
    """`output_of` refuses a non-zero status, output on stderr and a timeout."""
    for code in ("import sys; sys.exit(1)", "import sys; print('x', file=sys.stderr)"):
        with pytest.raises(AssertionError):
            output_of(code)
    with pytest.raises(subprocess.TimeoutExpired):
        output_of("import time; time.sleep(60)", seconds=0.2)

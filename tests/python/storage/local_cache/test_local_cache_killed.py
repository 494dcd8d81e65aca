"""`cache=` of local files under SIGKILL: what processes leave that were killed while they filled it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cached_sources import batches, files

from headrace._storage.local_cache.local_caches import sum_caches
from support import assert_same, output_of

_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
sys.path[:0] = {tests!r}
from cached_sources import batches, files
folder = Path({folder!r})

def child():
    number = os.fork()
    if number == 0:
        while True:
            for path in (folder / "cache").rglob("local-*"):
                path.unlink(missing_ok=True)  # so that it is always being filled
            batches(files(folder / "data", cache=folder / "cache"))
    return number

for pause in (0.0, 0.01, 0.02, 0.03):
    killed = [child(), child()]
    while not any((folder / "cache").rglob("local-*")):
        time.sleep(0.001)
        for one in killed:
            assert os.waitpid(one, os.WNOHANG) == (0, 0), "a process that fills the cache ended by itself"
    time.sleep(pause)
    for one in killed:
        os.kill(one, signal.SIGKILL)
        os.waitpid(one, 0)
print("killed", flush=True)
"""


@pytest.mark.processes
@pytest.mark.slow
def test_killed_while_filling(tmp_path: Path) -> None:
    expected = batches(files(tmp_path / "data"))
    tests = [str(folder) for folder in (Path(__file__).parent, Path(__file__).parents[2])]
    assert "killed" in output_of(_PROGRAM.format(tests=tests, folder=str(tmp_path)))
    again = files(tmp_path / "data", cache=tmp_path / "cache")
    assert_same(batches(again), expected)
    assert_same(batches(again), expected)
    found = sum_caches()
    assert found is not None and found.from_disk >= len(again)

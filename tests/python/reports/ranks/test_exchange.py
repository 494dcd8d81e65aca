"""Where ranks find each other: folders, stores; what killed jobs leave, forged or damaged files; torch's records."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as library
from torch._C._distributed_c10d import HashStore, PrefixStore, TCPStore

from headrace._base.control_group import Throttling
from headrace._engine.counters.thread_times import Scheduled
from headrace._reports.ranks import boards, collectives, job_watch, machine_look
from headrace._reports.ranks.boards import FolderBoard, StoreBoard, job_name
from headrace._reports.ranks.collectives import CollectiveLog, arrivals_of
from headrace._reports.ranks.job_watch import Consumer, JobWatch
from headrace._reports.ranks.machine_look import MachineLook, cpu_clock
from headrace._reports.ranks.rank_figures import Arrivals, Load

LATE_MS = 20


def at(number: int, late_ms: int = 0) -> dict[str, Any]:
    """An entry of torch's flight recorder."""
    return {
        "process_group": ("0", "default_pg"),
        "profiling_name": "gloo:all_reduce",
        "collective_seq_id": number,
        "time_created_ns": (1_000_000 + 50_000 * number + 1000 * late_ms) * 1000,
        "is_p2p": False,
    }


def test_only_collectives_of_all_ranks_are_arrivals() -> None:
    entries = [at(1), at(2), {**at(2), "time_created_ns": 0}, {**at(3), "is_p2p": True}, {**at(4), "duration_ms": 1.5}]
    entries += [{**at(5), "process_group": ("1", "halves")}, {**at(6), "profiling_name": "nccl:all_reduce"}]
    found = arrivals_of(entries, "0", "gloo")
    assert found == Arrivals("gloo", [1, 2, 4], [1_050_000, 1_100_000, 1_200_000], [-1, -1, 1500])
    assert arrivals_of([], "0", "gloo") == Arrivals()
    assert len(arrivals_of([at(number) for number in range(900)], "0", "gloo").numbers) == 512


def test_records_are_read_rarely_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter is held while torch writes them: at most a thousandth of the time, on all ranks at once."""
    read: list[float] = []
    now = [1000.0]

    def recorded(oldest_ns: int) -> tuple[Arrivals, float]:
        read.append(now[0])
        return Arrivals("gloo", [1], [1], [-1]), 0.006

    monkeypatch.setattr(collectives, "_read_recorders", recorded)
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    log = CollectiveLog(15.0)
    for _ in range(40):
        now[0] += 1.0
        found = log.newest(1.0)
    assert read == [1001.0, 1008.0, 1016.0, 1024.0, 1032.0, 1040.0] and found.every_s == 8.0
    assert log.newest(32.0).numbers == [1] and log._period_s == 32.0
    monkeypatch.setattr(dist, "is_initialized", lambda: False)
    assert log.newest(1.0) == Arrivals()


def test_a_torch_that_records_otherwise_gives_no_arrivals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_recorders", lambda: [("gloo", lambda *_: b"nothing that can be read")])
    assert collectives._read_recorders(0)[0] == Arrivals()


@pytest.fixture
def server() -> TCPStore:
    return TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)


def test_ranks_find_each_other_in_a_folder(tmp_path: Path) -> None:
    first, second = FolderBoard(tmp_path, "a"), FolderBoard(tmp_path, "a")
    first.put("0", "zero")
    second.put("1", "one")
    assert first.all(2) == {"0": "zero", "1": "one"}
    assert FolderBoard(tmp_path, "b").all(2) == {}
    folder = tmp_path / "job-a"
    assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "0.json").stat().st_mode & 0o777 == 0o600
    first.put("verdict", "said")
    assert second.count() == 2 and second.verdict() == "said"
    first.remove("0")
    assert folder.exists()
    second.remove("1")
    assert not folder.exists()
    first.remove("0")


def test_what_a_killed_job_has_left_is_removed_later(tmp_path: Path) -> None:
    FolderBoard(tmp_path, "old").put("0", "zero")
    FolderBoard(tmp_path, "new").put("0", "zero")
    long_ago = time.time() - 7200
    for path in (tmp_path / "job-old/0.json", tmp_path / "job-old"):
        os.utime(path, (long_ago, long_ago))
    FolderBoard(tmp_path, "next")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job-new", "job-next"]


def test_ranks_find_each_other_in_a_store(server: TCPStore) -> None:
    prefixed = PrefixStore("default_pg", server)
    for store in (server, prefixed, HashStore()):
        board = StoreBoard(store)
        assert board.all(3) == {} and board.verdict() == ""
        board.put("2", "two")
        board.put("0", "zero")
        board.put("verdict", "said")
        assert board.all(3) == {"2": "two", "0": "zero"} or board.all(3) == {"0": "zero", "2": "two"}
        assert board.verdict() == "said"


def test_all_ranks_of_a_job_give_it_one_name(server: TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    other = TCPStore("127.0.0.1", server.port, None, False)
    assert job_name(server) == job_name(other) != job_name(HashStore())
    for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert job_name(None) == ""
    monkeypatch.setenv("MASTER_ADDR", "../host/name")
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert job_name(None) == "env--.._host_name-29500"


class Ranks:
    """Ranks of one job in one process; rank 2 comes late, since its loader does."""

    def __init__(self, folders: list[Path], store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self._turn = time.time(), 0
        monkeypatch.setattr(job_watch, "default_store", lambda: store)
        monkeypatch.setattr(job_watch, "host_name", lambda: folders[self._turn].name)
        monkeypatch.setattr(job_watch, "look_at_machine", lambda *_: MachineLook())
        self.watches = [JobWatch(folder) for folder in folders]
        for number, watch in enumerate(self.watches):
            entries = [at(step, LATE_MS if number == 2 else number) for step in range(50)]
            monkeypatch.setattr(watch._log, "newest", lambda _, entries=entries: arrivals_of(entries, "0", "gloo"))
        self._thread, self._round = threading.get_native_id(), 0

    def look(self) -> list[Any]:
        found = []
        self._round += 1
        for number, watch in enumerate(self.watches):
            self._turn = number
            watch._posted_s = float("-inf")
            waited = self._round * (0.02 if number == 2 else 0.0001)
            load = Load(20 * self._round, 1.0 * self._round, waited, {"read": waited, "decode": 1e-6})
            found.append(watch.look(load, Consumer(number, len(self.watches), self._thread), 1.0))
        return found


@pytest.mark.parametrize("spread", [False, True])
def test_all_ranks_know_the_verdict_of_rank_0(
    spread: bool, tmp_path: Path, server: TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine by a folder, on several by the store."""
    folders = [tmp_path / (str(number) if spread else "one") for number in range(3)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    ranks = Ranks(folders, PrefixStore("x", server), monkeypatch)
    for _ in range(3):
        time.sleep(0.01)
        verdicts = ranks.look()
    assert [one.straggler for one in verdicts] == [2, 2, 2]
    assert verdicts[1] == verdicts[2] and verdicts[0].seen == 3
    assert verdicts[0].reason == "storage" and verdicts[0].host == ("2" if spread else "one")
    assert server.num_keys() > (3 if spread else 0)
    for watch in ranks.watches:
        watch.close()
    assert not any(path.is_file() for path in tmp_path.rglob("*.json") if path.stem.isdecimal())


def test_a_store_that_ends_and_damaged_files_do_not_end_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(HashStore):
        def set(self, *_: Any) -> None:
            raise RuntimeError("the server has ended")

    (tmp_path / "one").mkdir()
    ranks = Ranks([tmp_path / "one"] * 3, Gone(), monkeypatch)
    ranks.look()
    folder = next((tmp_path / "one").glob("job-*"))
    (folder / "1.json").write_text("{")
    (folder / "7.json").write_text((folder / "2.json").read_text())
    ranks.watches[1]._posted_s = time.monotonic()  # it does not replace its file
    verdict = ranks.watches[0].look(Load(), Consumer(0, 3, 1), 1.0)
    assert verdict is not None
    ranks.watches[0]._posted_s = float("-inf")
    verdict = ranks.watches[0].look(Load(), Consumer(0, 3, 1), 1.0)
    assert verdict is not None and verdict.seen == 2 and ranks.watches[0].trouble == ""
    (folder / "verdict.json").write_text("{")
    ranks.watches[2]._posted_s = float("-inf")
    ranks.watches[2].look(Load(), Consumer(2, 3, 1), 1.0)
    assert ranks.watches[2].trouble


def test_no_job_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    watch = JobWatch(tmp_path)
    assert watch.look(Load(), Consumer(0, 1, 1), 1.0) is None
    assert watch.look(Load(), Consumer(0, 4, 1), 1.0) is None  # ranks that were given, by a launcher unknown to torch
    watch.close()
    assert list(tmp_path.iterdir()) == [] and boards.default_store() is None


def test_the_machine_is_looked_at(tmp_path: Path) -> None:
    seen = machine_look.look_at_machine(threading.get_native_id(), -1)
    assert seen.consumer.ran_ns > 0 and seen.threads.ran_ns >= seen.consumer.ran_ns and seen.gpu_mhz == 0
    assert replace(seen, consumer=Scheduled(), threads=Scheduled(), throttling=Throttling()).cpu_mhz == cpu_clock()
    for core in os.sched_getaffinity(0):
        clock = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"
        clock.parent.mkdir(parents=True)
        clock.write_text("2500000\n")
    assert cpu_clock(tmp_path) == 2500.0


class Runtime:
    """CUDA's runtime, of which only the mode of captures is asked for."""

    def __init__(self, status: int) -> None:
        self.status, self.modes = status, list[int]()

    def cudaThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
        self.modes.append(mode._obj.value)
        return self.status


def test_nccls_records_are_read_only_where_that_cannot_break_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: with a double of the runtime."""
    assert [backend for backend, _ in collectives._recorders()] in ([], ["gloo"])
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(library, "_dump_nccl_trace", lambda *_: b"", raising=False)
    good, bad = Runtime(0), Runtime(1)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: good)
    assert "nccl" in [backend for backend, _ in collectives._recorders()] and good.modes == [2]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: bad)
    assert "nccl" not in [backend for backend, _ in collectives._recorders()] and bad.modes == [2]

    def missing(name: str) -> Runtime:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert "nccl" not in [backend for backend, _ in collectives._recorders()]


def test_the_clock_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: with doubles of pynvml and torch's function."""
    asked: list[int] = []

    def clock_rate(device: int) -> int:
        asked.append(device)
        if device > 1:
            raise RuntimeError("lost")
        return 1980

    monkeypatch.setattr(torch.cuda, "clock_rate", clock_rate)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert [machine_look._gpu_clock(device) for device in (-1, 1, 2)] == [0.0, 1980.0, 0.0]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert machine_look._gpu_clock(1) == 0.0 and asked == [1, 2]
    assert machine_look.device_in_use() == -1

"""Prometheus and OpenTelemetry: a real scrape, a reader in memory, counters that never fall, clear refusals."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import DataLoader
from headrace._base.messages import install_command
from headrace._reports.metrics import publish
from headrace._reports.metrics.loader_snapshot import Look
from headrace._reports.metrics.loader_tracker import Followed
from headrace._reports.metrics.totals import Totals
from headrace._reports.ranks.job_watch import Consumer
from headrace._reports.ranks.rank_figures import JobVerdict
from support import WATCHDOG_S, blobs

prometheus_client = pytest.importorskip("prometheus_client")
parser = pytest.importorskip("prometheus_client.parser")
sdk = pytest.importorskip("opentelemetry.sdk.metrics")
export = pytest.importorskip("opentelemetry.sdk.metrics.export")


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("HEADRACE_PUBLISH", raising=False)
    yield
    publish._close_all()
    publish._loaders.forget()
    publish._loaders.consumer = Consumer()


Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(address: str | None) -> Values:
    """All values of an endpoint, as Prometheus reads them."""
    assert address is not None
    with urllib.request.urlopen(address, timeout=WATCHDOG_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in parser.text_string_to_metric_families(text)
        for one in family.samples
    }


def labels(number: int = 0, dataset: str = "EncodedImages", **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"loader": str(number), "dataset": dataset, "rank": "0", **more}.items()))


def test_a_scrape_counts_all_epochs() -> None:
    nine: Any = list(range(9))
    loader, torchs = DataLoader(blobs(24), 5, num_workers=1), DataLoader(nine, 2)
    with headrace.publish(top=False, prometheus=0) as published:
        assert published.path is None and published.address is not None
        assert published.address.startswith("http://127.0.0.1:")
        assert scraped(published.address) == {}
        for _ in range(3):
            assert len(list(loader)) == 5
        batches = iter(loader)
        next(batches)
        for epoch in range(2):
            list(torchs)
            torchs.set_epoch(epoch + 1)  # which makes torch's loader forget the epoch before
        found = scraped(published.address)
        stats = loader.stats()
    with pytest.raises(OSError):
        scraped(published.address)
    assert found["headrace_epochs_total", labels()] == 4
    assert found["headrace_batches_total", labels()] == 16
    assert found["headrace_samples_total", labels()] == 77
    assert found["headrace_failed_samples_total", labels()] == 0
    assert found["headrace_stage_samples_total", labels(stage="read")] >= 77
    assert found["headrace_read_bytes_total", labels()] > 3 * 24 * 500
    assert found["headrace_wait_seconds_total", labels()] > stats.waits.total_s
    assert found["headrace_stage_busy_seconds_total", labels(stage="decode")] > 0
    assert found["headrace_workers", labels()] == 1
    assert found["headrace_epoch", labels()] == 3
    assert found["headrace_progress", labels()] == pytest.approx(0.2)
    verdict = stats.verdict
    assert found["headrace_bottleneck", labels(bottleneck=verdict.bottleneck, certainty=verdict.certainty)] == 1
    assert found["headrace_batches_total", labels(1, "list")] == 10
    assert found["headrace_samples_total", labels(1, "list")] == 20  # a smaller last batch counts in full


def test_rank_0_reports_the_job() -> None:
    job = JobVerdict("job", 1.0, 8, 8, 3, "node", "quota", "sure", 0.25, {"0": 0.0, "3": 0.25}, "")
    with headrace.publish(top=False, prometheus=0) as published:
        publish._loaders.job = job
        found = scraped(published.address)
        publish._loaders.consumer = Consumer(3, 8)
        other = scraped(published.address)
    assert found["headrace_straggler", (("certainty", "sure"), ("rank", "3"), ("reason", "quota"))] == 1
    assert found["headrace_rank_cost", (("rank", "3"),)] == 0.25 and found["headrace_rank_cost", (("rank", "0"),)] == 0
    assert other == {} and published.job is None


def test_a_registry_of_the_program() -> None:
    registry = prometheus_client.CollectorRegistry()
    loader = DataLoader(blobs(6), 3)
    before = threading.active_count()
    with headrace.publish(top=False, prometheus=registry) as published:
        assert published.address is None and threading.active_count() == before
        list(loader)
        name = {"loader": "0", "dataset": "EncodedImages", "rank": "0"}
        assert registry.get_sample_value("headrace_batches_total", name) == 2
    assert registry.get_sample_value("headrace_batches_total", name) is None
    published.close()


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127.0.0.1:{port}: Address already in use; give another"):
            headrace.publish(prometheus=port)
    assert publish._published == []


@pytest.mark.parametrize("where", [-1, 65536, True, "localhost", "a:b", ":", 1.5, object()])
def test_what_is_no_port_is_refused(where: Any) -> None:
    with pytest.raises(ValueError, match="prometheus must be a port, 'HOST:PORT' or a"):
        headrace.publish(top=False, prometheus=where)


def test_a_host_can_be_named() -> None:
    with headrace.publish(top=False, prometheus="localhost:0") as published:
        assert scraped(published.address) == {}


def test_a_later_fault_ends_what_was_begun(tmp_path: Path) -> None:
    before = threading.active_count()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="File exists"):
        headrace.publish(folder=tmp_path / "file", prometheus=0)
    assert threading.active_count() == before


@pytest.mark.processes
def test_a_forked_process_does_not_keep_the_port() -> None:
    code = """
import os, socket, time, headrace
published = headrace.publish(top=False, prometheus=0)
port = int(published.address.split(":")[2].split("/")[0])
read, write = os.pipe()
if os.fork() == 0:
    os.close(write)
    os.read(read, 1)  # returns when the parent has ended
    os._exit(0)
published.close()
with socket.create_server(("127.0.0.1", port)):
    pass
os.write(write, b"x")
os.wait()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def collected(reader: Any) -> dict[tuple[str, tuple[tuple[str, str], ...]], Any]:
    """Value, unit and kind of each point that a reader in memory collects."""
    data = reader.get_metrics_data()
    found = {}
    for resource in [] if data is None else data.resource_metrics:
        for scope in resource.scope_metrics:
            assert scope.scope.name == "headrace" and scope.scope.version == headrace.__version__
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    key = metric.name, tuple(sorted(point.attributes.items()))
                    found[key] = point.value, metric.unit, type(metric.data).__name__
    return found


def test_opentelemetry_collects_the_same() -> None:
    reader = export.InMemoryMetricReader()
    provider = sdk.MeterProvider([reader])
    loader = DataLoader(blobs(24), 5, num_workers=1)
    with headrace.publish(top=False, prometheus=0, opentelemetry=provider) as published:
        assert collected(reader) == {}
        list(loader)
        list(loader)
        threading.Event().wait(0.25)  # one look serves all instruments of a collection
        found, same = collected(reader), scraped(published.address)
        assert found["headrace.samples", labels()] == (48, "{sample}", "Sum")
        assert found["headrace.workers", labels()] == (1, "{worker}", "Gauge")
        assert found["headrace.stage.busy", labels(stage="read")][1] == "s"
        values = {
            (name.replace(".", "_") + {"s": "_seconds", "By": "_bytes"}.get(unit, ""), key): value
            for (name, key), (value, unit, kind) in found.items()
        }
        for (name, key), value in same.items():
            assert values[name.removesuffix("_total"), key] == pytest.approx(value)
        assert len(values) == len(same) > 20
    assert collected(reader) == {}
    provider.shutdown()


def test_the_global_provider_may_come_later() -> None:
    from opentelemetry import metrics

    loader, reader = DataLoader(blobs(4), 2), export.InMemoryMetricReader()
    with headrace.publish(top=False, opentelemetry=True):
        list(loader)
        provider = sdk.MeterProvider([reader])
        metrics.set_meter_provider(provider)  # once per process
        assert collected(reader)["headrace.batches", labels()][0] == 2
    provider.shutdown()


def test_what_is_no_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="opentelemetry must be True or a MeterProvider, not 'http"):
        headrace.publish(top=False, opentelemetry="http://localhost:4317")


@pytest.mark.parametrize(
    ("option", "module", "said"),
    [
        ({"prometheus": 0}, "prometheus_client", install_command("prometheus", "prometheus_client")),
        ({"opentelemetry": True}, "opentelemetry", install_command("opentelemetry", "opentelemetry-api")),
    ],
)
def test_a_library_that_is_missing_is_one_sentence(
    option: dict[str, Any], module: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"needs .*, which is not installed: {re.escape(said)}$"):
        headrace.publish(top=False, **option)


def test_the_totals_of_a_loader_never_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a stage is an estimate from one sample in sixteen, so the next look may see less."""
    loader = DataLoader(blobs(24), 5)
    for _ in loader:
        pass
    followed, seen = Followed(loader, 0), []
    for seconds in (2.0, 1.5, 2.5):
        look = Look("Mine", 24, "native", 0, totals=Totals(1, 5, 24, stage_s={"decode": seconds}))
        monkeypatch.setattr("headrace._reports.metrics.loader_tracker.look_at", lambda *_, look=look: look)
        found = followed.look()
        assert found is not None
        seen.append(found[1].stage_s["decode"])
    assert seen == [2.0, 2.0, 2.5]


def test_counters_never_fall() -> None:
    first = Totals(1, 5, 10, stage_s={"decode": 2.0, "read": 1.0})
    later = Totals(1, 6, 12, stage_s={"decode": 1.9, "read": 1.5, "pillow": 0.5})
    assert later.at_least(first) == Totals(1, 6, 12, stage_s={"decode": 2.0, "read": 1.5, "pillow": 0.5})
    both = first.plus(later)
    assert (both.epochs, both.batches, both.stage_s) == (2, 11, {"decode": 3.9, "read": 2.5, "pillow": 0.5})

"""Loaders whose samples other machines make: the batches, errors and states are those without helpers."""

from __future__ import annotations

import os
import pickle
import random
import re
import shutil
import signal
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from faulty_proxy import Faults, proxy
from helped_loaders import assert_helped, eager, epochs, loader_of, work_of
from helper_servers import address_of, ended, helper, started_process
from torch.utils.data import TensorDataset

import headrace
from headrace import DataLoader
from headrace import transforms as T
from headrace._base.version import __version__
from headrace._cli.main import main
from headrace._helpers import helper_lane, messages, requests
from headrace._helpers.server import HelperServer
from support import (
    TENSOR,
    assert_same,
    data_folder,
    eventually,
    hard_files,
    pictures,
    threads_of_ours,
    train,
)

__all__ = ["eager"]

pytestmark = pytest.mark.usefixtures("eager")
COUNT = 96


def photographs(transform: Any = None) -> headrace.EncodedImages:
    """Photographs of 250 pixels; PNGs with private chunks, which are left to Pillow, among them."""
    return headrace.EncodedImages(pictures(24, 250) * 4, list(range(COUNT)), transform or train(96))


RECIPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "training": (train(96), {}),
    "channels_last": (train(96), {"memory_format": torch.channels_last}),
    "float16": (train(96), {"dtype": torch.float16}),
    "bytes": (T.Compose([T.RandomCrop(80, pad_if_needed=True), T.PILToTensor()]), {}),
    "large crop": (T.Compose([T.Resize(300), T.RandomCrop(224), *TENSOR]), {}),
    "gray": (T.Compose([T.RandomResizedCrop(64), T.Grayscale(), T.ToTensor()]), {}),
    "policy": (T.Compose([T.RandomResizedCrop(64), T.RandAugment(), *TENSOR]), {}),
    "colours": (T.Compose([T.RandomResizedCrop(64), T.ColorJitter(0.4, 0.4, 0.4), T.GaussianBlur(5), *TENSOR]), {}),
    "erased": (T.Compose([T.RandomResizedCrop(64), *TENSOR, T.RandomErasing(0.9)]), {}),
    "erased, channels_last": (
        T.Compose([T.RandomResizedCrop(64), *TENSOR, T.RandomErasing(0.9, value="random")]),
        {"memory_format": torch.channels_last},
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_batches_are_those_without_helpers(name: str) -> None:
    transform, options = RECIPES[name]
    with helper() as server:
        assert_helped(photographs(transform), [server], **options)


@pytest.mark.parametrize("count", [2, 5])
def test_any_number_of_helpers(count: int) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(helper(threads)) for threads in range(1, count + 1)]
        assert_helped(photographs(), servers, prefetch_factor=12, batch_size=7)


def test_files_of_all_kinds_and_broken_ones(tmp_path: Path) -> None:
    files = hard_files(data_folder("hard_dev")) * 2
    dataset = headrace.ImageFiles(files, list(range(len(files))), train(64))

    def outcome(*helpers: str) -> tuple[list[Any], list[str], list[str]]:
        loader = loader_of(dataset, *helpers, on_error="skip", max_errors=None, shuffle=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = list(loader)
        errors = [str(error) for error in loader.errors]
        return batches, errors, sorted({str(one.message) for one in caught if "skipped" not in str(one.message)})

    with helper(2) as server:
        with_helper, alone = outcome(address_of(server)), outcome()
        assert_same(with_helper[0], alone[0])
        assert with_helper[1:] == alone[1:]
        assert alone[1]
        assert eventually(lambda: server.samples > 20, 5.0) or outcome(address_of(server))


def test_a_helper_reads_the_files_of_a_dataset_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    (folder / "photographs").mkdir(parents=True)
    for number, data in enumerate(pictures(COUNT)):
        if number % 12 not in (3, 5):  # those are left to the loader
            (folder / f"photographs/{number:03}.jpg").write_bytes(data)
    mine = headrace.ImageFolder(folder, train(96))
    same = headrace.ImageFolder(Path(shutil.copytree(folder, tmp_path / "there")))
    changed = headrace.ImageFolder(Path(shutil.copytree(folder, tmp_path / "changed")))
    for path in (tmp_path / "changed").rglob("*.jpg"):
        path.write_bytes(path.read_bytes() + b"more")
    monkeypatch.setattr(requests, "_CHECKED", 1.0)
    sent = {}
    for its in (same, changed, None):
        with helper(dataset=its) as server:
            assert_helped(mine, [server])
            loader, numbers = loader_of(mine, address_of(server), prefetch_factor=9), random.getstate()
            assert any(len(list(loader)) and work_of(loader).samples for _ in epochs())
            assert random.getstate() == numbers
            work = work_of(loader)
            sent[its] = work.bytes / work.samples
    pixels = 96 * 96 * 3
    assert pixels < sent[same] < pixels + 300  # bytes a sample; the files have 2,000 and more
    assert min(sent[changed], sent[None]) > pixels + 1000


def test_a_state_resumes_without_helpers_and_with_them() -> None:
    dataset = photographs()
    with helper() as server:
        for first, second in ((address_of(server),), ()), ((), (address_of(server),)):
            loader = loader_of(dataset, *first)
            batches = iter(loader)
            begun = [next(batches) for _ in range(2)]
            other = loader_of(dataset, *second)
            other.load_state_dict(loader.state_dict())
            assert_same([*begun, *other], loader_of(dataset))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for a silent helper are short."""
    monkeypatch.setattr(helper_lane, "_WAIT_S", 0.3)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(damaged=0.05),
        Faults(cut=0.05),
        Faults(delay_s=0.03),
        Faults(rate=12.5e6),
        Faults(reset=0.05),
        Faults(damaged=0.01, cut=0.01, reset=0.01, delay_s=0.03, rate=12.5e6),
    ],
    ids=["damaged", "cut", "delayed", "slow", "reset", "all"],
)
@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore:helper .* is not used")  # a damaged answer may read like a refusal
def test_a_bad_network_loses_and_changes_nothing(faults: Faults) -> None:
    dataset = photographs()
    with helper() as server, proxy(int(server.server_address[1]), faults) as between:
        loader, alone = loader_of(dataset, f"127.0.0.1:{between.port}"), loader_of(dataset)
        for _ in epochs():
            assert_same(loader, alone)
            if server.samples > 40 and (between.injected or not (faults.damaged or faults.cut or faults.reset)):
                return
    pytest.fail(f"{server.samples} samples were made, with {between.injected} faults")


@pytest.mark.usefixtures("impatient")
def test_a_helper_that_sends_a_byte_now_and_then_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_lane, "_WATCH_S", 0.05)
    dataset = photographs()
    with helper() as server, proxy(int(server.server_address[1]), Faults(rate=50_000)) as between:
        loader, alone = loader_of(dataset, f"127.0.0.1:{between.port}"), loader_of(dataset)
        for _ in epochs():
            assert_same(loader, alone)
            if work_of(loader).failures:
                return
    pytest.fail("no request took too long")


@pytest.mark.processes
@pytest.mark.usefixtures("impatient")
def test_helpers_are_stopped_killed_and_started_again() -> None:
    dataset = photographs()
    process, port = started_process()
    try:
        loader, alone = loader_of(dataset, f"127.0.0.1:{port}", prefetch_factor=3), loader_of(dataset)

        def epoch(at: int, event: Any) -> bool:
            batches = []
            for number, batch in enumerate(loader):
                batches.append(batch)
                if number == at:
                    event()
            return assert_same(batches, alone) > 0

        assert any(epoch(9, int) and work_of(loader).samples for _ in epochs())
        epoch(1, lambda: process.send_signal(signal.SIGSTOP))
        epoch(1, lambda: process.send_signal(signal.SIGCONT))
        epoch(1, process.kill)
        ended(process)
        assert any(epoch(9, int) and work_of(loader).failures for _ in epochs())
        process = started_process(port)[0]
        assert any(epoch(9, int) and work_of(loader).samples for _ in epochs())
    finally:
        ended(process)


def assert_refused(dataset: Any, server: HelperServer) -> None:
    """Asserts that the epochs until a helper is given up are those without it."""
    loader, alone = loader_of(dataset, address_of(server)), loader_of(dataset)
    for _ in epochs():
        assert_same(loader, alone)
        if any(one.refused for one in loader.stats().helpers.values()):
            return
    pytest.fail("it is not given up")


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that refuses is asked again at once."""
    monkeypatch.setattr(helper_lane, "_RESTS_S", (0.0, 0.0))


@pytest.mark.usefixtures("restless")
def test_a_helper_with_another_token_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_TOKEN", "mine")
    dataset = photographs()
    with helper(token="its") as server:
        with pytest.warns(RuntimeWarning, match="is not used: the token is another one: both sides need the same"):
            assert_refused(dataset, server)
        assert server.samples == 0
    with helper(token="mine") as server:
        assert_helped(dataset, [server])


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("what", ["version", "processor", "protocol"])
def test_a_helper_that_differs_is_not_used(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = messages.Terms.of_this_machine()
    other: Any = {"version": "0.0.1", "processor": "s390x", "protocol": 0}[what]
    terms = {0: mine, 1: replace(mine, threads=1, **{what: other})}  # the loader's, and the helper's
    monkeypatch.setattr(messages.Terms, "of_this_machine", lambda threads=0, dataset="": terms[threads])
    dataset = photographs()
    with helper() as server:
        with pytest.warns(RuntimeWarning, match=rf"is not used: it has .* {other}, and this machine"):
            assert_refused(dataset, server)
        assert server.samples == 0


@pytest.mark.usefixtures("restless")
def test_a_helper_that_makes_other_pixels_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    make = HelperServer.make

    def make_darker(self: HelperServer, *request: Any) -> Any:
        made = make(self, *request)
        made[0] ^= 1
        return made

    monkeypatch.setattr(HelperServer, "make", make_darker)
    dataset = photographs()
    with helper() as server, pytest.warns(RuntimeWarning, match="it makes other pixels of a probe than this machine"):
        assert_refused(dataset, server)


def test_what_helpers_make_is_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")
    pytest.importorskip("rich", reason="rich is not installed")
    registry = library.CollectorRegistry()

    def seen_by_top() -> bool:
        assert main(["top", str(os.getpid()), "--once", "--folder", str(tmp_path)]) == 0
        seen = f"helper {address_of(server)}: [1-9][0-9]* samples, [0-9.]+/s, [0-9.]+ m?s a request, .* headrace [0-9]"
        return re.search(seen, " ".join(capsys.readouterr().out.split())) is not None

    with helper() as server, headrace.publish(folder=tmp_path, prometheus=registry, every_s=0.1):
        loader = loader_of(photographs(), address_of(server))
        assert any(len(list(loader)) and work_of(loader).samples for _ in epochs())
        found = {one.name: one.samples for one in registry.collect()}
        made = found["headrace_helper_samples"][0]
        assert made.labels["helper"] == address_of(server) and made.value >= work_of(loader).samples
        assert found["headrace_helper_transferred_bytes"][0].value > 96 * 96 * 3 * made.value
        assert found["headrace_helper_requests"][0].value > 0 < found["headrace_helper_request_seconds"][0].value
        assert [(one.labels["version"], one.value) for one in found["headrace_helper_works"]] == [(__version__, 1.0)]
        assert eventually(seen_by_top)


@pytest.mark.usefixtures("restless")
def test_a_helper_that_is_away_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_lane, "_SILENCE_S", 0.0)
    dataset = photographs()
    loader = loader_of(dataset, "127.0.0.1:9")
    with pytest.warns(RuntimeWarning, match="helper 127.0.0.1:9 has not answered for 0 s: .*refused"):
        assert any(len(list(loader)) and work_of(loader).failures > 1 for _ in epochs())
    assert "has not answered: [Errno 111]" in str(loader.stats())


def test_a_pickle_holds_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_TOKEN", "very secret\n")
    loader = loader_of(photographs(), "127.0.0.1:9")
    content = pickle.dumps(loader)
    assert b"very secret" not in content and "very secret" not in repr(loader.helpers)
    assert pickle.loads(content).helpers == loader.helpers
    monkeypatch.setenv("HEADRACE_TOKEN", "a\nb")
    with pytest.raises(ValueError, match="HEADRACE_TOKEN has characters that a header cannot hold"):
        loader_of(photographs(), "127.0.0.1:9")


def test_nothing_is_there() -> None:
    dataset = photographs()
    loader = loader_of(dataset, "127.0.0.1:9")
    assert_same(loader, loader_of(dataset))
    assert "helper 127.0.0.1:9 " in str(loader.stats())


def test_a_helper_that_was_too_slow_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_lane, "_FORGET_S", 0.05)
    with helper() as server:
        loader = loader_of(photographs(), address_of(server))
        for _ in epochs():
            list(loader)
            if server.samples:
                break
        engine: Any = loader._runner.engine
        lane = next(one for one in engine._lanes if isinstance(one, helper_lane.HelperLane))
        lane._pace.keep, before = 10**6, server.samples
        for _ in epochs():
            list(loader)
            if server.samples > before + 20:
                break
        assert server.samples > before + 20


def test_arguments() -> None:
    dataset = photographs()
    wrong: Any
    for wrong, error in (("a:1", TypeError), ([9917], TypeError), (["here"], ValueError), (["a:1", "a:1"], ValueError)):
        with pytest.raises(error, match="helpers"):
            DataLoader(dataset, helpers=wrong)
    with pytest.raises(TypeError, match="helpers"):
        DataLoader(TensorDataset(torch.zeros(5)), helpers=["a:1"], deferred_images=False)
    with pytest.warns(headrace.PerformanceWarning, match="helpers have no effect: it makes several outputs"):
        list(loader_of(photographs(T.Views([train(32), train(32)])), "127.0.0.1:9"))


def test_an_epoch_that_is_left_leaves_no_thread() -> None:
    dataset = photographs()
    with helper() as server:
        for _ in range(3):
            for _ in loader_of(dataset, address_of(server)):
                break
    assert eventually(lambda: not threads_of_ours())

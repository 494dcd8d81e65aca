"""Endurance of the GPU path: long runs on a GPU; without one, short runs on the emulated device.

HEADRACE_GPU_BATCHES: batches of each test (10,000 for a full run). FAIL_WITHOUT_CUDA=1: no GPU is a failure.
"""

from __future__ import annotations

import contextlib
import gc
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._base.native import core
from headrace._engine import destination
from support import output_of, pictures, silent_pillow, train

pytestmark = pytest.mark.processes

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "emulated"
BATCHES = int(os.environ.get("HEADRACE_GPU_BATCHES", "150" if GPU else "30"))
BATCH, SIZE = 8, 64
EPOCH = 30  # batches
SLEEP_CYCLES = 1_000_000  # half a millisecond of delay in the stream before a batch is used


@pytest.fixture(autouse=True)
def gpu_if_demanded() -> None:
    if os.environ.get("FAIL_WITHOUT_CUDA") == "1" and not GPU:
        pytest.fail("FAIL_WITHOUT_CUDA=1, and torch finds no NVIDIA GPU")


@pytest.fixture(scope="module")
def data() -> EncodedImages:
    return EncodedImages(list(pictures(24)) * 10, list(range(240)), train(SIZE))


@pytest.fixture(params=["cpu", "hardware", "cuda"])
def decoder(request: pytest.FixtureRequest) -> str:
    if GPU:
        try:
            destination.resolve_destination("cuda", request.param)
        except RuntimeError as error:
            pytest.skip(str(error))
    return request.param


def loader_of(data: EncodedImages, decoder: str, **options: Any) -> DataLoader:
    """A loader with reproducible epochs: it is seeded, and the decoder of each file is fixed."""
    fixed = {"seed": 3, "num_workers": 4, "deterministic": True, "persistent_workers": True}
    return DataLoader(data, device=DEVICE, decoder=decoder, **{"batch_size": BATCH} | fixed | options)


def digest(images: torch.Tensor) -> torch.Tensor:
    """A checksum on the device, which a changed, moved or missing element changes. Does not synchronise."""
    words = images.contiguous().view(-1).view(torch.int32).to(torch.int64)
    return (words * torch.arange(1, len(words) + 1, device=words.device)).sum()


def quiet(loader: DataLoader, epoch: int = 0) -> list[int]:
    """Digests of an epoch; each batch is read before the next one is requested."""
    loader.set_epoch(epoch)
    return [int(digest(images)) for images, _ in loader]


def busy() -> None:
    if GPU:
        torch.cuda._sleep(SLEEP_CYCLES)


def on(own_stream: bool) -> Any:
    return torch.cuda.stream(torch.cuda.Stream()) if GPU and own_stream else contextlib.nullcontext()


def epochs(loader: DataLoader) -> Iterator[tuple[int, Any]]:
    """Epochs 0, 1, 0, 1, ... with BATCHES batches in all."""
    for number in range(-(-BATCHES // EPOCH)):
        loader.set_epoch(number % 2)
        yield number % 2, loader


@pytest.mark.parametrize("own_stream", [False, True], ids=["default stream", "own stream"])
def test_tensors_freed_early_on_a_busy_stream(data: EncodedImages, decoder: str, own_stream: bool) -> None:
    with on(own_stream):
        loader = loader_of(data, decoder)
        expected = [quiet(loader, epoch) for epoch in (0, 1)]
        assert expected[0] != expected[1] and len(expected[0]) == EPOCH
        for epoch, batches in epochs(loader):
            sums = []
            for images, _ in batches:
                busy()
                sums.append(digest(images))
                del images
            assert [int(one) for one in sums] == expected[epoch]


def test_what_the_cpu_decodes_is_the_oracles(data: EncodedImages) -> None:
    assert quiet(loader_of(data, "cpu")) == quiet(DataLoader(data, BATCH, seed=3))


def test_two_loaders_at_once(data: EncodedImages, decoder: str) -> None:
    one, other = loader_of(data, decoder), loader_of(data, decoder, num_workers=2)
    expected = [quiet(one, epoch) for epoch in (0, 1)]
    for (epoch, first), (_, second) in zip(epochs(one), epochs(other), strict=True):
        sums: list[tuple[torch.Tensor, torch.Tensor]] = []
        for (a, _), (b, _) in zip(first, second, strict=True):
            busy()
            sums.append((digest(a), digest(b)))
            del a, b
        assert [(int(a), int(b)) for a, b in sums] == [(want, want) for want in expected[epoch]]


@pytest.mark.skipif(not GPU, reason="streams are a GPU's")
def test_a_stream_that_changes(data: EncodedImages, decoder: str) -> None:
    loader = loader_of(data, decoder)
    expected = quiet(loader)
    streams, sums = [torch.cuda.Stream() for _ in range(3)], []
    loader.set_epoch(0)
    iterator = iter(loader)
    for i in range(EPOCH):
        with torch.cuda.stream(streams[i % 3]):
            images, _ = next(iterator)
            busy()
            sums.append(digest(images))
            del images
    torch.cuda.synchronize()
    assert [int(one) for one in sums] == expected


@pytest.mark.skipif(not GPU, reason="a CUDA graph needs a GPU")
def test_graphs_captured_and_replayed_beside_the_loader(data: EncodedImages, decoder: str) -> None:
    loader = loader_of(data, decoder, prefetch_factor=8)
    expected = [quiet(loader, epoch) for epoch in (0, 1)]
    still = torch.zeros(BATCH, 3, SIZE, SIZE, device="cuda")
    for epoch, batches in epochs(loader):
        iterator, sums = iter(batches), []
        first = next(iterator)[0]  # from here on the loader's threads work
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            total = digest(still)
        still.copy_(first)
        graph.replay()
        sums.append(total.clone())
        for images, _ in iterator:
            still.copy_(images)
            graph.replay()
            sums.append(total.clone())
            del images
        assert [int(one) for one in sums] == expected[epoch]


# ---- damaged files ---------------------------------------------------------------------------------------------------


def fuzzed(count: int, seed: int = 0) -> list[bytes]:
    """Every second picture with some bytes changed, or cut."""
    random, made = np.random.default_rng(seed), []
    for i, data in enumerate(pictures(24) * (count // 24)):
        if i % 2 == 0:
            made.append(data)
            continue
        changed = bytearray(data)
        for at in random.integers(2, len(data), 1 + i % 4).tolist():
            changed[at] = int(random.integers(0, 256))
        made.append(bytes(changed[: int(random.integers(4, len(data)))] if i % 8 == 1 else changed))
    return made


def clean(data: bytes) -> bool:
    try:
        return core.jpeg_header(data)["not_plain"] is None
    except ValueError:
        return False


def test_fuzzed_files_cost_only_themselves(decoder: str) -> None:
    count = 24 * max(10, BATCHES // 100)
    files = fuzzed(count)
    recipe = T.Compose([T.Resize((40, 40)), T.ToImage()])
    labels = list(range(count))
    with silent_pillow(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about skipped samples
        options: dict[str, Any] = {"on_error": "skip", "max_errors": count, "num_workers": 4}
        exact = {
            int(label): image
            for images, labels_of in DataLoader(EncodedImages(files, labels, recipe), BATCH, **options)
            for image, label in zip(images, labels_of, strict=True)
        }
        ours = loader_of(EncodedImages(files, labels, recipe), decoder, on_error="skip", max_errors=count)
        seen = set()
        for images, labels_of in ours:
            for image, label in zip(images.cpu(), labels_of.tolist(), strict=True):
                seen.add(label)
                if decoder == "cpu" or not GPU:
                    assert torch.equal(image, exact[label]), label
                elif label % 2 == 0 and clean(files[label]):
                    assert int((image.int() - exact[label].int()).abs().max()) <= 4, label
    # All undamaged files are delivered. decoder="cpu" refuses what Pillow refuses; the others may be less strict.
    assert {label for label in exact if label % 2 == 0} <= seen
    assert seen == set(exact) or decoder != "cpu"


# ---- memory and exit -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not GPU, reason="the memory of a GPU")
@pytest.mark.parametrize("persistent", [True, False], ids=["one loader", "a loader an epoch"])
def test_memory_is_flat_over_twenty_epochs(data: EncodedImages, decoder: str, persistent: bool) -> None:
    used: list[int] = []
    kept = loader_of(data, decoder)
    for epoch in range(20):
        loader = kept if persistent else loader_of(data, decoder, persistent_workers=False)
        loader.set_epoch(epoch)
        for images, _ in loader:
            digest(images)
        del loader, images
        gc.collect()
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        used.append(total - free)
    assert max(used[5:]) - max(used[:5]) < 2**24, used


SCRIPT = """
from headrace import EncodedImages, DataLoader
from support import pictures, train
data = EncodedImages(list(pictures(24)) * 10, list(range(240)), train(64))
loader = DataLoader(data, 8, num_workers=4, device={device!r}, decoder={decoder!r}, persistent_workers={persistent})
iterator = iter(loader)
for _ in range(3):
    images, labels = next(iterator)
{rest}
"""
ENDS = {
    "with a live iterator": "",
    "with an exception": "raise SystemExit(0)",
    "without tear-down": "import os; os._exit(0)",
}


@pytest.mark.parametrize("rest", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("persistent", [True, False])
def test_processes_end_cleanly(decoder: str, rest: str, persistent: bool) -> None:
    script = SCRIPT.format(device=DEVICE, decoder=decoder, persistent=persistent, rest=rest)
    assert output_of(script) == ""

"""Fixtures: torchvision, a feeder that runs it on headrace's draws, and test images."""

from __future__ import annotations

import ctypes
import gc
import importlib
import itertools
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
from PIL import Image

from headrace._base import ranks
from headrace._cli.demo.photo_folder import make_photo_folder
from headrace._engine import destination
from headrace._loading.fallback import opened_images
from headrace._recipe.arithmetic import tensor_rule
from places import place
from support import EMULATED_BY_A_GPU, PHOTOS, data_folder, eventually, hard_files, judge, threads_of_ours
from torchvision_feed import Feeder
from torchvision_shim import import_torchvision

hypothesis.settings.register_profile("quick", max_examples=15)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

os.environ["HEADRACE_ENTRY_POINTS_FOLDER"] = ""  # what other runs have learned stays out of the tests
__all__ = ["place"]  # a fixture, too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs files with long tests first: the last minutes are then many short ones, which the workers share out.

    A worker of pytest-xdist begins with one of as many equal parts of the list as there are workers.
    """
    long = {item.path: False for item in items if item.get_closest_marker("slow")}
    long |= {item.path: True for item in items if item.get_closest_marker("trainers")}
    first = sorted((item for item in items if item.path in long), key=lambda item: not long[item.path])
    short = [item for item in items if item.path not in long]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for _, file in itertools.groupby(first, lambda item: item.path):
        min(parts, key=len).extend(file)
    for number, part in enumerate(parts):
        left = len(items) - sum(map(len, parts[:number]))
        share = max(left // (workers - number) - len(part), 0)
        part += short[:share]
        del short[:share]
    items[:] = [item for part in parts for item in part] + short


class _Memory:
    """The C library's unused memory.

    A fork copies page tables, and there are thousands: of a process with 2 GB it takes 50 ms, and 50 more at its end;
    with 0.4 GB, 6 and 7.
    """

    _ARENA_MAX = -8  # M_ARENA_MAX of mallopt: by default each of many threads has 64 MB of its own

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self._trim = getattr(libc, "malloc_trim", None)  # of glibc
        if self._trim is not None:
            libc.mallopt(self._ARENA_MAX, 2)

    def give_back(self) -> None:
        if self._trim is not None:
            self._trim(0)


_memory = _Memory()


def pytest_collection_finish() -> None:
    """Keeps the modules and the tests from the collector: a collection, also one in a forked worker, is then quick."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _said_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks the warnings that come once per process as issued: pytest would turn them into errors."""
    monkeypatch.setattr(opened_images, "_warned", True)
    monkeypatch.setattr(ranks, "_warned", True)


@pytest.fixture(scope="module", autouse=True)
def _no_threads_are_left() -> Iterator[None]:
    """Fails where the tests of a file leave a loader's threads: a later test would find them."""
    yield
    nasty = sys.modules.get("nasty_exceptions")
    if nasty is not None:
        nasty.forget_frames()
    assert eventually(lambda: not threads_of_ours(), seconds=120), f"threads are left: {threads_of_ours()}"
    _memory.give_back()


@pytest.fixture(scope="session", autouse=True)
def _emulated_on_a_gpu() -> Iterator[None]:
    """HEADRACE_EMULATED=cuda: where a test names the emulated device, it runs on a GPU."""
    if not EMULATED_BY_A_GPU:
        yield
        return

    def on_a_gpu(decoder: str, deterministic: bool) -> destination.Destination:
        return destination.resolve_destination("cuda", "cpu" if decoder == "auto" else decoder, deterministic)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(destination, "_resolve_emulated", on_a_gpu)
        on_it = destination.resolve_destination(destination.EMULATED, "cpu")
        assert (on_it.kind, on_it.way) == ("cuda", "fused"), on_it.why  # else the CPU would pass these tests
        yield


@pytest.fixture(scope="session")
def torchvision() -> ModuleType:
    """torchvision, or a skip where it is not installed."""
    try:
        return import_torchvision()
    except ImportError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def timm(torchvision: ModuleType) -> ModuleType:
    """timm.data, or a skip where timm is not installed."""
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("timm.data")


@pytest.fixture(params=["v1", "v2"])
def T(request: pytest.FixtureRequest, torchvision: ModuleType) -> ModuleType:
    """torchvision's transforms, v1 and v2."""
    return torchvision.transforms if request.param == "v1" else torchvision.transforms.v2


@pytest.fixture
def native_tensors(torchvision: ModuleType) -> None:
    """A skip where torch's arithmetic for byte tensors has no native twin."""
    if tensor_rule.find_rounding(16, 16) is None:
        pytest.skip("torch has another arithmetic on this processor, so steps on byte tensors are called in Python")


@pytest.fixture
def feeder(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Feeder:
    """Runs torchvision's transforms on headrace's draws."""
    return Feeder(monkeypatch)


@pytest.fixture(scope="session")
def imagenet_dev() -> Path:
    """An ImageFolder of 160 real ImageNet files."""
    return data_folder("imagenet_dev")


@pytest.fixture(scope="session")
def hard_dev() -> Path:
    """Odd and broken files, with a MANIFEST.tsv."""
    return data_folder("hard_dev")


@pytest.fixture(scope="session")
def photographs() -> list[Path]:
    """The photographs that ship with headrace."""
    return sorted(PHOTOS.glob("*.jpg"))


@pytest.fixture(scope="session")
def images(photographs: list[Path]) -> list[Image.Image]:
    """Eleven small RGB images, resized from photographs to many shapes: wide, tall, tiny, odd."""
    shapes = [
        (90, 60),
        (60, 90),
        (64, 64),
        (133, 37),
        (37, 133),
        (7, 5),
        (1, 1),
        (3, 200),
        (200, 3),
        (2, 250),
        (81, 80),
    ]
    made = []
    for shape, path in zip(shapes, photographs, strict=False):
        with Image.open(path) as photograph:
            made.append(photograph.convert("RGB").resize(shape, Image.Resampling.BOX))
    return made


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 images in folders of classes, as the demo lays them out."""
    return make_photo_folder(tmp_path_factory.mktemp("demo") / "set", files=60).train


@pytest.fixture(scope="module", params=["photographs", "imagenet_dev", "hard_dev"])
def files(request: pytest.FixtureRequest) -> list[Path]:
    """All files of a collection that Pillow decodes."""
    collection = request.getfixturevalue(request.param)
    if request.param == "photographs":
        return collection
    if request.param == "hard_dev":
        return judge(hard_files(collection))[0]
    return sorted(path for path in collection.rglob("*") if path.is_file())

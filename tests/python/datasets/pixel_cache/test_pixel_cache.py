"""Samples of a PixelCache: made once for all processes, equal each time, within a limit, and in memory once."""

from __future__ import annotations

import io
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from headrace import PixelCache
from headrace.datasets.pixel_cache.sample_format import NotKept, decoded_sample, encoded_sample
from headrace.datasets.pixel_cache.shared_store import SharedStore
from support import assert_same, eventually, pictures

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory without a name, which processes share")
COUNT = 24


class Decoded(Dataset[Any]):
    """Pictures as arrays; notes each call in a file."""

    def __init__(self, log: Path | None = None, count: int = COUNT) -> None:
        self.log, self.count, self.classes = log, count, ["a", "b"]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(f"{index}\n")
        with Image.open(io.BytesIO(pictures(COUNT)[index % COUNT])) as image:
            return np.array(image.convert("RGB").resize((32, 24))), index


def crop(sample: Any) -> Any:
    pixels, label = sample
    at = int(torch.randint(8, ()))
    pixels += 1  # in place, which must not change what is kept
    return torch.from_numpy(pixels[:16, at : at + 16]), label + random.randrange(3)


class Plain(Dataset[Any]):
    """The same program without a cache."""

    def __getitem__(self, index: int) -> Any:
        return crop(Decoded()[index])

    def __len__(self) -> int:
        return COUNT


def epochs(loader: Any, count: int = 3) -> list[Any]:
    torch.manual_seed(3)
    random.seed(3)
    return [list(loader) for _ in range(count)]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.parametrize("kind", [headrace.DataLoader, TorchDataLoader])
def test_epochs_are_those_without_a_cache(kind: Any, workers: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "num_workers": workers}
    cache = PixelCache(Decoded(tmp_path / "log"), "10 MB", crop)
    assert_same(epochs(kind(cache, **options)), epochs(TorchDataLoader(Plain(), **options)))
    made = (tmp_path / "log").read_text().split()
    assert sorted(map(int, made)) == list(range(COUNT))  # each once, by any process
    kept = cache.kept()
    assert kept.samples == COUNT and not kept.full and kept.refused == ""
    assert COUNT * 24 * 32 * 3 < kept.bytes < COUNT * (24 * 32 * 3 + 256)
    assert cache.classes == ["a", "b"] and len(cache) == COUNT


@pytest.mark.processes
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_way_to_start_workers(method: str, tmp_path: Path) -> None:
    cache = PixelCache(Decoded(tmp_path / "log"), "10 MB")
    loader = TorchDataLoader(cache, 4, num_workers=2, multiprocessing_context=method)
    for _ in range(2):
        for pixels, labels in loader:
            for one, label in zip(pixels, labels, strict=True):
                assert np.array_equal(one.numpy(), Decoded()[int(label)][0])
    assert cache.kept().samples == COUNT and len((tmp_path / "log").read_text().split()) == COUNT


class Opened(Dataset[Any]):
    """Images that headrace defers in workers."""

    def __init__(self, convert: Any) -> None:
        self.convert = convert

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        image = Image.open(io.BytesIO(pictures(COUNT)[index])).convert("RGB").resize((32, 24))
        return self.convert(image)


def stack(samples: list[Any]) -> Any:
    tensors = [one if isinstance(one, torch.Tensor) else torch.from_numpy(np.array(one)) for one in samples]
    return type(samples[0]).__name__, torch.stack([one.as_subclass(torch.Tensor) for one in tensors])


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.parametrize("kind", ["image", "tensor", "v2"])
def test_deferred_values_are_made(kind: str, workers: int, torchvision: Any) -> None:
    from torchvision.transforms import functional, v2

    convert = {"image": None, "tensor": functional.pil_to_tensor, "v2": v2.functional.to_image}[kind]
    opened = Opened(convert or Image.Image.copy)
    expected = list(TorchDataLoader(opened, 4, collate_fn=stack))
    cache = PixelCache(opened, "1 MB")
    loader = headrace.DataLoader(cache, 4, collate_fn=stack, num_workers=workers)
    for _ in range(2):
        found = list(loader)
        assert_same([batch for _, batch in found], [batch for _, batch in expected])
    assert [name for name, _ in found] == [name for name, _ in expected]  # the classes, also of what was kept
    assert cache.kept().samples == COUNT and cache.kept().refused == ""


def test_a_limit(tmp_path: Path) -> None:
    each = 24 * 32 * 3
    cache = PixelCache(Decoded(tmp_path / "log"), 10 * (each + 128))
    for _ in range(2):
        for number in range(COUNT):
            assert np.array_equal(cache[number][0], Decoded()[number][0])
    kept = cache.kept()
    assert kept.full and 9 <= kept.samples <= 10 and kept.bytes <= 10 * (each + 128)
    assert len((tmp_path / "log").read_text().split()) == COUNT + COUNT - kept.samples


SAMPLES: dict[str, Any] = {
    "arrays": (np.arange(12, dtype=np.int16).reshape(3, 4), np.empty((0, 3), np.float32), np.array(2.5)),
    "big endian": np.arange(5, dtype=">i4"),
    "transposed": np.arange(12).reshape(3, 4).T,
    "numbers": {"a": np.float32(0.1), "b": 0.1, "c": float("inf"), "d": True, "e": None, "f": 2**70, "g": "é"},
    "tensors": [torch.arange(6.0).view(2, 3).T, torch.zeros(0), torch.tensor(3), torch.tensor([True])],
    "halves": torch.rand(3).half(),
    "bytes": (b"", b"\xff\0", [[b"x"], ()]),
    "images": [Image.new(mode, (9, 5), 1) for mode in ("1", "L", "RGB", "RGBA", "CMYK", "I", "F", "LA", "I;16")],
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_kept_comes_back(name: str) -> None:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, (tuple, list)):
            return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, dict):
            return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
        if isinstance(a, torch.Tensor):
            return a.dtype == b.dtype and torch.equal(a, b)
        if isinstance(a, (np.ndarray, np.generic)):
            return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return type(a) is type(b) and a == b

    data = memoryview(b"".join(bytes(part) for part in encoded_sample(SAMPLES[name])))
    assert same(decoded_sample(data), SAMPLES[name])


def test_information_of_images_is_kept() -> None:
    image = Image.new("RGB", (3, 2))
    image.info = {"dpi": (72, 72), "icc_profile": b"abc", "exif": b"Exif"}
    again = decoded_sample(memoryview(b"".join(bytes(part) for part in encoded_sample(image))))
    assert again.info == image.info and again == image


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ({1: 2}, "dict"),
        (object(), "builtins.object"),
        (np.array([object()]), "numpy.ndarray"),
        (Image.new("P", (2, 2)), "mode P"),
        (torch.zeros(2, requires_grad=True), "not plain"),
        ((torch.zeros(2, dtype=torch.complex64),), "torch.Tensor"),
    ],
)
def test_what_is_not_kept_is_made_each_time(sample: Any, words: str) -> None:
    with pytest.raises(NotKept, match=words):
        encoded_sample(sample)

    class One(Dataset[Any]):
        calls = 0

        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Any:
            self.calls += 1
            return sample

    one = One()
    cache = PixelCache(one, 1000)
    assert cache[0] is cache[0] is sample and one.calls == 3 - 1
    assert words in cache.kept().refused and cache.kept().samples == 0


def test_random_numbers_in_the_dataset_are_refused() -> None:
    class Drawing(Decoded):
        def __getitem__(self, index: int) -> Any:
            return [random.random, np.random.rand, lambda: float(torch.rand(()))][index % 3]()

    for number in range(3):
        with pytest.raises(RuntimeError, match=rf"Drawing\[{number}\] draws random numbers.* transform="):
            PixelCache(Drawing(), 1000)[number]


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
from test_pixel_cache import Decoded
from headrace import PixelCache
cache = PixelCache(Decoded(__import__("pathlib").Path(sys.argv[3])), "1 MB", name=sys.argv[1])
print(sum(int(cache[i][0].sum()) for i in range(len(cache))), cache.kept().samples, flush=True)
input()
"""


@pytest.mark.processes
def test_processes_share_a_name(tmp_path: Path) -> None:
    name, file = f"test-{os.getpid()}", Path(f"/dev/shm/headrace-{os.getuid()}-test-{os.getpid()}.pixels")
    here = PixelCache(Decoded(tmp_path / "log"), "1 MB", name=name)
    assert file.stat().st_mode & 0o777 == 0o600
    total = sum(int(here[i][0].sum()) for i in range(COUNT))
    folders = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, *sys.path])}
    command = [sys.executable, "-c", PROGRAM, name, folders[0], str(tmp_path / "other")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as other:
        assert other.stdout is not None
        assert other.stdout.readline().split() == [str(total), str(COUNT)]
        assert not (tmp_path / "other").exists()  # it has made none
        with pytest.raises(ValueError, match="keep the samples of another dataset"):
            PixelCache(Decoded(count=5), "1 MB", name=name)
        assert PixelCache(Decoded(), "1 MB", name=name)._store is here._store
        del here
        assert file.exists()
        other.communicate("\n")
    assert eventually(lambda: not file.exists(), seconds=60)


def test_what_a_killed_run_has_left_is_not_used(tmp_path: Path) -> None:
    name = f"left-{os.getpid()}"
    file = Path(f"/dev/shm/headrace-{os.getuid()}-{name}.pixels")
    file.write_bytes(b"\xff" * 5000)
    file.chmod(0o600)
    cache = PixelCache(Decoded(tmp_path / "log"), "1 MB", name=name)
    assert cache.kept().samples == 0 and np.array_equal(cache[1][0], Decoded()[1][0])
    del cache
    assert eventually(lambda: not file.exists(), seconds=60)  # a thread removes it
    file.write_bytes(b"")
    file.chmod(0o666)
    with pytest.raises(OSError, match="no file of this user alone"):
        PixelCache(Decoded(), "1 MB", name=name)
    file.unlink()


def test_a_writer_that_ends_leaves_nothing_to_read() -> None:
    store = SharedStore(3, 1000, None, bytes(32))

    class Fails(bytes):
        def __len__(self) -> int:
            return 10

    with pytest.raises(IndexError, match="wrong size"):
        store.put(0, [Fails(b"abc")])
    assert store.get(0) is None and not store.put(0, [b"again"])
    assert store.put(1, [b"a", b"bc"]) and store.put(1, [b"other"])
    assert bytes(store.get(1) or b"") == b"abc" and store.kept == 1
    copied = pickle.loads(pickle.dumps(store))
    assert bytes(copied.get(1)) == b"abc" and copied.put(2, [b"xyz"]) and bytes(store.get(2) or b"") == b"xyz"


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="memory must be a number of bytes"):
        PixelCache(Decoded(), "much")
    for name in ("", "../x", "a/b", "x" * 101):
        with pytest.raises(ValueError, match="name must be of letters"):
            PixelCache(Decoded(), 1000, name=name)

"""Tar shards over HTTP: the batches of the same shards on a disk, or one error that says what to do."""

from __future__ import annotations

import pickle
import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from object_stores import EACH, PATTERN, SHARDS, Faults, ObjectServer, batches, first_error, transform, write_shards
from PIL import Image

import headrace
from headrace import Cache, Network, TarShards
from headrace import transforms as T
from headrace._base.messages import install_command
from headrace._storage.remote.fetcher_registry import Traffic, traffic
from headrace.datasets.tar_shards.tar_index import parse_sidecar, store
from support import assert_same, output_of

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"))


@pytest.mark.parametrize("cache", [None, "disk", "memory:100 MB"])
@pytest.mark.parametrize("label", ["cls", "txt", ["txt", "cls"]])
def test_equal_to_shards_on_a_disk(folder: Path, tmp_path: Path, cache: str | None, label: str | list[str]) -> None:
    local = TarShards(str(folder / PATTERN), label=label, transform=transform(), index=False)
    expected = batches(local)
    kept = str(tmp_path / "cache") if cache == "disk" else cache
    with ObjectServer(folder) as server:
        once = Network(hedge=0)
        far = TarShards(f"{server.url}/{PATTERN}", label=label, transform=transform(), cache=kept, network=once)
        assert list(far.keys) == list(local.keys)
        for workers in (2, 0):
            assert_same(batches(far, workers), expected)
        assert far[5][1] == local[5][1] and far.read(5) == local.read(5)
        before = server.requests()
        batches(far)
        assert (server.requests() == before) == (cache is not None)  # everything was kept, or nothing


def test_neighbours_share_a_request(folder: Path) -> None:
    with ObjectServer(folder) as server:
        once = Network(hedge=0)
        far = TarShards(f"{server.url}/{PATTERN}", label="txt", transform=transform(), index=False, network=once)
        before = server.requests()
        loader = headrace.DataLoader(far, 8, num_workers=2)
        assert len(list(loader)) == SHARDS * EACH // 8
        assert server.requests() - before <= 4 * SHARDS * EACH // 8  # of 96 ranges, half of them pictures


def test_other_datasets_of_them(folder: Path) -> None:
    local = TarShards(str(folder / PATTERN), transform=transform(), index=False)
    with ObjectServer(folder) as server:
        far = TarShards(f"{server.url}/{PATTERN}", transform=transform())
        makes: tuple[Callable[[TarShards], Any], ...] = (
            lambda one: torch.utils.data.Subset(one, range(5, 40, 3)),
            lambda one: torch.utils.data.ConcatDataset([one, torch.utils.data.Subset(one, range(9))]),
            lambda one: headrace.Fields({"image": one, "number": np.arange(len(one))}),
        )
        for make in makes:
            assert_same(batches(make(far)), batches(make(local)))
        twice = T.Compose([T.Views([transform(), transform()])])
        views = [
            TarShards(urls, transform=twice, index=False) for urls in (f"{server.url}/{PATTERN}", str(folder / PATTERN))
        ]
        assert_same(batches(views[0]), batches(views[1]))
        assert headrace.DataLoader(far, 8, num_workers=1).verify(2).samples == 16


def test_resumes_at_the_batch(folder: Path) -> None:
    with ObjectServer(folder) as server:
        far = TarShards(f"{server.url}/{PATTERN}", transform=transform())
        loader = headrace.DataLoader(far, 8, shuffle=True, num_workers=2, seed=0)
        batch = iter(loader)
        done = [next(batch) for _ in range(2)]
        state = loader.state_dict()
        assert "127.0.0.1" not in repr(state)
        again = headrace.DataLoader(pickle.loads(pickle.dumps(far)), 8, shuffle=True, num_workers=2, seed=0)
        again.load_state_dict(state)
        assert_same(done + list(again), batches(far))


def test_torchs_workers_read_them(folder: Path) -> None:
    local = TarShards(str(folder / PATTERN), index=False)
    with ObjectServer(folder) as server:
        far = TarShards(f"{server.url}/{PATTERN}")
        loader = torch.utils.data.DataLoader(far, 8, num_workers=2, collate_fn=_sizes)
        assert [one for batch in loader for one in batch] == [local[i][0].size for i in range(len(local))]


def _sizes(samples: list[tuple[object, int]]) -> list[object]:
    return [image.size for image, _ in samples]  # type: ignore[attr-defined]


@pytest.mark.processes
def test_a_forked_child_opens_connections_of_its_own(folder: Path) -> None:
    with ObjectServer(folder) as server:
        said = output_of(
            f"""
import os, sys
sys.path[:0] = {[str(Path(__file__).parents[number]) for number in (0, 2)]!r}
from headrace import DataLoader, TarShards
from object_stores import batches, transform
far = TarShards({server.url!r} + "/000.tar", transform=transform())
expected = batches(far)
loader = DataLoader(far, 8, shuffle=True, num_workers=2, seed=0)
list(loader)
child = os.fork()
if child == 0:
    same = all((a[0] == b[0]).all() for a, b in zip(batches(far), expected, strict=True))
    print("same" if same and len(list(loader)) == 2 else "other", flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
        )
    assert "same" in said


def test_an_index_beside_the_shard_is_used(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "bucket")
    expected = batches(TarShards(str(folder / PATTERN), transform=transform()))  # writes the indexes
    with ObjectServer(folder) as server:
        far = TarShards(f"{server.url}/{PATTERN}", transform=transform(), network=Network(hedge=0))
        gets = sum(server.counts[f"GET /00{i}.tar"] for i in range(SHARDS))
        assert gets <= 17  # labels of some samples, and one that looks whether ranges are read
        assert_same(batches(far), expected)


def lie(sidecar: Path, field: str, change: Callable[[Any], Any]) -> None:
    index = parse_sidecar(sidecar.read_bytes())
    assert index is not None
    store(sidecar, replace(index, **{field: change(getattr(index, field))}))


def of_one_size(path: Path) -> None:
    """Bitmaps, whose places an index can exchange without a member of another length being there."""
    with tarfile.open(path, "w") as out:
        for i in range(16):
            held = BytesIO()
            Image.new("RGB", (8, 8), (i, 0, 0)).save(held, "BMP")
            for name, data in ((f"{i:02}.bmp", held.getvalue()), (f"{i:02}.cls", b"%02d" % i)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                out.addfile(info, BytesIO(data))


def exchanged(values: Any) -> Any:
    made = values.copy()
    made[[4, 6]] = made[[6, 4]]
    return made


def first_error_of(url: str, **options: Any) -> str:
    try:
        return first_error(TarShards(url, transform=transform(), **options))
    except (OSError, ValueError) as error:
        return str(error)


@pytest.mark.parametrize("cached", [False, True])
def test_an_index_that_lies_is_an_error(tmp_path: Path, cached: bool) -> None:
    """The cache may hold the bytes under honest names already, and must not keep the index."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    of_one_size(folder / "a.tar")
    sidecar = folder / "a.tar.index.npz"
    TarShards(str(folder / "a.tar"))
    honest = sidecar.read_bytes()
    cache: dict[str, Any] = {"cache": Cache(tmp_path / "cache", memory="1 MB")} if cached else {}
    with ObjectServer(folder) as server:
        url = f"{server.url}/a.tar"
        expected = batches(TarShards(url, transform=transform(), **cache))
        for field, change, label in (
            ("offset", lambda values: values + 512, "cls"),
            ("offset", lambda values: values + 512, None),
            ("offset", exchanged, None),
            ("offset", lambda values: np.concatenate([values[2:], values[:2]]), None),
            ("number", lambda values: np.concatenate([values[2:], values[:2]]), "cls"),
        ):
            sidecar.write_bytes(honest)
            lie(sidecar, field, change)
            for path in (tmp_path / "cache").rglob("indexes/*.npz"):
                path.unlink()
            said = first_error_of(url, label=label, **cache)
            assert ("does not fit the shard" in said or "does not hold the number" in said) and "a.tar" in said
            if label is not None:
                assert not list((tmp_path / "cache").rglob("indexes/*.npz"))
            if label is None:
                dataset = TarShards(url, label=None, **cache)
                with pytest.raises(OSError, match="does not fit the shard"):
                    list(map(dataset.__getitem__, range(16)))
        sidecar.write_bytes(honest)
        for path in (tmp_path / "cache").rglob("indexes/*.npz"):
            path.unlink()
        assert_same(batches(TarShards(url, transform=transform(), **cache)), expected)


@pytest.mark.parametrize("ignore_if_match", [False, True])
def test_a_changed_object_is_an_error(tmp_path: Path, ignore_if_match: bool) -> None:
    folder = write_shards(tmp_path / "bucket", 1)
    with ObjectServer(folder, Faults(ignore_if_match=ignore_if_match)) as server:
        far = TarShards(f"{server.url}/000.tar", transform=transform())
        data = (folder / "000.tar").read_bytes()
        (folder / "000.tar").write_bytes(data[:-512] + b"\0" * 512)  # the same size, written later
        assert "was changed after it was indexed" in first_error(far)
        (folder / "000.tar").write_bytes(data[:4096])
        assert "was changed after it was indexed" in first_error(far)


def test_errors_show_no_credentials(folder: Path, tmp_path: Path) -> None:
    with ObjectServer(folder, Faults(forbid="001.tar")) as server:
        secret = server.url.replace("://", "://user:hunter2@") + "/{000..001}.tar?X-Amz-Signature=abc&token=def"
        with pytest.raises(PermissionError, match=r"001\.tar: no permission") as caught:
            TarShards(secret)
        with pytest.raises(FileNotFoundError, match="no such object"):
            TarShards(f"{server.url}/9.tar")
        far = TarShards(secret.replace("001", "000"), transform=transform())
        server.faults.error = 1.0
        assert far._remote is not None
        far._remote.network = headrace.Network(patience=0.5)
        shown = [str(caught.value), first_error(far), repr(far), far.location(0), far.identity(0)]
        assert "given up after" in shown[1]
        for text in shown:
            assert not any(word in text for word in ("user", "hunter2", "abc", "def", "Signature")), text


def test_arguments(folder: Path) -> None:
    with pytest.raises(ValueError, match="are for URLs"):
        TarShards(str(folder / "000.tar"), storage_options={})
    with pytest.raises(ValueError, match="some of the paths are URLs"):
        TarShards([str(folder / "000.tar"), "https://host/000.tar"])
    with pytest.raises(ValueError, match="a pattern is not looked up"):
        TarShards("https://host/*.tar")
    with pytest.raises(ValueError, match="knows no protocol"):
        TarShards("nonsense://host/0.tar")
    with (
        ObjectServer(folder, Faults(ignore_ranges=True)) as server,
        pytest.raises(OSError, match="does not read ranges"),
    ):
        TarShards(f"{server.url}/000.tar")


def test_without_fsspec_one_sentence_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(ImportError, match=re.escape(install_command("remote", "fsspec[http]"))):
        TarShards("https://host/000.tar")
    with pytest.raises(ImportError, match=re.escape(install_command("s3", "s3fs"))):  # it brings fsspec
        TarShards("s3://bucket/000.tar")
    assert len(TarShards(str(folder / "000.tar"), index=False)) == EACH


def test_stats_count_requests_and_hits(folder: Path) -> None:
    with ObjectServer(folder) as server:
        never_twice = Network(hedge=0)
        far = TarShards(f"{server.url}/{PATTERN}", transform=transform(), cache="memory:10 MB", network=never_twice)
        loader = headrace.DataLoader(far, 8, num_workers=2)
        list(loader)
        between, served = _traffic(), server.requests()
        assert between.fetched == SHARDS * EACH and between.bytes > 0
        list(loader)
        after = _traffic()
        assert after.from_memory - between.from_memory == SHARDS * EACH
        assert after.requests == between.requests and server.requests() == served and after.hit_rate == 0.5
        assert "from the caches" in str(loader.stats())


def _traffic() -> Traffic:
    found = traffic()
    assert found is not None
    return found

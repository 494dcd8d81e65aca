"""A bucket of many shards with one index for all: few requests, the same batches, and nothing that a change hides."""

from __future__ import annotations

from pathlib import Path

import pytest
from object_stores import ObjectServer, batches, first_error, transform, write_shards

from headrace import Network, TarShards
from headrace._cli.main import main
from support import assert_same

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")

COUNT = 20
MANY = "{000..019}.tar"
BESIDE = "headrace.index.npz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_shards(tmp_path / "bucket", COUNT)


def run(*arguments: str) -> int:
    return main(["index", *arguments])


def far(server: ObjectServer, **options: object) -> TarShards:
    once = Network(hedge=0)  # no request is made twice: they are counted
    return TarShards(f"{server.url}/{MANY}", transform=transform(), network=once, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("cache", [None, "disk"])
def test_it_is_found_beside_the_shards(folder: Path, tmp_path: Path, cache: str | None) -> None:
    expected = batches(TarShards(str(folder / MANY), transform=transform(), index=False))
    assert run(str(folder), "--out", str(folder / BESIDE)) == 0
    for path in folder.glob("*.tar.index.npz"):
        path.unlink()
    with ObjectServer(folder) as server:
        kept = None if cache is None else tmp_path / "cache"
        made = far(server, cache=kept)
        # Labels of some samples, and a look at the first shard.
        assert sum(server.counts[f"GET /{number:03}.tar"] for number in range(COUNT)) <= 1 + 16
        if cache is None:
            assert server.requests() <= 1 + 16 + 16  # the file, and the stamps of some shards
        for _ in range(2):
            assert_same(batches(made), expected)


def test_it_is_made_of_urls_with_their_tags(folder: Path, tmp_path: Path) -> None:
    expected = batches(TarShards(str(folder / MANY), transform=transform(), index=False))
    out = tmp_path / "mine.npz"
    with ObjectServer(folder) as server:
        assert run(f"{server.url}/{MANY}", "--out", str(out)) == 0
        before = server.requests()
        made = far(server, index=out)
        assert server.requests() - before <= 16 + 16  # stamps of some shards, labels of some samples
        assert_same(batches(made), expected)
        data = (folder / "002.tar").read_bytes()
        (folder / "002.tar").write_bytes(data[:-512] + b"\0" * 512)  # the same size, an unseen stamp
        try:
            error = first_error(far(server, index=out))
        except OSError as raised:  # a label of this shard is among those that are compared
            error = str(raised)
        assert "was changed after it was indexed" in error


def test_one_that_does_not_fit_is_ignored_with_a_warning(folder: Path) -> None:
    assert run(str(folder), "--out", str(folder / BESIDE)) == 0
    (folder / "000.tar").write_bytes((folder / "001.tar").read_bytes() + bytes(512))
    (folder / "000.tar.index.npz").unlink()
    with ObjectServer(folder) as server:
        with pytest.warns(UserWarning, match=r"headrace\.index\.npz does not fit .*000\.tar, which was changed since"):
            made = far(server)
        assert_same(batches(made), batches(TarShards(str(folder / MANY), transform=transform(), index=False)))


def test_shards_that_it_does_not_know_are_indexed(folder: Path) -> None:
    assert run(str(folder / "{000..017}.tar"), "--out", str(folder / BESIDE)) == 0
    with ObjectServer(folder) as server:
        made = far(server)
        assert server.counts["GET /018.tar.index.npz"] + server.counts["GET /018.tar"] > 0
        assert server.counts["GET /017.tar.index.npz"] == 0
        assert_same(batches(made), batches(TarShards(str(folder / MANY), transform=transform(), index=False)))


def test_what_is_no_joined_index(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / BESIDE).write_bytes(b"no index")
    with ObjectServer(folder) as server:
        assert len(far(server)) == COUNT * 16  # one that is there is not requested
        for index, said in ((f"{server.url}/{BESIDE}", "is no joined index"), (str(folder / BESIDE), "is no joined")):
            with pytest.raises(ValueError, match=said):
                far(server, index=index)
        with pytest.raises(FileNotFoundError):
            far(server, index=f"{server.url}/other.npz")
        assert run(f"{server.url}/{MANY}") == 2
        assert "need --out" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is a joined index, which is for URLs"):
        TarShards(str(folder / "000.tar"), index=folder / BESIDE)
    (tmp_path / "empty").mkdir()
    assert run(str(tmp_path / "empty"), "--out", str(tmp_path / "x.npz")) == 2
    assert run(f"{folder}/000.tar::{folder}/./000.tar", "--out", str(tmp_path / "x.npz")) == 1
    assert "one name" in capsys.readouterr().err
    assert not list(tmp_path.glob("x.npz*"))

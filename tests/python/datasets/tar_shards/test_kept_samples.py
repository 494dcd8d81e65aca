"""The samples of many shards, kept as mapped arrays: they serve until a shard changes, and false ones are noticed."""

from __future__ import annotations

import io
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import DataLoader, TarShards
from headrace.datasets.tar_shards import mapped_samples, tar_dataset
from support import assert_same, pictures, train

COUNT = 24


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_samples, "_FEWEST", 1)


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    paths = []
    for shard in range(3):
        paths.append(tmp_path / f"{shard}.tar")
        with tarfile.open(paths[-1], "w") as tar:
            for i in range(shard * 8, shard * 8 + 8):
                for extension, data in (("jpg", pictures(COUNT)[i]), ("cls", b"%d" % i), ("txt", b"text %d" % i)):
                    info = tarfile.TarInfo(f"a/{i:04}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    return paths


def folders(where: Path) -> list[Path]:
    return sorted(where.glob(".headrace-*"))


def contents(data: TarShards) -> list[tuple]:
    return [(data.keys[i], data.read(i), data.target(i), data.location(i)) for i in range(len(data))]


def test_what_is_kept_equals_what_was_joined(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"label": ["cls", "txt", "__key__"], "transform": train(24)}
    expected = TarShards(shards, **options)
    assert len(folders(tmp_path)) == 1
    monkeypatch.setattr(tar_dataset, "join_indexes", None)  # not called again
    data = TarShards(shards, **options)
    assert contents(data) == contents(expected)
    assert data.keys[3:5] == ["a/0003", "a/0004"]
    assert data.fingerprint() == expected.fingerprint()
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert_same(loader, list(DataLoader(expected, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    assert contents(pickle.loads(pickle.dumps(data))) == contents(expected)


def test_other_wishes_are_other_samples(shards: list[Path], tmp_path: Path) -> None:
    assert TarShards(shards)[3][1] == 3
    assert TarShards(shards[1:])[3][1] == 11
    assert TarShards(shards, label="txt")[3][1] == "text 3"
    assert len(folders(tmp_path)) == 3
    TarShards(shards, index=False, label=None)
    TarShards(shards, index=tmp_path / "kept", label=None)
    assert len(folders(tmp_path)) == 3 and len(folders(tmp_path / "kept")) == 1


def test_a_shard_that_changed_is_noticed(shards: list[Path], tmp_path: Path) -> None:
    TarShards(shards)
    with tarfile.open(shards[1], "w") as tar:
        for name in ("b.jpg", "b.cls"):
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"7"))
    data = TarShards(shards)
    assert len(data) == 17 and data.keys[8] == "b" and data.target(8) == 7
    assert len(folders(tmp_path)) == 1 and len(TarShards(shards)) == 17


def save(path: Path, array: np.ndarray) -> None:
    np.save(path, array)


LIES = {
    "offset": lambda array: array + np.uint64(512),
    "length": lambda array: array * np.uint64(0) + np.uint64(1),
    "beyond": lambda array: array + np.uint64(1 << 62),
    "short": lambda array: array[:-1],
    "float": lambda array: array.astype(float),
    "empty": lambda array: array[:0],
    "two axes": lambda array: array[:, None],
}
OF_OTHERS = {
    "shard_of": lambda array: array + np.uint32(7),
    "shard_of ": lambda array: array[::-1],
    "key_offsets": lambda array: array + np.uint64(1 << 40),
    "keys": lambda array: array | 1,
    "keys ": lambda array: np.where(array == ord("a"), ord("b"), array).astype(np.uint8),
    "stamps": lambda array: array + 1,
    "0.choice": lambda array: array + np.uint8(99),
    "1.number": lambda array: array[:-1],
}


@pytest.mark.parametrize(("name", "change"), [*((f"0.offset: {k}", v) for k, v in LIES.items()), *OF_OTHERS.items()])
def test_lies_are_noticed(shards: list[Path], tmp_path: Path, name: str, change: Callable[..., Any]) -> None:
    expected = contents(TarShards(shards))
    (folder,) = folders(tmp_path)
    path = folder / f"{name.partition(':')[0].strip()}.npy"
    save(path, change(np.load(path)))
    assert contents(TarShards(shards)) == expected
    assert [np.load(one).shape for one in sorted(folder.iterdir())]  # written again
    assert contents(TarShards(shards)) == expected


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY no array", bytes(300)])
def test_damage_is_noticed(shards: list[Path], tmp_path: Path, content: bytes | None) -> None:
    expected = contents(TarShards(shards))
    (folder,) = folders(tmp_path)
    for path in sorted(folder.iterdir()):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert contents(TarShards(shards)) == expected, path
    (folder / "0.offset.npy").write_bytes((folder / "0.offset.npy").read_bytes()[:-8])
    assert contents(TarShards(shards)) == expected
    shutil.rmtree(folder)
    folder.write_text("no folder")
    assert contents(TarShards(shards)) == expected == contents(TarShards(shards))


def test_few_samples_and_shards_without_an_end_are_not_kept(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shards[2].read_bytes()
    shards[2].write_bytes(whole.rstrip(b"\0").ljust(-(-len(whole.rstrip(b"\0")) // 512) * 512, b"\0"))
    for _ in range(2):
        with pytest.warns(UserWarning, match="no end-of-archive marker"):
            TarShards(shards)
    assert not folders(tmp_path)
    monkeypatch.setattr(mapped_samples, "_FEWEST", 17)
    TarShards(shards[:2])
    assert not folders(tmp_path)


def test_samples_that_lack_a_field_are_left_out(shards: list[Path], tmp_path: Path) -> None:
    with tarfile.open(shards[0], "a") as tar:
        tar.addfile(tarfile.TarInfo("z.txt"))
    with pytest.raises(ValueError, match=r"0\.tar: 1 of 25 samples have no jpg or jpeg or png or webp, first 'z'"):
        TarShards(shards)
    for _ in range(2):
        assert contents(TarShards(shards, missing="skip"))[8][0] == "a/0008"
    assert len(folders(tmp_path)) == 1

"""LMDB databases: the oracle's batches and lmdb's own values, in every layout of values; damage is an error."""

from __future__ import annotations

import pickle
import random
import struct
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import LMDB, DataLoader, EncodedImages
from headrace.datasets.lmdb.btree_pages import entries_of
from support import assert_same, pictures, train

lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed")


def write(path: Path, items: dict[bytes, bytes], name: bytes | None = None, **options: Any) -> Path:
    with lmdb.open(str(path), map_size=1 << 28, max_dbs=4, subdir=not path.suffix) as env:
        database = env.open_db(name, **options)
        with env.begin(write=True, db=database) as transaction:
            for key, value in items.items():
                transaction.put(key, value)
    return path


def key(number: int) -> bytes:
    return b"%06d" % number


def images() -> dict[bytes, bytes]:
    return {key(i): data for i, data in enumerate(pictures(24))}


def varint(number: int) -> bytes:
    made = b""
    number &= (1 << 64) - 1
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def datum(data: bytes, label: int, encoded: bool = True) -> bytes:
    """A Datum as Caffe's C++ writes it: channels, height, width, data, label, encoded."""
    head = b"\x08\x03\x10\x10\x18\x10"
    return head + b"\x22" + varint(len(data)) + data + b"\x28" + varint(label) + (b"\x38\x01" if encoded else b"")


@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(tmp_path: Path, device: str | None) -> None:
    data = LMDB(write(tmp_path / "a", images()), label=lambda key: int(key) % 5, transform=train(24))
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": 1, "num_workers": 2, "device": device}
    loader = DataLoader(data, **options)
    assert loader.native
    blobs = EncodedImages(pictures(24), [i % 5 for i in range(24)], train(24))
    assert assert_same(loader, list(DataLoader(blobs, **options))) == 5
    assert_same(loader, list(loader.reference()))
    again = pickle.loads(pickle.dumps(data))
    assert again.fingerprint() == data.fingerprint()
    assert_same(DataLoader(again, 5, seed=1), list(DataLoader(data, 5, seed=1)))


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_pickled_pairs_are_read_without_unpickling(tmp_path: Path, protocol: int) -> None:
    long = pictures(1, 700)[0]  # over 64 KiB, which pickle writes outside its frames
    values = [*pictures(12), long.ljust(70_000, b"\0")]
    order = random.Random(0).sample(range(13), 13)
    labels = [0, 255, 65535, -1, 1 << 40, *range(300, 308)]
    items = {str(i).encode(): pickle.dumps((values[i], labels[i]), protocol) for i in range(13)}
    listed = [str(i).encode() for i in order]
    items |= {b"__keys__": pickle.dumps(listed, protocol), b"__len__": pickle.dumps(13, protocol)}
    data = LMDB(write(tmp_path / "a.lmdb", items), "pickle")
    assert list(data.keys) == listed
    assert [(data.read(i), data.target(i)) for i in range(13)] == [(values[i], labels[i]) for i in order]
    with pytest.raises(ValueError, match=r"holds pickles, not images; pass values='pickle'"):
        LMDB(tmp_path / "a.lmdb", keys=listed)
    texts = write(tmp_path / "b", {b"1": pickle.dumps((b"image", "é")), b"2": pickle.dumps((b"", None))})
    assert LMDB(texts, "pickle").target(0) == "é" and LMDB(texts, "pickle", label=None).keys[:] == [b"1", b"2"]


class Runs:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("ran"),))

    def __repr__(self) -> str:
        return "Runs()"


@pytest.mark.parametrize(
    "value",
    [Runs(), (b"a", Runs()), (Runs(), 1), (b"a",), (b"a", 1, 2), (1, b"a"), (b"a", b"b"), [b"a", 1], {"a": 1}, 7],
    ids=str,
)
def test_other_pickles_are_refused_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "a", {b"k": pickle.dumps(value)})
    with pytest.raises(ValueError, match=r"the value of the key 'k' in .* is not read: it "):
        LMDB(path, "pickle")
    assert not Path("ran").exists()


@pytest.mark.parametrize("listed", [Runs(), [b"k", Runs()], [1], {"a": 1}, 7], ids=str)
def test_other_lists_of_keys_are_refused_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "a", {b"k": pickle.dumps((b"image", 1)), b"__keys__": pickle.dumps(listed)})
    with pytest.raises(ValueError, match="the pickled list of keys"):
        LMDB(path, "pickle")
    assert not Path("ran").exists()


def test_caffes_datum(tmp_path: Path) -> None:
    labels = [0, 1, 300, -1, *range(4, 24)]
    items = {key(i): datum(data, labels[i]) for i, data in enumerate(pictures(24))}
    data = LMDB(write(tmp_path / "a", items), "datum", transform=train(24))
    assert [data.read(i) for i in range(24)] == list(pictures(24))
    assert [data.target(i) for i in range(24)] == labels
    loader = DataLoader(data, 5, num_workers=1)
    assert_same(loader, list(loader.reference()))
    with pytest.raises(ValueError, match=r"Datum of pixels.*convert_imageset --encoded"):
        LMDB(write(tmp_path / "b", {b"k": datum(b"pixels", 1, encoded=False)}), "datum")
    for damaged in (b"", b"\xff" * 20, datum(b"image", 1)[:9], b"\x0f", b"\x22\xff\xff\xff\xff\x0f"):
        with pytest.raises(ValueError, match=r"the value of the key 'k' .* is not read"):
            LMDB(write(tmp_path / "b", {b"k": damaged}), "datum")


def test_keys_and_labels(tmp_path: Path) -> None:
    items = {b"image-%09d" % i: data for i, data in enumerate(pictures(6), 1)}
    items |= {b"label-%09d" % i: f"text é {i}".encode() for i in range(1, 7)} | {b"num-samples": b"6"}
    path = write(tmp_path / "a", items)

    def named(key: bytes) -> bytes:
        return key.replace(b"image", b"label")

    data = LMDB(path, keys=lambda key: key.startswith(b"image"), label_key=named)
    assert [data.target(i) for i in range(6)] == [f"text é {i}" for i in range(1, 7)]
    assert data.location(2) == f"{path}/data.mdb:image-000000003"
    chosen = LMDB(path, label=[7, 8], keys=["image-000000005", b"image-000000001"])
    assert [(chosen.read(i), chosen.target(i)) for i in (0, 1)] == [(pictures(6)[4], 7), (pictures(6)[0], 8)]
    assert LMDB(path / "data.mdb", keys=["image-000000001"])[0].mode == "RGB"
    with pytest.raises(ValueError, match="has no key 'image-7'"):
        LMDB(path, keys=["image-7"])
    with pytest.raises(ValueError, match="differ in length"):
        LMDB(path, label=[1])
    with pytest.raises(ValueError, match="label must be"):
        LMDB(path, label="cls")
    with pytest.raises(ValueError, match="values must be"):
        LMDB(path, "raw")
    with pytest.raises(ValueError, match="no entry that is a sample"):
        LMDB(path, keys=[])
    broken = LMDB(path, keys=["num-samples"], transform=train(8))
    with pytest.raises(headrace.SampleError, match=r"data\.mdb:num-samples"):
        list(DataLoader(broken, num_workers=1))


def values_of(path: Path, database: bytes | None = None) -> dict[bytes, bytes]:
    data = path.read_bytes()
    found = entries_of(str(path), database)
    places = zip(found.offsets.tolist(), found.lengths.tolist(), strict=True)
    return {found.key(i): data[begin : begin + size] for i, (begin, size) in enumerate(places)}


def test_trees_of_every_shape_are_lmdbs(tmp_path: Path) -> None:
    path = tmp_path / "a.lmdb"
    draw = random.Random(1)
    with lmdb.open(str(path), map_size=1 << 28, subdir=False) as env:
        for count in (0, 1, 30, 3000, 9000):  # depths 0 to 3
            with env.begin(write=True) as transaction:
                for _ in range(count):
                    name = draw.randbytes(draw.choice((1, 8, 40, 500)))
                    transaction.put(name, draw.randbytes(draw.choice((0, 1, 100, 2000, 2040, 4080, 9000))))
                for name, _ in list(transaction.cursor())[::3]:
                    transaction.delete(name)
            with env.begin() as transaction:
                expected = list(transaction.cursor())
            assert list(values_of(path).items()) == expected, count


def test_named_databases(tmp_path: Path) -> None:
    path = write(tmp_path / "a.lmdb", {b"k": b"v" * 5000, b"l": b""}, b"train")
    assert values_of(path, b"train") == {b"k": b"v" * 5000, b"l": b""}
    with pytest.raises(ValueError, match="give database= one of 'train'"):
        LMDB(path)
    with pytest.raises(ValueError, match="no database 'val'; there are 'train'"):
        LMDB(path, database="val")
    with pytest.raises(ValueError, match="only the main one"):
        LMDB(write(tmp_path / "b", {b"k": b"v"}), database="val")
    write(tmp_path / "c", {b"k": b"1"}, b"twice", dupsort=True)
    write(tmp_path / "c", {b"k": b"2"}, b"twice", dupsort=True)
    with pytest.raises(ValueError, match="several values of the key b'k'"):
        LMDB(tmp_path / "c", database="twice")


def test_a_change_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a", images())
    data = LMDB(path, transform=train(8))
    write(path, {key(0): b"other"})
    with pytest.raises(OSError, match="was changed after it was indexed"):
        data.read(3)
    with pytest.raises(headrace.SampleError, match="was changed after it was indexed"):
        list(DataLoader(data, num_workers=1))
    data = LMDB(path, transform=train(8), keys=[key(3)])
    with (path / "data.mdb").open("r+b") as file:
        file.truncate(8192)
    with pytest.raises(headrace.SampleError, match="truncated"):
        list(DataLoader(data, num_workers=1))


def test_damage_is_an_error(tmp_path: Path) -> None:
    """Every cut, and random bytes anywhere in the pages: an error, or the entries that lmdb gave."""
    path = write(tmp_path / "a.lmdb", {key(i): b"v" * (10 if i % 3 else 5000) for i in range(400)})
    whole = path.read_bytes()
    good = values_of(path)
    draw = random.Random(2)
    refused = 0
    for trial in range(200):
        data = bytearray(whole)
        if trial % 4 == 0:
            data = data[: draw.randrange(len(data))]
        else:
            root = struct.unpack_from("<Q", whole, 4096 + 128)[0]
            for _ in range(draw.choice((1, 4))):
                page = draw.choice((0, 1, root, draw.randrange(len(whole) // 4096)))
                data[page * 4096 + draw.randrange(200)] = draw.randrange(256)
        path.write_bytes(data)
        try:
            found = entries_of(str(path), None)
        except ValueError as error:
            assert "a.lmdb" in str(error)
            refused += 1
        else:
            assert (found.offsets + found.lengths <= len(data)).all() and len(found.offsets) <= len(good) + 9
    assert refused > 50
    path.write_bytes(b"no database" * 999)
    with pytest.raises(ValueError, match="no LMDB file"):
        LMDB(path)
    with pytest.raises(FileNotFoundError):
        LMDB(tmp_path / "missing")

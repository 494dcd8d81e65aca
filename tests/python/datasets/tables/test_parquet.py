"""Parquet files as native sources, whatever their encoding and compression; converted once; damage is an error."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_samples import SMALL, assert_decoded, hugging_face

import headrace
from headrace import DataLoader, Parquet
from support import assert_same, pictures, train

OPTIONS: dict[str, dict[str, Any]] = {
    "pyarrow's defaults": {},
    "plain, without compression": {"use_dictionary": False, "compression": "NONE", "write_page_index": True},
    "zstd": {"compression": "zstd", "row_group_size": 7},
    "delta lengths": {"use_dictionary": False, "column_encoding": {"image": "DELTA_LENGTH_BYTE_ARRAY"}},
    "small pages": {"use_dictionary": False, "data_page_size": 1000, "data_page_version": "2.0"},
}


def table(kind: Any = None) -> pa.Table:
    images = pa.array(list(pictures(24)), kind or pa.binary())
    return pa.table({"other": list(range(24)), "label": [i % 5 for i in range(24)], "image": images})


@pytest.mark.parametrize("options", OPTIONS)
def test_batches_equal_the_oracle(tmp_path: Path, options: str) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(table().slice(0, 20), paths[0], **OPTIONS[options])
    pq.write_table(table().slice(20), paths[1], **OPTIONS[options])
    data = Parquet(paths, transform=train(24), cache=tmp_path / "cache")
    blobs = headrace.EncodedImages(pictures(24), [i % 5 for i in range(24)], train(24))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_same(loader, list(DataLoader(blobs, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary_view()], ids=str)
def test_kinds_of_binary(tmp_path: Path, kind: Any) -> None:
    pq.write_table(table(kind), tmp_path / "a.parquet")
    data = Parquet(tmp_path / "a.parquet", transform=SMALL, cache=tmp_path / "cache")
    assert [data.read(i) for i in range(24)] == list(pictures(24))


def test_what_datasets_write(tmp_path: Path) -> None:
    data = hugging_face(24)
    data.to_parquet(tmp_path / "a.parquet")
    source = Parquet(tmp_path / "a.parquet", transform=SMALL, upright=True, cache=tmp_path / "cache")
    assert_decoded(source, data, lambda row: row["label"])


def test_the_cache_serves_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = tmp_path / "a.parquet", tmp_path / "cache"
    pq.write_table(table(), path)
    data = Parquet(path, transform=SMALL, cache=cache)
    made = {one.name: one.stat().st_mtime_ns for one in cache.iterdir()}
    again = pickle.loads(pickle.dumps(data))
    assert_same(DataLoader(again, 5), list(DataLoader(data, 5)))
    assert Parquet(path, transform=SMALL, cache=cache)[3][1] == 3
    assert {one.name: one.stat().st_mtime_ns for one in cache.iterdir()} == made and len(made) == 1
    sent = pickle.dumps(data)
    pq.write_table(table().slice(1), path)
    os.utime(path, ns=(1, 1))
    assert Parquet(path, transform=SMALL, cache=cache)[3][1] == 4
    assert len(list(cache.iterdir())) == 1 and not made.keys() & {
        one.name for one in cache.iterdir()
    }  # the old is gone
    with pytest.raises(ValueError, match=r"a.parquet has changed since"):
        pickle.loads(sent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    Parquet(path, transform=SMALL)
    assert len(list((tmp_path / "home" / "headrace" / "tables").iterdir())) == 1


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def bad_footer(data: bytes) -> bytes:
    return data[:-40] + b"\xff" * 32 + data[-8:]


def bad_pages(data: bytes) -> bytes:
    return data[:4] + b"\xff" * (len(data) // 2) + data[4 + len(data) // 2 :]


@pytest.mark.parametrize("damage", [cut, bad_footer, bad_pages, lambda data: b"", lambda data: b"text"])
def test_damage_is_an_error_and_leaves_no_cache(tmp_path: Path, damage: Callable[..., Any]) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"a.parquet is no Parquet file, or it is damaged"):
        Parquet(path, transform=SMALL, cache=tmp_path / "cache")
    assert not list(tmp_path.rglob("cache/*"))


def stored(path: Path, column: pa.Array) -> Path:
    pq.write_table(pa.table({"image": column}), path)
    return path


def test_what_is_refused(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    nulls = stored(tmp_path / "nulls", pa.array([b"a", None, b"c"], pa.binary()))
    with pytest.raises(ValueError, match=r"row 1 of column 'image' has no image"):
        Parquet(nulls, label=None, cache=cache)
    lists = stored(tmp_path / "lists", pa.array([[b"a"]], pa.list_(pa.binary())))
    with pytest.raises(TypeError, match="Make a row of each image"):
        Parquet(lists, label=None, cache=cache)
    with pytest.raises(TypeError, match="holds no encoded images"):
        Parquet(stored(tmp_path / "text", pa.array(["a"])), label=None, cache=cache)
    with pytest.raises(ValueError, match=r"label='label' is no column; there are 'image'; label=None"):
        Parquet(nulls, cache=cache)
    with pytest.raises(FileNotFoundError):
        Parquet(tmp_path / "missing", cache=cache)


def of_datasets(values: list[Any], **options: Any) -> pa.Table:
    """The columns of `datasets`: structs of bytes and path, with its description of the features in the metadata."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {"image": {"_type": "Image"}, "label": {"dtype": "int64", "_type": "Value"}}
    held = pa.table({"image": pa.array(values, kind), "label": list(range(len(values)))})
    return held.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


OLD = {"row_group_size": 10}  # of datasets before 4.6: pyarrow's defaults, with dictionaries and snappy
NEW = {"use_dictionary": False, "compression": {"image.bytes": "none", "image.path": "none", "label": "snappy"}} | {
    "column_encoding": {"image.bytes": "PLAIN"},
    "write_page_index": True,
}


@pytest.mark.parametrize("options", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("paths", ["name", None])
def test_layouts_of_the_hub(tmp_path: Path, options: dict[str, Any], paths: str | None) -> None:
    rows = [{"bytes": data, "path": paths and f"{i}.jpg"} for i, data in enumerate(pictures(24))]
    pq.write_table(of_datasets(rows), tmp_path / "train-00000-of-00001.parquet", **options)
    data = Parquet(tmp_path / "train-00000-of-00001.parquet", transform=train(24), cache=tmp_path / "cache")
    loader = DataLoader(data, 5, num_workers=1, seed=1)
    assert loader.native
    assert_same(loader, list(DataLoader(headrace.EncodedImages(pictures(24), list(range(24)), train(24)), 5, seed=1)))
    assert (paths is None) == ("1.jpg" not in data.location(1))


def test_rows_that_name_files(tmp_path: Path) -> None:
    for i, held in enumerate(pictures(6)):
        (tmp_path / f"{i}.jpg").write_bytes(held)
    rows = [{"bytes": None, "path": str(tmp_path / f"{i}.jpg")} for i in range(6)]
    pq.write_table(of_datasets(rows), tmp_path / "a.parquet")
    data = Parquet(tmp_path / "a.parquet", transform=SMALL, cache=tmp_path / "cache")
    assert [data.read(i) for i in range(6)] == list(pictures(6))
    pq.write_table(of_datasets([*rows[:2], {"bytes": None, "path": "https://a.example/b.jpg"}]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"row 2 of column 'image' names https://a.example/b.jpg, which is not a file"):
        Parquet(tmp_path / "b.parquet", cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([{"bytes": b"x", "path": None}, None], 1),
        ([{"bytes": b"x", "path": None}, {"bytes": None, "path": None}], 1),
        ([None, None], 0),
    ],
)
def test_nulls_of_structs(tmp_path: Path, values: list[Any], row: int) -> None:
    pq.write_table(of_datasets(values), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=rf"row {row}.* of column 'image' ha(s|ve) no image"):
        Parquet(tmp_path / "a.parquet", cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.struct([("bytes", pa.string()), ("path", pa.string())]), [{"bytes": "a", "path": None}]),
        (pa.struct([("bytes", pa.int32())]), [{"bytes": 1}]),
        (pa.struct([("data", pa.binary())]), [{"data": b"a"}]),
        (pa.struct([("bytes", pa.list_(pa.uint8()))]), [{"bytes": [1]}]),
        (pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())])), [[{"bytes": b"a", "path": None}]]),
        (pa.map_(pa.string(), pa.binary()), [[("a", b"a")]]),
        (pa.list_(pa.uint8()), [[1, 2]]),
        (pa.int64(), [7]),
        (pa.float32(), [0.5]),
        (pa.bool_(), [True]),
        (pa.timestamp("us"), [7]),
        (pa.null(), [None]),
    ],
    ids=str,
)
def test_other_types_are_refused(tmp_path: Path, kind: Any, values: list[Any]) -> None:
    with pytest.raises(TypeError, match=r"column 'image' is .*(holds no encoded images|one image a row is needed)"):
        Parquet(stored(tmp_path / "a", pa.array(values, kind)), label=None, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_any_byte_of_a_footer_may_lie(tmp_path: Path) -> None:
    """An error of the file, or the rows; never another error, and nothing in the cache that is half."""
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, compression="NONE", use_dictionary=False)
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little") + 8
    draw = random.Random(0)
    refused = 0
    for number in range(120):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 3))):
            data[len(data) - 1 - draw.randrange(size)] = draw.randrange(256)
        path.write_bytes(data)
        cache = tmp_path / f"cache{number}"
        try:
            found = Parquet(path, transform=SMALL, cache=cache)
        except (ValueError, TypeError) as error:
            assert "a.parquet" in str(error) or "column" in str(error)
            refused += 1
            assert not [one for one in cache.glob("*") if one.suffix == ".unfinished"]
        else:
            assert all(isinstance(found.read(i), bytes) for i in range(len(found)))
    assert refused > 30

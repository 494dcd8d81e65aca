"""Arrow files and streams as native sources: mapped, not copied; what cannot be mapped is refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from table_samples import SMALL, assert_decoded, hugging_face, turned

import datasets
import headrace
from headrace import DataLoader
from support import assert_same, pictures, train


def written(path: Path, table: pa.Table, *, stream: bool = False, rows: int = 10, compression: Any = None) -> Path:
    """Writes an Arrow file, or a stream, of record batches of `rows` rows."""
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with make(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def table(count: int = 24, begin: int = 0) -> pa.Table:
    values = list(pictures(count))[begin:]
    labels = [i % 7 for i in range(begin, count)]
    return pa.table({"image": pa.array(values, pa.binary()), "label": labels, "name": [f"n{i}" for i in labels]})


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_batches_equal_the_oracle(tmp_path: Path, stream: bool) -> None:
    files = [
        written(tmp_path / "a.arrow", table(20), stream=stream),
        written(tmp_path / "b.arrow", table(24, 20), stream=stream),
    ]
    data = headrace.Arrow(files, transform=train(24))
    assert len(data) == 24
    blobs = headrace.EncodedImages(pictures(24), [i % 7 for i in range(24)], train(24))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_same(loader, list(DataLoader(blobs, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    again = pickle.loads(pickle.dumps(data))
    assert_same(DataLoader(again, 5, seed=1), list(DataLoader(data, 5, seed=1)))
    named = headrace.Arrow(files, label=["label", "name"], transform=train(24))
    assert named[21][1] == {"label": 0, "name": "n0"} == pickle.loads(pickle.dumps(named))[21][1]


def test_the_cache_of_a_dataset(tmp_path: Path) -> None:
    """Files that Hugging Face's datasets write, with structs; turned as there, if wanted."""
    data = hugging_face(30)
    data.save_to_disk(tmp_path / "set", num_shards=2)
    files = sorted((tmp_path / "set").glob("*.arrow"))
    source = headrace.Arrow(files, transform=SMALL, upright=True)
    assert_decoded(source, data, lambda row: row["label"])
    assert source.location(3) == "row 3 of column 'image', 3.jpg"
    one = pa.table({"image": pa.array([turned(6)], pa.binary())})
    path = written(tmp_path / "one.arrow", one)
    raw = headrace.Arrow(path, label=None, transform=SMALL)
    assert raw.image(0).size == headrace.Arrow(path, label=None, transform=SMALL, upright=True).image(0).size[::-1]
    features = datasets.Features({"image": datasets.Image()})
    stored = datasets.Dataset.from_dict({"image": [{"bytes": turned(6), "path": None}]}, features=features)
    assert_decoded(headrace.Arrow(path, label=None, transform=SMALL, upright=True), stored)


def test_what_is_refused(tmp_path: Path) -> None:
    good = written(tmp_path / "good.arrow", table())
    compressed = written(tmp_path / "compressed.arrow", table(), compression="zstd")
    with pytest.raises(ValueError, match="compressed"):
        headrace.Arrow(compressed, transform=SMALL)
    cut = tmp_path / "cut.arrow"
    cut.write_bytes(good.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"cut.arrow is no Arrow file or stream, or it is damaged"):
        headrace.Arrow(cut, transform=SMALL)
    (tmp_path / "text").write_text("not a table at all")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("text", "empty"):
        with pytest.raises(ValueError, match="is no Arrow file or stream"):
            headrace.Arrow(tmp_path / name)
    other = written(tmp_path / "other.arrow", table().drop_columns(["name"]))
    with pytest.raises(ValueError, match=r"other.arrow has other columns than .*good.arrow"):
        headrace.Arrow([good, other])
    with pytest.raises(ValueError, match="files is empty"):
        headrace.Arrow([])
    with pytest.raises(FileNotFoundError):
        headrace.Arrow(tmp_path / "missing")
    with pytest.raises(ValueError, match="label='class' is no column"):
        headrace.Arrow(good, label="class")
    nulls = written(tmp_path / "nulls.arrow", pa.table({"image": pa.array([b"a", None], pa.binary())}))
    with pytest.raises(ValueError, match=r"row 1 of column 'image' has no image \(null\); leave such rows out"):
        headrace.Arrow(nulls, label=None)


def test_a_file_that_has_changed_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.arrow", table())
    sent = pickle.dumps(headrace.Arrow(path, transform=SMALL))
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match=r"a.arrow has changed since"):
        pickle.loads(sent)

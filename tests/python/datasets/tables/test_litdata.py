"""litdata's chunks as native sources: what its own writer writes; damage and other layouts are errors."""

from __future__ import annotations

import json
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from table_samples import SMALL

import headrace
from headrace import DataLoader, EncodedImages, LitData
from support import assert_same, pictures, train
from torchvision_shim import import_torchvision

LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
FORMATS = {"image": "image:jpg", "label": "int", "text": "str", "even": "bool", "weight": "float"}


def rows() -> list[dict[str, Any]]:
    return [
        {"image": data, "label": i % 5 - 1, "text": f"t{i}", "even": i % 2 == 0, "weight": i / 4}
        for i, data in enumerate(pictures(24))
    ]


def write(folder: Path, each: int = 10, **config: Any) -> Path:
    """Writes chunks by the format's description, independently of litdata."""
    samples, chunks = rows(), []
    for first in range(0, len(samples), each):
        made = []
        for row in samples[first : first + each]:
            label, weight = np.int64(row["label"]).tobytes(), np.float64(row["weight"]).tobytes()
            parts = [row["image"], label, row["text"].encode(), bytes([row["even"]]), weight]
            made.append(np.array([len(part) for part in parts], "<u4").tobytes() + b"".join(parts))
        ends = np.cumsum([0, *map(len, made)]) + 4 * (len(made) + 2)
        name = f"chunk-0-{first // each}.bin"
        (folder / name).write_bytes(np.uint32(len(made)).tobytes() + ends.astype("<u4").tobytes() + b"".join(made))
        chunks.append({"chunk_size": len(made), "filename": name})
    spec = {"type": "builtins.dict", "context": json.dumps(list(FORMATS)), "children_spec": [LEAF] * len(FORMATS)}
    held = {"compression": None, "data_format": list(FORMATS.values()), "data_spec": json.dumps([1, spec]), **config}
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": held}))
    return folder


def test_batches_equal_the_oracle(tmp_path: Path) -> None:
    data = LitData(write(tmp_path), "image", "label", train(24))
    blobs = EncodedImages(pictures(24), [i % 5 - 1 for i in range(24)], train(24))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_same(loader, list(DataLoader(blobs, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    assert_same(DataLoader(pickle.loads(pickle.dumps(data)), 5, seed=1), list(DataLoader(data, 5, seed=1)))
    several = pickle.loads(pickle.dumps(LitData(tmp_path, "image", ["label", "text", "even", "weight"], SMALL)))
    assert several[13][1] == {"label": 2, "text": "t13", "even": False, "weight": 3.25}


def test_what_litdata_writes(tmp_path: Path) -> None:
    try:
        import_torchvision()  # litdata imports it
        from litdata.streaming.writer import BinaryWriter
    except ImportError as error:
        pytest.skip(f"litdata, or what it imports, is missing: {error}")
    files = [data for data in pictures(24) if data[:2] == b"\xff\xd8"]
    writer = BinaryWriter(str(tmp_path), chunk_size=9)
    for number, data in enumerate(files):
        row = {"image": Image.open(BytesIO(data)), "raw": data, "label": number - 3, "text": f"é{number}"}
        writer.add_item(number, {**row, "even": number % 2 == 0, "weight": number / 3})
    writer.done()
    writer.merge()
    names = ["label", "text", "even", "weight"]
    ours = LitData(tmp_path, "raw", names, SMALL)
    assert [ours.read(i) for i in range(len(ours))] == files
    assert [ours.target(i) for i in range(len(ours))] == [
        {"label": i - 3, "text": f"é{i}", "even": i % 2 == 0, "weight": i / 3} for i in range(len(files))
    ]
    writer = BinaryWriter(str(tmp_path / "rows"), chunk_size=9)  # a table of Arrow, where there is no image of Pillow
    for number, held in enumerate(files):
        writer.add_item(number, {"raw": held, "label": number - 3, "text": f"é{number}"})
    writer.done()
    writer.merge()
    in_rows = LitData(tmp_path / "rows", "raw", ["label", "text"], SMALL)
    assert [in_rows.read(i) for i in range(len(in_rows))] == files
    assert in_rows.target(20) == {"label": 17, "text": "é20"}
    # litdata encodes images that Pillow has opened again; these are what its reader gets.
    again = LitData(tmp_path, "image", "label", SMALL)
    loader = DataLoader(again, 4, num_workers=1, seed=0)
    assert loader.native
    assert_same(loader, list(loader.reference()))


def test_what_is_refused(tmp_path: Path) -> None:
    for config, message in (
        (
            {"compression": "zstd", "compression_level": "page"},
            r"have compression_level \(page\); chunk, batch, sample",
        ),
        ({"compression": "lz4", "compression_level": "batch"}, "are compressed with lz4; zstd is read"),
        ({"encryption": {"algorithm": "fernet"}}, "have encryption"),
        ({"item_loader": "TokensLoader"}, "are for TokensLoader"),
        ({"data_spec": json.dumps([1, {"type": "builtins.list", "context": "null", "children_spec": []}])}, "no flat"),
        ({"data_spec": "1"}, "is no index"),
        ({"data_format": ["pil", "int", "str", "bool", "float"]}, "'image' has the encoding 'pil'; encoded images"),
        ({"data_format": ["jpeg", "pickle", "str", "bool", "float"]}, "'pickle', which could run any code"),
    ):
        write(tmp_path, **config)
        with pytest.raises(ValueError, match=message):
            LitData(tmp_path, "image", "label")
    write(tmp_path)
    index = (tmp_path / "index.json").read_text()
    (tmp_path / "index.json").write_text(index.replace("chunk-0-1", "../chunk"))
    with pytest.raises(ValueError, match="not in the folder"):
        LitData(tmp_path, "image")
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(ValueError, match="is no index"):
        LitData(tmp_path, "image")
    write(tmp_path)
    (tmp_path / "chunk-0-2.bin").write_bytes((tmp_path / "chunk-0-2.bin").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"chunk-0-2.bin is damaged"):
        LitData(tmp_path, "image")


def write_rows(folder: Path, held_rows: pa.Table, each: int = 10, options: Any = None, stream: bool = False) -> Path:
    """Chunks as litdata writes dicts without images: places that are all the same, an Arrow file, its size, an end."""
    folder.mkdir(exist_ok=True)
    chunks = []
    for number, first in enumerate(range(0, len(held_rows), each)):
        part, sink = held_rows.slice(first, each), pa.BufferOutputStream()
        with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, held_rows.schema, options=options) as writer:
            writer.write_table(part, max_chunksize=4)
        held = sink.getvalue().to_pybytes()
        places = np.full(len(part) + 1, 4 * (len(part) + 2), "<u4")
        data = np.uint32(len(part)).tobytes() + places.tobytes() + held + np.uint32(len(held)).tobytes() + b"LDARW01\0"
        (folder / f"chunk-0-{number}.bin").write_bytes(data)
        chunks.append({"chunk_size": len(part), "filename": f"chunk-0-{number}.bin"})
    held = {"compression": None, "data_format": [], "data_spec": "not read", "item_loader": "PyTreeLoader"}
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": held}))
    return folder


def table() -> pa.Table:
    texts = [f"é{i}" for i in range(24)]
    return pa.table({"image": pa.array(pictures(24)), "label": [i % 5 for i in range(24)], "text": texts})


@pytest.mark.parametrize("stream", [False, True])
def test_samples_in_tables_of_arrow(tmp_path: Path, stream: bool) -> None:
    write_rows(tmp_path / "a", table(), stream=stream)
    data = LitData(tmp_path / "a", "image", "label", train(24))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    blobs = EncodedImages(pictures(24), [i % 5 for i in range(24)], train(24))
    assert_same(loader, list(DataLoader(blobs, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    again = pickle.loads(pickle.dumps(LitData(tmp_path / "a", "image", ["label", "text"])))
    assert again.read(23) == pictures(24)[23] and again.target(23) == {"label": 3, "text": "é23"}
    assert LitData(tmp_path / "a", "image").location(11) == f"sample 11, in {tmp_path}/a/chunk-0-1.bin"
    sent = pickle.dumps(data)
    (tmp_path / "a" / "chunk-0-1.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"chunk-0-1.bin has changed since"):
        len(pickle.loads(sent))


def test_tables_of_arrow_that_are_refused(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "a", table(), options=pa.ipc.IpcWriteOptions(compression="zstd"))
    with pytest.raises(ValueError, match="is compressed, so its images cannot be mapped"):
        LitData(folder, "image")
    write_rows(folder, table())
    with pytest.raises(ValueError, match="label='cls' is no column"):
        LitData(folder, "image", "cls")
    with pytest.raises(TypeError, match="holds no encoded images"):
        LitData(folder, "text")
    chunk = folder / "chunk-0-1.bin"
    whole = chunk.read_bytes()
    for damaged in (
        whole[:-12] + b"\xff" * 4 + whole[-8:],
        whole[:44] + bytes(200) + whole[-12:],
        whole[:-12] + bytes(4) + whole[-8:],
    ):
        chunk.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"chunk-0-1.bin is damaged"):
            LitData(folder, "image")
    for other in (b"", whole[:-1], write(tmp_path).joinpath("chunk-0-1.bin").read_bytes()):
        chunk.write_bytes(other)
        with pytest.raises(ValueError, match=r"chunk-0-1.bin keeps its samples in another way"):
            LitData(folder, "image")
    nulls = table().set_column(0, "image", pa.array([None, *pictures(24)[1:]]))
    with pytest.raises(ValueError, match=r"row 0 of column 'image' has no image"):
        LitData(write_rows(folder, nulls), "image")


def compress(folder: Path) -> Any:
    """Compresses each chunk as a whole, as litdata does; returns what the index says of them."""
    index = json.loads((folder / "index.json").read_text())
    for chunk in index["chunks"]:
        raw = folder / chunk["filename"]
        chunk |= {"chunk_bytes": raw.stat().st_size, "filename": raw.name.replace(".bin", ".zstd.bin")}
        with pa.CompressedOutputStream(str(folder / chunk["filename"]), "zstd") as out:
            out.write(raw.read_bytes())
        raw.unlink()
    (folder / "index.json").write_text(json.dumps(index))
    return index["chunks"]


def test_compressed_chunks_are_decompressed_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    folder, cache = write(tmp_path / "a", compression="zstd"), tmp_path / "cache"
    chunks = compress(folder)
    data = LitData(folder, "image", "label", SMALL, cache=cache)
    assert [data.read(i) for i in range(24)] == list(pictures(24))
    made = sorted(one.name for one in cache.iterdir())
    assert LitData(folder, "image", "label", SMALL, cache=cache).target(7) == 7 % 5 - 1
    assert sorted(one.name for one in cache.iterdir()) == made and len(made) == len(chunks)
    (folder / chunks[0]["filename"]).write_bytes(b"no frame")
    with pytest.raises(ValueError, match=r"zstd\.bin is damaged"):
        LitData(folder, "image", "label", cache=cache)


def test_a_file_that_changes_is_an_error_of_its_samples(tmp_path: Path) -> None:
    data = LitData(write(tmp_path), "image", "label", SMALL)
    path = Path(data.images.name_of(23) or "")
    assert path.name == "chunk-0-2.bin"
    first = data.read(0)
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(headrace.SampleError, match=r"sample 2\d, in .*chunk-0-2.bin.*truncated"):
        list(DataLoader(data, 4, num_workers=1))
    with pytest.raises(OSError, match="changed after it was indexed"):
        data.target(23)
    assert data.read(0) == first and data.target(0) is not None

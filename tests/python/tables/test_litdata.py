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

from headrace import Blobs, DataLoader, LitData
from support import assert_same, pictures, train
from torchvision_shim import import_torchvision

LEAF = {"type": None, "context": None, "children_spec": []}
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


def test_batches_equal_the_oracle(tmp_path):
    data = LitData(write(tmp_path), "image", "label", train(24))
    blobs = Blobs(pictures(24), [i % 5 - 1 for i in range(24)], train(24))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_same(loader, list(DataLoader(blobs, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    assert_same(DataLoader(pickle.loads(pickle.dumps(data)), 5, seed=1), list(DataLoader(data, 5, seed=1)))
    several = pickle.loads(pickle.dumps(LitData(tmp_path, "image", ["label", "text", "even", "weight"], SMALL)))
    assert several[13][1] == {"label": 2, "text": "t13", "even": False, "weight": 3.25}


def test_what_litdata_writes(tmp_path):
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
    data = LitData(tmp_path, "raw", names, SMALL)
    assert [data.read(i) for i in range(len(data))] == files
    assert [data.target(i) for i in range(len(data))] == [
        {"label": i - 3, "text": f"é{i}", "even": i % 2 == 0, "weight": i / 3} for i in range(len(files))
    ]
    # litdata writes images that Pillow has opened anew; these are what its reader gets.
    again = LitData(tmp_path, "image", "label", SMALL)
    loader = DataLoader(again, 4, num_workers=1, seed=0)
    assert loader.native
    assert_same(loader, list(loader.reference()))


def test_what_is_refused(tmp_path):
    for config, message in (
        ({"compression": "zstd", "compression_level": "sample"}, r"have compression_level \(sample\)"),
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


def test_samples_in_an_arrow_table_are_refused(tmp_path):
    write(tmp_path)
    chunk = sorted(tmp_path.glob("*.bin"))[0]
    data = bytearray(chunk.read_bytes())
    places = np.frombuffer(data, "<u4", int(np.frombuffer(data, "<u4", 1)[0]) + 1, 4)
    places[:] = places[0]
    chunk.write_bytes(bytes(data) + b"LDARW01\0")
    with pytest.raises(ValueError, match=r"keeps its samples in an Arrow table.*write the images as PIL images"):
        LitData(tmp_path, "image", "label")


def test_compressed_chunks_are_decompressed_once(tmp_path):
    (tmp_path / "a").mkdir()
    folder, cache = write(tmp_path / "a", compression="zstd"), tmp_path / "cache"
    index = json.loads((folder / "index.json").read_text())
    for chunk in index["chunks"]:
        raw = folder / chunk["filename"]
        chunk |= {"chunk_bytes": raw.stat().st_size, "filename": raw.name.replace(".bin", ".zstd.bin")}
        with pa.CompressedOutputStream(str(folder / chunk["filename"]), "zstd") as out:
            out.write(raw.read_bytes())
        raw.unlink()
    (folder / "index.json").write_text(json.dumps(index))
    data = LitData(folder, "image", "label", SMALL, cache=cache)
    assert [data.read(i) for i in range(24)] == list(pictures(24))
    made = sorted(one.name for one in cache.iterdir())
    assert LitData(folder, "image", "label", SMALL, cache=cache).target(7) == 7 % 5 - 1
    assert sorted(one.name for one in cache.iterdir()) == made and len(made) == len(index["chunks"])
    (folder / index["chunks"][0]["filename"]).write_bytes(b"no frame")
    with pytest.raises(ValueError, match=r"zstd\.bin is damaged"):
        LitData(folder, "image", "label", cache=cache)

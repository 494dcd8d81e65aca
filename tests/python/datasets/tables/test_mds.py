"""MDS shards as native sources: read as they were written, and as streaming reads them; damage is an error."""

from __future__ import annotations

import json
import os
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from table_samples import SMALL

import headrace
from headrace import MDS, DataLoader, EncodedImages
from support import assert_same, pictures, train
from torchvision_shim import import_torchvision

COLUMNS = {"bytes": None, "int": 8, "float32": 4, "str": None, "uint16": 2}


def encoded(encoding: str, value: Any) -> bytes:
    if encoding == "bytes":
        return bytes(value)
    return (
        str(value).encode()
        if encoding == "str"
        else np.dtype(encoding.replace("int", "int64") if encoding == "int" else encoding).type(value).tobytes()
    )


def write(folder: Path, samples: list[dict[str, Any]], encodings: dict[str, str], each: int = 10) -> Path:
    """Writes shards by the format's description, independently of streaming."""
    folder.mkdir(exist_ok=True)
    names, shards = sorted(encodings), []
    sizes = [COLUMNS[encodings[name]] for name in names]
    for number, first in enumerate(range(0, len(samples), each)):
        made = []
        for sample in samples[first : first + each]:
            parts = [encoded(encodings[name], sample[name]) for name in names]
            head = [len(part) for part, size in zip(parts, sizes, strict=True) if size is None]
            made.append(np.array(head, "<u4").tobytes() + b"".join(parts))
        about = {
            "column_encodings": [encodings[name] for name in names],
            "column_names": names,
            "column_sizes": sizes,
            "compression": None,
            "format": "mds",
            "samples": len(made),
            "version": 2,
        }
        config = json.dumps(about).encode()
        ends = np.cumsum([0, *map(len, made)]) + 4 * (len(made) + 2) + len(config)
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(
            np.uint32(len(made)).tobytes() + ends.astype("<u4").tobytes() + config + b"".join(made)
        )
        shards.append({**about, "raw_data": {"basename": name, "bytes": 0, "hashes": {}}, "zip_data": None})
    (folder / "index.json").write_text(json.dumps({"shards": shards, "version": 2}))
    return folder


def samples(count: int = 24) -> list[dict[str, Any]]:
    return [
        {"image": data, "label": i % 5 - 1, "weight": i / 4, "text": f"t{i}", "small": i}
        for i, data in enumerate(pictures(count))
    ]


ENCODINGS = {"image": "bytes", "label": "int", "weight": "float32", "text": "str", "small": "uint16"}


@pytest.mark.parametrize("names", [["image", "label"], list(ENCODINGS)], ids=["one varies", "two vary"])
def test_batches_equal_the_oracle(tmp_path: Path, names: list[Any]) -> None:
    write(tmp_path, samples(), {name: ENCODINGS[name] for name in names})
    data = MDS(tmp_path, "image", "label", train(24))
    blobs = EncodedImages(pictures(24), [i % 5 - 1 for i in range(24)], train(24))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_same(loader, list(DataLoader(blobs, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    again = pickle.loads(pickle.dumps(data))
    assert_same(DataLoader(again, 5, seed=1), list(DataLoader(data, 5, seed=1)))
    assert data.location(12) == f"sample 12, in {tmp_path}/shard.00001.mds"


def test_labels(tmp_path: Path) -> None:
    write(tmp_path, samples(), ENCODINGS)
    data = MDS(tmp_path, "image", ["label", "weight", "text", "small"], SMALL)
    assert data[23][1] == {"label": 2, "weight": 5.75, "text": "t23", "small": 23}
    batch = list(DataLoader(data, 7))[1][1]
    assert batch["weight"].tolist() == [i / 4 for i in range(7, 14)] and batch["text"][0] == "t7"
    assert isinstance(MDS(tmp_path, "image", transform=SMALL)[0], torch.Tensor)


def test_what_streaming_writes_and_reads(tmp_path: Path) -> None:
    try:
        import_torchvision()  # streaming imports it
        from streaming import MDSWriter
        from streaming.base.format.mds.reader import MDSReader
    except ImportError as error:
        pytest.skip(f"mosaicml-streaming, or what it imports, is missing: {error}")
    columns = {"image": "jpeg", "mask": "png", "label": "int", "about": "json", "score": "float64"}
    files = [data for data in pictures(24) if data[:2] == b"\xff\xd8"]
    with MDSWriter(out=str(tmp_path), columns=columns, size_limit=1 << 14) as out:
        for number, data in enumerate(files):
            with Image.open(BytesIO(data)) as image:
                mask = image.convert("L")
                row = {"image": image, "mask": mask, "label": number - 3, "about": {"n": number}, "score": number / 3}
                out.write(row)
    held = json.loads((tmp_path / "index.json").read_text())["shards"]
    assert len(held) > 2
    theirs = [one for shard in held for one in MDSReader.from_json(str(tmp_path), "", shard)]
    ours = MDS(tmp_path, "image", ["label", "about", "score"], SMALL)
    loader = DataLoader(ours, 4, num_workers=1)
    made = [image for images, _ in loader for image in images]
    assert loader.native and len(made) == len(theirs) == len(files)
    for number, (image, row) in enumerate(zip(made, theirs, strict=True)):
        assert torch.equal(image, SMALL(row["image"].convert("RGB")))
        assert ours[number][1] == {name: row[name] for name in ("label", "about", "score")}
        assert MDS(tmp_path, "mask", mode="L").image(number).tobytes() == row["mask"].tobytes()


def changed_index(folder: Path, **values: Any) -> None:
    index = json.loads((folder / "index.json").read_text())
    index["shards"][1].update(values)
    (folder / "index.json").write_text(json.dumps(index))


def overwrite(folder: Path, at: int, data: bytes) -> None:
    with (folder / "shard.00001.mds").open("r+b") as file:
        file.seek(at)
        file.write(data)


DAMAGE = {
    "count": lambda folder: overwrite(folder, 0, b"\x0b"),
    "places": lambda folder: overwrite(folder, 8, b"\xff\xff\xff\xff"),
    "cut": lambda folder: (folder / "shard.00001.mds").write_bytes((folder / "shard.00001.mds").read_bytes()[:-9]),
    "empty": lambda folder: (folder / "shard.00001.mds").write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_shards(tmp_path: Path, damage: str) -> None:
    write(tmp_path, samples(), ENCODINGS)
    DAMAGE[damage](tmp_path)
    with pytest.raises(ValueError, match=r"shard.00001.mds is damaged"):
        MDS(tmp_path, "image")


def test_a_size_that_lies(tmp_path: Path) -> None:
    write(tmp_path, samples(), ENCODINGS)
    path = tmp_path / "shard.00000.mds"
    first = int(np.frombuffer(path.read_bytes(), "<u4", 1, 4)[0])
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xff\xff\xff\x7f")
    with pytest.raises(ValueError, match="sizes of its columns do not add up"):
        MDS(tmp_path, "image")


def test_what_is_refused(tmp_path: Path) -> None:
    write(tmp_path, samples(), ENCODINGS)
    with pytest.raises(ValueError, match="'text' has the encoding 'str'; encoded images"):
        MDS(tmp_path, "text")
    with pytest.raises(ValueError, match="image='picture' is no column"):
        MDS(tmp_path, "picture")
    for values, message in (
        ({"format": "json"}, "format 'json' 2"),
        ({"column_names": list("abcde")}, r"shard.00001.mds has other columns"),
        ({"raw_data": {"basename": "../x.mds"}}, "not in the folder"),
        (
            {"raw_data": {"basename": "x.mds", "bytes": 9}, "zip_data": {"basename": "x.zip"}, "compression": "lz4"},
            "compressed with lz4; zstd, gz, br, bz2 are read",
        ),
        ({"samples": None}, "is no index"),
    ):
        write(tmp_path, samples(), ENCODINGS)
        changed_index(tmp_path, **values)
        with pytest.raises(ValueError, match=message):
            MDS(tmp_path, "image")
    index = (tmp_path / "index.json").read_text().replace('"str"', '"pkl"')
    write(tmp_path, samples(), ENCODINGS)
    (tmp_path / "index.json").write_text(index.replace('"samples": null', '"samples": 10'))
    with pytest.raises(ValueError, match="'pkl', which could run any code"):
        MDS(tmp_path, "image", "text")
    (tmp_path / "index.json").write_text("[]")
    with pytest.raises(ValueError, match=r"index.json is no index"):
        MDS(tmp_path, "image")
    with pytest.raises(FileNotFoundError):
        MDS(tmp_path / "missing", "image")


def test_a_shard_that_has_changed_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, samples(), ENCODINGS)
    again = pickle.loads(pickle.dumps(MDS(tmp_path, "image", transform=SMALL)))
    overwrite(tmp_path, 0, b"\x0a")
    with pytest.raises(ValueError, match=r"shard.00001.mds has changed since"):
        len(again)


@pytest.mark.parametrize(("how", "codec"), [("zstd:7", "zstd"), ("gz", "gzip"), ("br:3", "brotli"), ("bz2", "bz2")])
def test_compressed_shards_are_decompressed_once(tmp_path: Path, how: str, codec: str) -> None:
    samples = [{"image": data, "label": i} for i, data in enumerate(pictures(24))]
    folder, cache = write(tmp_path / "a", samples, {"image": "bytes", "label": "int"}), tmp_path / "cache"
    plain = MDS(folder, "image", "label", SMALL)
    expected = [(plain.read(i), plain.target(i)) for i in range(24)]
    index = json.loads((folder / "index.json").read_text())
    for shard in index["shards"]:
        raw = folder / shard["raw_data"]["basename"]
        shard["raw_data"]["bytes"] = raw.stat().st_size
        shard |= {"compression": how, "zip_data": {"basename": f"{raw.name}.packed"}}
        with pa.CompressedOutputStream(str(raw) + ".packed", codec) as out:
            out.write(raw.read_bytes())
        raw.unlink()
    (folder / "index.json").write_text(json.dumps(index))
    data = MDS(folder, "image", "label", SMALL, cache=cache)
    assert [(data.read(i), data.target(i)) for i in range(24)] == expected
    loader = DataLoader(data, 5, num_workers=1)
    assert_same(loader, list(DataLoader(EncodedImages(pictures(24), list(range(24)), SMALL), 5)))
    made = {one.name: one.stat().st_mtime_ns for one in cache.iterdir()}
    again = pickle.loads(pickle.dumps(MDS(folder, "image", "label", SMALL, cache=cache)))
    assert again.read(3) == expected[3][0] and len(made) == 3
    assert {one.name: one.stat().st_mtime_ns for one in cache.iterdir()} == made
    packed = folder / "shard.00001.mds.packed"
    whole = packed.read_bytes()
    for damaged in (whole[:-9], b"", b"text" * 9, whole + whole):
        packed.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"shard\.00001\.mds\.packed is damaged"):
            MDS(folder, "image", "label", cache=cache)
    assert {one.name for one in cache.iterdir()} <= set(made)  # nothing that is half
    packed.write_bytes(whole)
    os.utime(packed, ns=(1, 1))
    MDS(folder, "image", "label", cache=cache)
    assert len(list(cache.iterdir())) == 3  # what was made of the old one is gone


def test_a_file_that_changes_is_an_error_of_its_samples(tmp_path: Path) -> None:
    data = MDS(
        write(
            tmp_path / "a",
            [{"image": data, "label": i} for i, data in enumerate(pictures(24))],
            {"image": "bytes", "label": "int"},
        ),
        "image",
        "label",
        SMALL,
    )
    path = Path(data.images.name_of(23) or "")
    assert path.name == "shard.00002.mds"
    first = data.read(0)
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(headrace.SampleError, match=r"sample 2\d, in .*shard.00002.mds.*truncated"):
        list(DataLoader(data, 4, num_workers=1))
    with pytest.raises(OSError, match="changed after it was indexed"):
        data.target(23)
    assert data.read(0) == first and data.target(0) is not None

"""litdata's chunks with compression inside the file: the samples of the same chunks without it; damage is an error."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from table_samples import SMALL
from test_litdata import write

from headrace import DataLoader, LitData
from support import assert_same, pictures

ZSTD = pa.Codec("zstd", compression_level=4)


def in_batches(data: bytes, each: int = 3) -> bytes:
    """A chunk's bytes in frames of `each` samples, by the format's description."""
    count = struct.unpack_from("<I", data)[0]
    bounds = struct.unpack_from(f"<{count + 1}I", data, 4)
    groups = [(first, min(first + each, count)) for first in range(0, count, each)]
    parts = [data[bounds[first] : bounds[end]] for first, end in groups]
    packed = [ZSTD.compress(part, asbytes=True) for part in parts]
    at = 24 + 4 * (count + 1) + 24 * len(groups)
    table = b""
    for (first, end), part, frame in zip(groups, parts, packed, strict=True):
        table += struct.pack("<IIQII", first, end - first, at, len(frame), len(part))
        at += len(frame)
    places = np.array(bounds, "<u4") - np.uint32(bounds[0])
    head = struct.pack("<8sHHIII", b"LDFZ01\0\0", 1, 0, count, each, len(groups))
    return head + places.astype("<u4").tobytes() + table + b"".join(packed)


def by_sample(data: bytes) -> bytes:
    """A chunk's bytes with a frame a sample."""
    count = struct.unpack_from("<I", data)[0]
    bounds = struct.unpack_from(f"<{count + 1}I", data, 4)
    frames = [ZSTD.compress(data[a:b], asbytes=True) for a, b in pairwise(bounds)]
    places = np.cumsum([4 * (count + 2), *map(len, frames)]).astype("<u4")
    return struct.pack("<I", count) + places.tobytes() + b"".join(frames)


WAYS: dict[str, Callable[[bytes], bytes]] = {"batch": in_batches, "sample": by_sample}


def packed(folder: Path, level: str, **config: Any) -> Path:
    folder.mkdir()
    write(folder, compression="zstd", compression_level=level, **config)
    for chunk in folder.glob("*.bin"):
        chunk.write_bytes(WAYS[level](chunk.read_bytes()))
    return folder


@pytest.mark.parametrize("level", WAYS)
def test_the_samples_are_those_without_compression(tmp_path: Path, level: str) -> None:
    (tmp_path / "plain").mkdir()
    names = ["label", "text", "even", "weight"]
    plain = LitData(write(tmp_path / "plain"), "image", names, SMALL)
    data = LitData(packed(tmp_path / "packed", level), "image", names, SMALL, cache=tmp_path / "cache")
    assert [data.read(i) for i in range(24)] == list(pictures(24))
    loaders = [DataLoader(one, 5, True, seed=1, num_workers=1) for one in (data, plain)]
    assert loaders[0].native
    assert_same(*map(list, loaders))
    made = sorted(one.name for one in (tmp_path / "cache").iterdir())
    LitData(tmp_path / "packed", "image", cache=tmp_path / "cache")
    assert sorted(one.name for one in (tmp_path / "cache").iterdir()) == made and len(made) == 3


def test_the_algorithms_level_is_part_of_its_name(tmp_path: Path) -> None:
    folder = packed(tmp_path / "packed", "batch")
    index = json.loads((folder / "index.json").read_text())
    index["config"]["compression"] = "zstd:9"
    (folder / "index.json").write_text(json.dumps(index))
    assert LitData(folder, "image", cache=tmp_path / "cache").read(23) == pictures(24)[23]


@pytest.mark.parametrize("level", WAYS)
def test_damage(tmp_path: Path, level: str) -> None:
    folder = packed(tmp_path / "packed", level)
    chunk = folder / "chunk-0-1.bin"
    whole = chunk.read_bytes()
    random = np.random.default_rng(3)
    head = 24 + 4 * 11 + 24 * 4 if level == "batch" else 4 * 12
    cut = [whole[:size] for size in (0, 3, 20, 60, len(whole) - 1)]
    flipped = []
    for at in (*range(0, head, 5), *random.integers(head, len(whole), 5).tolist()):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        flipped.append(bytes(changed))
    refused = 0
    for data in (*cut, *flipped):
        chunk.write_bytes(data)
        try:
            held = LitData(folder, "image", cache=tmp_path / "cache")
        except ValueError as error:
            assert "chunk-0-1" in str(error)
            refused += 1
        else:  # a number that nothing depends on: how many samples a frame has at most; or damage that zstd cannot see
            assert len(held) == 24
    assert refused >= len(cut) + head // 5 - 3
    assert not list((tmp_path / "cache").glob("*.unfinished"))


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    folder = packed(tmp_path / "packed", "batch")
    chunk = folder / "chunk-0-0.bin"
    data = bytearray(chunk.read_bytes())
    data[24 + 4 * 11 + 20 : 24 + 4 * 11 + 24] = b"\xff" * 4  # the bytes of the first frame
    chunk.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="its samples do not fill its frames"):
        LitData(folder, "image", cache=tmp_path / "cache")

"""Writes the indexes that DALI and Energon keep beside shards, true ones and false ones."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path

Row = list  # extension, offset, size, name


def rows(path: Path) -> list[list[Row]]:
    samples: list[list[Row]] = []
    with tarfile.open(path) as tar:
        for member in tar:
            stem, _, extension = member.name.rpartition("/")[2].partition(".")
            if not samples or not samples[-1][0][3].rpartition("/")[2].startswith(f"{stem}."):
                samples.append([])
            samples[-1].append([extension, member.offset_data, member.size, member.name])
    return samples


def dali(path: Path, samples: list[list[Row]]) -> Path:
    """The text of wds2idx."""
    index = path.with_name(path.name.split(".")[0] + ".idx")
    lines = [" ".join(" ".join(map(str, row)) for row in sample) for sample in samples]
    index.write_text(f"v1.2 {len(samples)}\n" + "\n".join(lines) + "\n")
    return index


def energon(path: Path, samples: list[list[Row]]) -> Path:
    """The database of `energon prepare`, in the folder above the shard's."""
    root = path.parent.parent
    (root / ".nv-meta").mkdir(exist_ok=True)
    names = ["other.tar", str(path.relative_to(root))]
    (root / ".nv-meta" / ".info.json").write_text(json.dumps({"shard_counts": dict.fromkeys(names, len(samples))}))
    index = root / ".nv-meta" / "index.sqlite"
    index.unlink(missing_ok=True)
    base = sqlite3.connect(index)
    base.execute("CREATE TABLE samples (tar_file_id, sample_key, sample_index, byte_offset, byte_size)")
    base.execute(
        "CREATE TABLE sample_parts (tar_file_id, sample_index, part_name, content_byte_offset, content_byte_size)"
    )
    for shift in (0, 1):  # the other shard's rows come before
        for number, sample in enumerate(samples):
            key = sample[0][3][: -len(sample[0][0]) - 1]
            base.execute("INSERT INTO samples VALUES (?, ?, ?, 0, 0)", (shift, key if shift else f"o{key}", number))
            for extension, offset, size, _ in reversed(sample):
                base.execute(
                    "INSERT INTO sample_parts VALUES (?, ?, ?, ?, ?)", (shift, number, extension, offset, size)
                )
    base.commit()
    base.close()
    return index


WRITERS: dict[str, Callable[[Path, list[list[Row]]], Path]] = {"dali": dali, "energon": energon}


def lie(name: str, samples: list[list[Row]]) -> None:
    flat = [row for sample in samples for row in sample]
    if name == "shifted":
        for row in flat:
            row[1] += 512
    elif name == "offset":
        flat[5][1] += 512
    elif name == "size":
        flat[4][2] += 600
    elif name == "size in its padding":
        for row in flat:
            row[2] += 1
    elif name == "name":
        for row in flat:
            row[3] = row[3].replace("00", "10")
    elif name == "a member is missing":
        del samples[2][1]
    elif name == "the last sample is missing":
        del samples[-1]
    elif name == "a name twice":
        samples[0][1][0], samples[0][1][3] = samples[0][0][0], samples[0][0][3]
    elif name == "beyond":
        flat[-1][1] = flat[-1][2] = 1 << 62
    elif name == "negative":
        flat[0][1] = -512
    elif name == "no samples":
        samples.clear()


LIES = (
    *("shifted", "offset", "size", "size in its padding", "name", "a member is missing", "the last sample is missing"),
    *("a name twice", "beyond", "negative", "no samples"),
)

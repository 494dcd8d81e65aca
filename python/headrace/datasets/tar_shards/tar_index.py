"""The index of one tar shard: where each member's bytes are, and which sample it belongs to; its sidecar file."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base import loggers
from headrace._base.native import core
from headrace._base.private_files import PRIVATE, permissions_like, read_own, replace_file
from headrace._base.types import Array
from headrace._storage.parts.file_reads import stamp_of
from headrace.datasets.tar_shards.external_index import foreign_index
from headrace.datasets.tar_shards.npz_reader import stored_arrays
from headrace.datasets.tar_shards.tar_header import is_header_of

_VERSION = 2  # 1: macOS's metadata were members
_TRIED = 4  # members of a sidecar whose headers are compared with the shard


@dataclass(frozen=True)
class TarIndex:
    """All members of a shard that belong to samples, in its order. Numbers of samples count from 0 in each shard."""

    stamp: npt.NDArray[np.int64]  # (2,): size, time of modification in ns
    sample: npt.NDArray[np.uint32]  # number of each member's sample
    extension: npt.NDArray[np.uint32]  # number of its extension
    offset: npt.NDArray[np.uint64]  # of its bytes
    length: npt.NDArray[np.uint64]
    number: npt.NDArray[np.int64]  # the whole number that its bytes spell, or core.NO_NUMBER
    keys: npt.NDArray[np.uint8]  # of the samples, each zero-terminated
    key_offsets: npt.NDArray[np.uint64]
    extensions: npt.NDArray[np.bytes_]
    has_end: npt.NDArray[np.bool_]  # (): whether the shard has its marker of the end

    def extension_numbers(self) -> dict[str, int]:
        return {os.fsdecode(name): number for number, name in enumerate(self.extensions.tolist())}

    def key(self, sample: int) -> str:
        begin = int(self.key_offsets[sample])
        packed = self.keys[begin : begin + 65536].tobytes()
        return os.fsdecode(packed[: packed.find(b"\0")])


def index_of(path: str, folder: str | None) -> TarIndex:
    """Returns the index of a shard: from its sidecar if that fits the shard, or from one of DALI or Energon that does,
    otherwise from the shard's headers.

    A new index is kept as a sidecar where that can be written.

    Args:
        path: the shard.
        folder: where sidecars are stored. None: beside the shards. "": nowhere.

    Raises:
        OSError: the shard cannot be read.
        ValueError: it cannot be indexed; the message names the shard, the offset and the remedy.
    """
    sidecar = _sidecar(path, folder)
    if sidecar is not None and (known := _load_sidecar(sidecar, path)) is not None:
        return known
    index = _adopt_foreign(path) if folder != "" else None
    if index is None:
        index = read_index(path, path)
    if sidecar is not None:
        try:
            store(sidecar, index, permissions_like(path))
        except OSError as error:
            loggers.storage.info("the index of %s is not kept, and will be made again: %s", path, error)
    return index


def read_index(path: str, name: str) -> TarIndex:
    """Returns the index of a shard from its headers. `name`: of the shard in messages. Raises as `index_of`."""
    try:
        made = core.tar_samples(os.fsencode(path))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    passed = made.pop("passed")
    assert isinstance(passed, int)
    note_passed_members(name, passed)
    return index_from(made)


def note_passed_members(shard: str, count: int) -> None:
    """Logs how many members of a shard are macOS's metadata, and of no sample."""
    if count > 0:
        loggers.storage.info(
            "%s: %d members are metadata that macOS wrote (._name, __MACOSX/, .DS_Store), and passed over", shard, count
        )


def index_from(made: dict[str, Any]) -> TarIndex:
    """Returns the index of the fields that ``core.tar_samples`` makes, without `passed`."""
    return TarIndex(
        **{
            **made,
            "stamp": np.array(made["stamp"], np.int64),
            "keys": np.frombuffer(made["keys"], np.uint8),
            "extensions": np.array(made["extensions"] or [b""], np.bytes_),
            "has_end": np.array(made["has_end"]),
        }
    )


def _adopt_foreign(path: str) -> TarIndex | None:
    """Returns an index made from another program's, if there is one beside the shard and it fits."""
    if (made := foreign_index(path)) is None:
        return None
    index = index_from(made)
    with suppress(OSError, ValueError):
        return index if is_consistent(index) and _fits_shard(index, path) else None
    return None


def _sidecar(path: str, folder: str | None) -> Path | None:
    if folder == "":
        return None
    if folder is None:
        return Path(path + ".index.npz")
    # Shards of several folders may have one name.
    return Path(folder, f"{Path(path).name}.{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.npz")


def store(sidecar: Path, index: TarIndex, mode: int = PRIVATE) -> None:
    """Writes the sidecar whole or not at all: other processes may write and read it at the same time.

    Args:
        mode: who may read it, as far as the process's umask lets them.
    """
    sidecar.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replace_file(sidecar, mode) as file:
        np.savez(file, allow_pickle=False, version=np.array(_VERSION), **vars(index))


def _load_sidecar(sidecar: Path, path: str) -> TarIndex | None:
    """Returns a sidecar's index, or None if there is none or it does not fit the shard."""
    stamp = np.array(stamp_of(os.stat(path)), np.int64)  # noqa: PTH116 - a string
    try:
        index = parse_sidecar(read_own(sidecar))
        return index if index is not None and np.array_equal(index.stamp, stamp) and _fits_shard(index, path) else None
    except (OSError, ValueError):
        return None


def parse_sidecar(data: bytes) -> TarIndex | None:
    """Returns the index in the bytes of a sidecar; None if they hold none, or one whose numbers contradict each
    other."""
    try:
        file = stored_arrays(data)
        if int(file["version"]) != _VERSION:
            return None
        index = TarIndex(**{field.name: file[field.name] for field in fields(TarIndex)})
        return index if is_consistent(index) else None
    except Exception:  # numpy, zipfile and Python's tokenizer raise many classes for damaged files
        return None


def is_consistent(index: TarIndex) -> bool:
    """Whether every number of a sidecar points to something that exists."""
    columns: tuple[Array, ...] = (index.sample, index.extension, index.offset, index.length, index.number)
    kinds: tuple[object, ...] = (np.uint32, np.uint32, np.uint64, np.uint64, np.int64)
    if any(a.dtype != kind or a.shape != index.sample.shape for a, kind in zip(columns, kinds, strict=True)):
        return False
    if index.sample.ndim != 1 or index.keys.dtype != np.uint8 or index.key_offsets.dtype != np.uint64:
        return False
    if len(index.sample) == 0:
        return len(index.key_offsets) == 0
    size, keys = np.uint64(index.stamp[0]), index.keys
    steps = np.diff(index.sample.astype(np.int64))
    ends = np.flatnonzero(keys == 0) + 1
    return bool(
        index.sample[0] == 0
        and ((steps == 0) | (steps == 1)).all()
        and int(index.sample[-1]) + 1 == len(index.key_offsets)
        and int(index.extension.max()) < len(index.extensions)
        and (index.offset <= size).all()
        and (index.length <= size - index.offset).all()
        and np.array_equal(index.key_offsets, np.concatenate([[0], ends[:-1]]).astype(np.uint64))
    )


def _fits_shard(index: TarIndex, path: str) -> bool:
    """Whether the headers of some members say what the sidecar says."""
    count = len(index.sample)
    places = {0, count - 1, *np.random.default_rng().integers(0, count, _TRIED).tolist()} if count else set()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a string
        for place in places:
            name = f"{index.key(int(index.sample[place]))}.{os.fsdecode(index.extensions[index.extension[place]])}"
            if not is_header_of(file.fileno(), int(index.offset[place]), int(index.length[place]), name):
                return False
    return True

"""Keeps the samples of many shards as mapped arrays: joining ten million takes seconds, mapping them does not."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from headrace._base import loggers
from headrace._base.private_files import is_own_folder, mapped_array
from headrace._base.types import Array
from headrace.datasets.sources.byte_ranges import stamps_of
from headrace.datasets.sources.packed_paths import PackedPaths
from headrace.datasets.tar_shards.all_samples import JoinedField, JoinedSamples
from headrace.datasets.tar_shards.tar_header import is_header_of

Uint64s = npt.NDArray[np.uint64]

_VERSION = 2  # 1: macOS's metadata were members
_AT_ONCE = 1 << 16  # samples whose ranges are checked at a time
_FEWEST = 1_000_000  # samples: fewer are joined in less than a second
_LONGEST = 512  # bytes of a usual key
_TRIED = 64  # samples whose headers are compared
_PARTS = ("choice", "offset", "length", "number")
_DTYPES = {
    "stamps": "i8",
    "shard_of": "u4",
    "keys": "u1",
    "key_offsets": "u8",
    "choice": "u1",
    "offset": "u8",
    "length": "u8",
    "number": "i8",
}


class KeptSamples:
    """A folder of .npy files with the samples of some shards.

    Args:
        folder: where the folder is. None: beside the first shard. "": nowhere, so nothing is found or kept.
        wanted, skip: as in `all_samples`.
    """

    def __init__(self, shards: list[str], folder: str | None, wanted: dict[str, tuple[str, ...]], skip: bool) -> None:
        self._shards, self._wanted = shards, wanted
        what = repr((_VERSION, shards, sorted(wanted.items()), skip)).encode(errors="surrogateescape")
        name = f".headrace-{hashlib.sha256(what).hexdigest()[:16]}.samples"
        self._folder = None if folder == "" else Path(os.path.dirname(shards[0]) if folder is None else folder) / name  # noqa: PTH120

    def store(self, samples: JoinedSamples) -> None:
        """Writes the folder whole or not at all, if the samples are many and there is none; it may fail to."""
        if self._folder is None or len(samples.keys) < _FEWEST or not isinstance(samples.keys, PackedPaths):
            return
        unfinished = None
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(dir=self._folder.parent, prefix=self._folder.stem, suffix=".unfinished"))
            keys = np.frombuffer(samples.keys.packed, np.uint8)
            arrays: dict[str, Array] = {"stamps": samples.stamps, "shard_of": samples.shard_of, "keys": keys}
            arrays["key_offsets"] = samples.keys.offsets
            for number, field in enumerate(samples.fields.values()):
                parts = {part: getattr(field, part) for part in _PARTS}
                parts["number"] = np.empty(0, np.int64) if field.number is None else field.number
                arrays |= {f"{number}.{part}": array for part, array in parts.items()}
            for name, array in arrays.items():
                np.save(unfinished / f"{name}.npy", array, allow_pickle=False)
            shutil.rmtree(self._folder, ignore_errors=True)  # one that did not fit
            unfinished.rename(self._folder)
        except OSError as error:  # no room, or no right to write
            loggers.storage.info("the samples of the shards are not kept in %s: %s", self._folder, error)
            if unfinished is not None:
                shutil.rmtree(unfinished, ignore_errors=True)

    def load(self) -> JoinedSamples | None:
        """Returns the samples, mapped; None if there are none, or they do not fit the shards."""
        if self._folder is None or not is_own_folder(self._folder):
            return None
        try:
            loaded = self._map_samples(stamps_of(self._shards))
            return loaded if loaded is not None and self._fits_shards(loaded) else None
        except (OSError, ValueError, EOFError, KeyError, TypeError, IndexError) as error:
            loggers.storage.info("the samples kept in %s are not used: %s", self._folder, error)
            return None

    def _map_array(self, name: str) -> Array:
        assert self._folder is not None
        array: Array = mapped_array(self._folder / f"{name}.npy")
        if array.dtype != np.dtype(_DTYPES[name.rpartition(".")[2]]) or not array.flags.c_contiguous:
            raise ValueError("an array of another kind")
        return array.view(np.ndarray)

    def _map_samples(self, stamps: npt.NDArray[np.int64]) -> JoinedSamples | None:
        if not np.array_equal(self._map_array("stamps"), stamps):
            return None
        shard_of, keys, key_offsets = (
            self._map_array("shard_of"),
            self._map_array("keys"),
            self._map_array("key_offsets"),
        )
        if shard_of.ndim != 1 or key_offsets.shape != shard_of.shape or int(shard_of.max()) >= len(stamps):
            return None
        if keys.ndim != 1 or keys[-1] != 0 or int(key_offsets.max()) >= len(keys):
            return None
        sizes = stamps[:, 0].astype(np.uint64)
        fields = {}
        for number, (name, extensions) in enumerate(self._wanted.items()):
            parts = {part: self._map_array(f"{number}.{part}") for part in _PARTS}
            whole = len(parts["number"]) > 0  # otherwise, some are no whole numbers
            if any(array.shape != shard_of.shape for part, array in parts.items() if whole or part != "number"):
                return None
            # The places of numbers are not read: these are not read from the shard again.
            if not whole and not _are_ranges_inside(shard_of, sizes, parts["offset"], parts["length"]):
                return None
            if int(parts["choice"].max()) >= len(extensions):
                return None
            fields[name] = JoinedField(
                extensions, parts["choice"], parts["offset"], parts["length"], parts["number"] if whole else None
            )
        return JoinedSamples(stamps, shard_of, MappedKeys(keys, key_offsets), fields)

    def _fits_shards(self, samples: JoinedSamples) -> bool:
        """Whether the headers of some samples, drawn at random, say what was kept."""
        count = len(samples.keys)
        places = {0, count - 1, *np.random.default_rng().integers(0, count, _TRIED).tolist()}
        for place in places:
            with open(self._shards[int(samples.shard_of[place])], "rb", buffering=0) as file:  # noqa: PTH123
                for name, field in samples.fields.items():
                    where = int(field.offset[place]), int(field.length[place])
                    if not is_header_of(file.fileno(), *where, samples.names(name)[place]):
                        return False
        return True


def _are_ranges_inside(shard_of: npt.NDArray[np.uint32], sizes: Uint64s, offsets: Uint64s, lengths: Uint64s) -> bool:
    """Whether all ranges are within their shards. Some at a time, whose temporary arrays stay in the caches."""
    for begin in range(0, len(shard_of), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        ends, offset = sizes[shard_of[part]], offsets[part]
        if (offset > ends).any() or (lengths[part] > ends - offset).any():
            return False
    return True


class MappedKeys(Sequence[str]):
    """Texts in an array, each zero-terminated.

    Args:
        packed: uint8.
        offsets: where they begin.
    """

    def __init__(self, packed: npt.NDArray[np.uint8], offsets: npt.NDArray[np.uint64]) -> None:
        self.packed = packed
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        begin, size = int(self.offsets[index]), _LONGEST
        while (end := (held := self.packed[begin : begin + size].tobytes()).find(b"\0")) < 0:
            size *= 2
        return os.fsdecode(held[:end])

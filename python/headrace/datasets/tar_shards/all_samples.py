"""The samples of all shards: where each wanted field is stored, from the indexes of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace.datasets.sources.packed_paths import PackedPaths
from headrace.datasets.tar_shards.external_index import UNREAD
from headrace.datasets.tar_shards.member_values import INTEGERS, MemberNames
from headrace.datasets.tar_shards.tar_index import TarIndex


@dataclass(frozen=True)
class JoinedField:
    """One field of all samples.

    Attributes:
        extensions: those that are wanted, the preferred one first.
        choice: the number of each sample's extension among them, uint8 (n,).
        offset, length: the place of its bytes in the shard, uint64 (n,).
        number: the whole numbers that the bytes spell, int64 (n,); None if some spell none, or were not read.
        unread: whether some were not read, and all others spell a whole number.
    """

    extensions: tuple[str, ...]
    choice: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint64]
    number: npt.NDArray[np.int64] | None
    unread: bool = False


@dataclass(frozen=True)
class JoinedSamples:
    """The samples of several shards.

    Attributes:
        stamps: size and time of modification of each shard, int64 (shards, 2).
        shard_of: the shard of each sample, uint32 (n,).
        keys: the keys of the samples.
        fields: the wanted fields by their names.
    """

    stamps: npt.NDArray[np.int64]
    shard_of: npt.NDArray[np.uint32]
    keys: Sequence[str]
    fields: dict[str, JoinedField]

    def byte_ranges(self, name: str) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Returns the shard, the offset and the length of a field's bytes in each sample."""
        return self.shard_of, self.fields[name].offset, self.fields[name].length

    def names(self, name: str) -> MemberNames:
        return MemberNames(self.keys, self.fields[name].choice, list(self.fields[name].extensions))


def join_indexes(
    shards: Sequence[str], indexes: list[TarIndex], wanted: dict[str, tuple[str, ...]], skip: bool
) -> JoinedSamples:
    """Joins the indexes of shards.

    Args:
        wanted: name of a field -> extensions, the preferred one first.
        skip: whether samples that lack a field are left out.

    Raises:
        ValueError: samples lack a field and `skip` is False, or no sample is left.
    """
    counts = [len(index.key_offsets) for index in indexes]
    ends = np.cumsum([0, *counts])
    fields = {name: _join_field(indexes, extensions, ends) for name, extensions in wanted.items()}
    complete = np.logical_and.reduce([found for _, found in fields.values()])
    if not complete.all() and not skip:
        name = next(name for name, (_, found) in fields.items() if not found.all())
        lacking = np.flatnonzero(~fields[name][1])
        number = int(np.searchsorted(ends, lacking[0], side="right")) - 1
        key = indexes[number].key(int(lacking[0] - ends[number]))
        raise ValueError(
            f"{shards[number]}: {len(lacking)} of {len(complete)} samples have no {' or '.join(wanted[name][:4])}, "
            f'first {key!r}; give another `image` or `label`, or missing="skip"'
        )
    if not complete.any():
        raise ValueError(f"there is no complete sample in {len(shards)} shards, first {shards[0]}")
    bases = np.cumsum([0, *(len(index.keys) for index in indexes)]).astype(np.uint64)
    offsets = np.concatenate([index.key_offsets + base for index, base in zip(indexes, bases[:-1], strict=True)])
    chosen = slice(None) if complete.all() else complete
    return JoinedSamples(
        np.stack([index.stamp for index in indexes]),
        np.repeat(np.arange(len(indexes), dtype=np.uint32), counts)[chosen],
        PackedPaths.of_packed(b"".join(index.keys.tobytes() for index in indexes), offsets[chosen]),
        {name: _choose_samples(field, chosen) for name, (field, _) in fields.items()},
    )


def _join_field(
    indexes: list[TarIndex], extensions: tuple[str, ...], ends: npt.NDArray[np.int64]
) -> tuple[JoinedField, npt.NDArray[np.bool_]]:
    """Returns a field, and which samples have it."""
    count = int(ends[-1])
    found, choice = np.zeros(count, bool), np.zeros(count, np.uint8)
    offset, length = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    number = np.zeros(count, np.int64) if extensions[0] in INTEGERS else None
    for first, last, index in zip(ends[:-1], ends[1:], indexes, strict=True):
        numbers = index.extension_numbers()
        part = slice(first, last)
        for preferred in reversed(range(len(extensions))):  # the preferred one last
            if (known := numbers.get(extensions[preferred])) is None:
                continue
            places = np.flatnonzero(index.extension == known)
            samples = index.sample[places]
            found[part][samples], choice[part][samples] = True, preferred
            offset[part][samples], length[part][samples] = index.offset[places], index.length[places]
            if number is not None:
                number[part][samples] = index.number[places]
    return JoinedField(extensions, choice, offset, length, number), found


def _choose_samples(field: JoinedField, chosen: slice | npt.NDArray[np.bool_]) -> JoinedField:
    number = None if field.number is None else field.number[chosen]
    whole = number is not None and not (number == core.NO_NUMBER).any()
    unread = whole and bool(np.any(number == UNREAD))
    places = field.choice[chosen], field.offset[chosen], field.length[chosen]
    return JoinedField(field.extensions, *places, number if whole and not unread else None, unread)

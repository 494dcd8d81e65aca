"""The samples of tar shards with all their members, also those that their dataset does not read."""

from __future__ import annotations

import numpy as np

from headrace._cli.pack.members import Contents, PackSample
from headrace._storage.parts.file_reads import read_range
from headrace.datasets.tar_shards.tar_dataset import TarShards
from headrace.datasets.tar_shards.tar_index import TarIndex, index_of


class TarContents(Contents):
    """The samples of a `TarShards`: their images and all other members, byte for byte, in their order."""

    def __init__(self, source: TarShards) -> None:
        super().__init__(source)
        self._shards = source
        self._indexes: dict[int, TarIndex] = {}
        self._names: dict[int, list[str]] = {}

    def sample(self, index: int) -> PackSample:
        number, offset = int(self._shards.file_of[index]), int(self._shards.offsets[index])
        path, stamp = self._shards.paths[number], tuple(self._shards.stamps[number].tolist())
        members, names = self._index(number)
        begin, end = np.searchsorted(members.sample, _sample_at(members, offset) + np.arange(2))
        found = {}
        image = ""
        for place in range(int(begin), int(end)):
            name = names[int(members.extension[place])]
            try:
                found[name] = read_range(path, int(members.offset[place]), int(members.length[place]), stamp)
            except OSError as error:
                raise ValueError(f"sample {index} cannot be read: {error}") from error
            if int(members.offset[place]) == offset:
                image = name
        return PackSample(self.keys[index], found, image)

    def _index(self, number: int) -> tuple[TarIndex, list[str]]:
        if number not in self._indexes:
            self._indexes[number] = made = index_of(self._shards.paths[number], None)
            self._names[number] = list(made.extension_numbers())
        return self._indexes[number], self._names[number]


def _sample_at(members: TarIndex, offset: int) -> int:
    """Returns the number of the sample with the member that begins at `offset`."""
    order = np.searchsorted(members.offset, np.uint64(offset))  # members are indexed in the order of the shard
    return int(members.sample[order])


def contents_of(source: object) -> Contents:
    """Returns the samples of a dataset.

    Raises:
        NotNative: the dataset cannot say where its images are stored; see `as_source`.
        ValueError: it has no samples, or its images are decoded.
    """
    from headrace.datasets.sources import as_counted

    known = as_counted(source)
    if not known.encoded:
        raise ValueError(f"{known!r} holds decoded pixels, which shards of encoded images cannot keep")
    return TarContents(known) if isinstance(known, TarShards) else Contents(known)

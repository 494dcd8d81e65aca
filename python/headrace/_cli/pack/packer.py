"""Packs a source: decides what belongs to which shard, writes the missing shards, and describes the pack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from headrace._cli.pack.completion import find_finished, join_manifests, mark_incomplete
from headrace._cli.pack.conversion import Conversion
from headrace._cli.pack.job_processes import Work
from headrace._cli.pack.manifest import Record, Terms
from headrace._cli.pack.members import Contents, label_member
from headrace._cli.pack.pack_folder import begin_pack
from headrace._cli.pack.shard_file import convert_sample, write_shard

_TRIED = 64  # samples that are converted to estimate the size of all
_BLOCK = 512  # of a tar archive

#: Opens a progress bar of a number of samples, some of which are done; it is called with further ones.
Bar = Callable[[int, int], AbstractContextManager[Callable[[int], None]]]

#: Does numbered jobs and reports the samples that are done: `run` of this machine's processes, `run_with_ray`.
Engine = Callable[[Work, Sequence[int], Callable[[int], None]], None]


@dataclass(frozen=True)
class MachineShare:
    """The shards that this machine writes: those with the number `number` - 1, modulo `of`."""

    number: int = 1
    of: int = 1

    def __contains__(self, shard: int) -> bool:
        return shard % self.of == self.number - 1


@dataclass
class Packed:
    """What a run has done.

    Attributes:
        terms: those of the pack.
        kept: shards of earlier runs.
        records: the shards of this machine, by their numbers.
        missing: shards that other machines have to write, or have written elsewhere.
    """

    terms: Terms
    kept: int = 0
    records: dict[int, Record] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)


def pack(
    contents: Contents,
    folder: Path,
    conversion: Conversion,
    *,
    shard_size: int,
    share: MachineShare,
    engine: Engine,
    overwrite: bool,
    bar: Bar,
) -> Packed:
    """Writes a source as tar shards, and keeps finished shards of earlier runs.

    Args:
        contents: the samples.
        folder: the folder of the shards. It is made, or is empty, or holds this pack.
        conversion: how images are stored.
        shard_size: about how many bytes a shard has.
        share: the shards to write here.
        engine: does the jobs, one of a shard each.
        overwrite: whether another pack in the folder is removed.
        bar: shows the progress.

    Raises:
        ValueError: the folder holds something else, or a pack with other terms; a sample cannot be read.
        OSError: a file cannot be written; finished shards stay.
    """
    terms = terms_of(contents, conversion, shard_size)
    known = begin_pack(folder, terms, overwrite)
    own = [shard for shard in range(terms.shards) if shard in share]
    wanted = [shard for shard in own if find_finished(folder, known, shard) is None]
    packed = Packed(terms, kept=len(own) - len(wanted))
    if wanted and known.complete:
        mark_incomplete(folder, known)
    samples, left = (sum(len(terms.range_of(shard)) for shard in some) for some in (own, wanted))
    with bar(samples, samples - left) as progress:
        engine(partial(write_shard, contents, terms, folder), wanted, progress)
    joined, packed.missing = join_manifests(folder)
    packed.records = {shard: record for shard in own if (record := find_finished(folder, joined, shard)) is not None}
    return packed


def terms_of(contents: Contents, conversion: Conversion, shard_size: int) -> Terms:
    """Returns the terms of a pack.

    All shards have the same number of samples, give or take one. It follows from the mean size of some samples that
    are spread evenly over the source.
    """
    count = len(contents)
    places = np.unique(np.linspace(0, count - 1, _TRIED).astype(np.int64)).tolist()
    source = contents.source
    label = label_member(source.target(places[0]))[0] if source.has_targets else None
    tried = (contents.sample(place) for place in places)
    # Videos are estimated by the files of the source: converting them takes long.
    members = [(one if conversion.video else convert_sample(one, conversion)).members.values() for one in tried]
    sizes = [sum(_BLOCK + -(-len(data) // _BLOCK) * _BLOCK for data in some) for some in members]
    shards = -(-count * sum(sizes) // (len(sizes) * shard_size))
    return Terms(source.fingerprint(), count, max(1, min(count, shards)), source.upright, label, shard_size, conversion)

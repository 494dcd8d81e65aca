"""The order of a stream: shards in a drawn order, and a buffer that samples leave in a drawn order."""

from __future__ import annotations

import asyncio
import operator
import zlib
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import torch

from headrace._base.types import State
from headrace._recipe.draws.generator_states import draw_base_seed
from headrace._recipe.draws.seeded_sampler import Seeded
from headrace._storage.remote.clients.responses import Stamp, portable
from headrace.datasets.tar_stream.sample_number import decode_sample_number, shards_of
from headrace.datasets.tar_stream.shard_plan import Plan, pick
from headrace.datasets.tar_stream.stream_reader import At, Reading
from headrace.datasets.tar_stream.stream_source import StreamSource
from headrace.datasets.tar_stream.tar_parser import ShardSamples, StreamSample

_INITIAL = 100  # samples in the buffer when the first one leaves it; webdataset's number
_VERSION = 1


class StreamSampler(Seeded):
    """Yields the numbers of samples, whose bytes it hands to the source. An iteration is a function of
    (seed, epoch, rank, number of ranks).

    Args:
        source: the source.
        plan: what this rank reads.
        buffer: samples of which the next one is drawn; 1: none, samples come in the order of their shards.
        seed: of the shuffle. None: drawn at the start of each iteration, as torch's RandomSampler does.
        generator: draws the seed; None: torch's default generator.

    Attributes:
        part: rank and number of ranks; a state fits no other.
    """

    def __init__(
        self, source: StreamSource, plan: Plan, buffer: int, seed: int | None, generator: torch.Generator | None = None
    ) -> None:
        self._source, self._plan = source, plan
        self.buffer = buffer
        self.shuffle: bool = plan.shuffle
        self.seed = seed
        self.generator = generator
        self.part: str = "rank {} of {}".format(*plan.part)
        self.length: str = "" if plan.quota is None else f"{plan.quota} {zlib.crc32(repr(plan.each).encode()):08x}"

    @property
    def of_rank(self) -> tuple[int, int]:  # type: ignore[override]
        return self._plan.part

    def __len__(self) -> int:
        if self._plan.quota is None:
            raise TypeError("the number of samples of a stream is not known; give length=")
        return self._plan.quota

    def __iter__(self) -> Iterator[int]:
        seed = self.seed
        if seed is None:
            seed = draw_base_seed(self.generator) if self.shuffle or self.buffer > 1 else 0
        return StreamIterator(self._source, self._plan, self.buffer, seed, self.epoch)


class StreamIterator(Iterator[int]):
    """One epoch of a stream."""

    def __init__(self, source: StreamSource, plan: Plan, buffer: int, seed: int, epoch: int) -> None:
        self._source, self._plan, self._size = source, plan, buffer
        self._seed, self._epoch = seed, epoch
        self._begin = At()
        self._reading: Reading | None = None
        self._buffer: list[StreamSample] = []
        self._given = 0
        self._ended = False

    def __next__(self) -> int:
        if self._ended or self._given == self._plan.quota:
            self._end_epoch()
            raise StopIteration
        if self._reading is None:
            self._reading = self._make_reading()
        try:
            self._fill_buffer(self._reading)
        except BaseException:
            self._end_epoch()
            raise
        if not self._buffer:
            self._end_epoch()
            raise StopIteration
        chosen = pick(self._seed, self._epoch, self._plan.part[0], self._given, len(self._buffer))
        self._buffer[chosen], self._buffer[-1] = self._buffer[-1], self._buffer[chosen]
        sample = self._buffer.pop()
        self._given += 1
        self._source.remember(sample)
        return sample.number

    def _make_reading(self) -> Reading:
        source = self._source
        return Reading(source.files, source.stamps, source.wanted, self._plan, self._seed, self._epoch, self._begin)

    def _fill_buffer(self, reading: Reading) -> None:
        """Fills the buffer, of which the first batch waits for a part."""
        wanted = min(self._size, _INITIAL + self._given)
        if self._plan.quota is not None:
            wanted = min(wanted, self._plan.quota - self._given)
        while len(self._buffer) < wanted and (sample := next(reading, None)) is not None:
            self._buffer.append(sample)

    def _end_epoch(self) -> None:
        self._ended = True
        self._buffer.clear()
        if self._reading is not None:
            self._reading.close()

    def state_dict(self) -> State:
        """Returns where the stream is: 16 bytes for each sample in the buffer, whose bytes are read again."""
        at = self._begin if self._reading is None else self._reading.at
        # Taken with each batch that is drawn, from a thousand samples and more: so without a loop.
        held = np.empty((len(self._buffer), 2), np.int64)
        for column, name in enumerate(("number", "end")):
            held[:, column] = np.fromiter(map(operator.attrgetter(name), self._buffer), np.int64, len(self._buffer))
        shards = shards_of(held[:, 0])
        if at.shard >= 0:
            shards.add(at.shard)
        stamps = {shard: portable(self._source.stamps[shard]) for shard in sorted(shards)}
        return {
            "version": _VERSION,
            "seed": self._seed,
            "epoch": self._epoch,
            "given": self._given,
            "at": tuple(at),
            "stamps": [(shard, *stamp) for shard, stamp in stamps.items()],
            "buffer": torch.from_numpy(held),
            "ended": self._ended,
        }

    def load_state_dict(self, state: State) -> None:
        """Continues where a state was taken: reads the samples that were in the buffer again.

        Raises:
            ValueError: the state is of another version, or damaged.
            OSError: a shard cannot be read, or was changed since.
        """
        if state.get("version") != _VERSION:
            raise ValueError(f"this is no state of a stream, version {_VERSION}: {state!r:.80}")
        try:
            self._seed, self._epoch, self._given = int(state["seed"]), int(state["epoch"]), int(state["given"])
            self._begin, self._ended = At(*map(int, state["at"])), bool(state["ended"])
            for shard, size, tag in state["stamps"]:
                self._note_stamp(int(shard), Stamp(int(size), str(tag)))
            numbers = [(int(number), int(end)) for number, end in state["buffer"].tolist()]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"the state of the stream is damaged: {error!r}") from None
        fetcher = self._source.files.fetcher
        self._buffer = fetcher.wait(self._read_again(numbers))

    def _note_stamp(self, shard: int, stamp: Stamp) -> None:
        known = self._source.stamps.get(shard)
        if known is None or stamp.tag or known.size != stamp.size:  # a state has no times of files
            self._source.stamps[shard] = stamp

    async def _read_again(self, numbers: list[tuple[int, int]]) -> list[StreamSample]:
        source, of_shards = self._source, defaultdict[int, list[tuple[int, int]]](list)
        for number, end in numbers:
            position = decode_sample_number(number)
            stamp = source.stamps.get(position.shard)
            known = stamp is not None and 0 <= position.shard < len(source.files.urls)
            if stamp is None or not known or not position.begin < end <= stamp.size:
                raise ValueError(f"the state of the stream is damaged: it holds no sample {number}")
            of_shards[position.shard].append((number, end))
        made = await asyncio.gather(*(self._shard_again(*one) for one in of_shards.items()))
        by_number = {sample.number: sample for samples in made for sample in samples}
        return [by_number[number] for number, _ in numbers]

    async def _shard_again(self, shard: int, numbers: list[tuple[int, int]]) -> list[StreamSample]:
        found = await self._source.read_ranges(
            shard, [(decode_sample_number(number).begin, end) for number, end in numbers]
        )
        return [self._read_sample_again(*one, data) for one, data in zip(numbers, found, strict=True)]

    def _read_sample_again(self, number: int, end: int, data: bytes) -> StreamSample:
        source, position = self._source, decode_sample_number(number)
        shown = source.files.shown_of(position.shard)
        shard = ShardSamples(source.wanted, shown, position.turn, position.shard, position.begin, end)
        shard.append(data, end)
        sample = shard.next(last=True)
        if sample is None or sample.number != number:
            raise ValueError(f"{shown}: no sample begins at byte {position.begin}, as the state of the stream says")
        return sample

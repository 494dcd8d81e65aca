"""Reads and writes states: torchdata's layout, so that its checkpoints can be read, plus our values under one key."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headrace._base.errors import HeadraceError
from headrace._base.types import State
from headrace._loading.fallback.index_batches import IndexPosition
from headrace._loading.fallback.randomness import Randomness
from headrace._loading.fallback.worker_wrappers import WorkerPosition

OURS = "headrace"
VERSION = 1

#: Values that a loader must have to resume from a state, by the names of their messages.
Fits = dict[str, int | None]

_FITS = {
    "samples": "the dataset has another number of samples",
    "batch_size": "the loader has another batch_size",
    "drop_last": "the loader has another drop_last",
    "ranks": "the samples are sharded over another number of ranks",
    "seed": "the loader has another seed",
}


class AnotherNumberOfWorkers(HeadraceError, ValueError, AssertionError):
    """The state's number of workers differs from the loader's; an AssertionError too, as torchdata raises it."""


@dataclass(frozen=True)
class TorchStart:
    """How an epoch began, or will begin.

    Attributes:
        begun: whether anything was drawn for it.
        random: generators' states before anything was drawn for it; None: unknown.
        late: generators' states before the first batch of indices was drawn, if other code drew in between.
        drawn: whether indices were drawn; if not, `late` is from the time when the state was taken.
        base_seed: the workers' base seed.
        drew_seed: whether this epoch drew it.
        sampler_epoch: epoch that the samplers were set to, if they have ``set_epoch``.
    """

    epoch: int | None
    begun: bool = False
    random: Randomness | None = None
    late: Randomness | None = None
    drawn: bool = True
    base_seed: int | None = None
    drew_seed: bool = True
    sampler_epoch: int | None = None


@dataclass(frozen=True)
class Saved:
    """The content of a state.

    Attributes:
        finished: the epoch had ended; `start` describes the next one.
        step: number of batches before the states of samplers and workers.
        since: number of batches handed out after these states.
        workers: positions of the worker processes; of this process as number 0 if `num_workers` is 0.
        last_worker: number of the worker that made the last batch.
        fits: values that the resuming loader must have.
    """

    start: TorchStart
    finished: bool
    position: IndexPosition
    step: int
    since: int
    num_workers: int
    workers: dict[int, WorkerPosition] = field(default_factory=dict)
    last_worker: int = 0
    fits: Fits = field(default_factory=dict)
    more: State = field(default_factory=dict)  # further values for torchdata's keys

    @property
    def has_states(self) -> bool:
        """Whether a dataset or its iterator had a state."""
        return any(one.dataset is not None or one.iterator is not None for one in self.workers.values())

    def count_covered(self, iterable: bool) -> int:
        """Returns the number of batches that need not be made again, as states or the workers' counts cover them."""
        if not iterable or self.has_states:
            return self.step
        return self.step if self.num_workers and sum(one.count for one in self.workers.values()) == self.step else 0

    def for_ranks(self, fits: Fits, samples: int) -> Saved:
        """Returns this state as one of a loader with another number of ranks, whose sampler computes its order from a
        position: samples of all ranks that were delivered take the place of batches.

        Args:
            fits: the loader's values.
            samples: number of samples of the epoch on all ranks.

        Returns:
            The state itself, if the number of ranks is the same, or other states belong to it.
        """
        position, saved = self.position, self.fits
        ranks, size = saved.get("ranks"), saved.get("batch_size")
        done = self.finished or position.has_states or position.missing or self.has_states
        if done or not isinstance(ranks, int) or ranks == fits["ranks"]:
            return self
        offset = position.offset + position.upto * ranks * (size or 1)
        if saved.get("drop_last") and position.upto >= (samples - position.offset) // ranks // (size or 1):
            offset = samples  # the epoch was complete; what is left was dropped
        now = {**saved, "ranks": fits["ranks"], "batch_size": fits["batch_size"] if size else size}
        return replace(self, position=IndexPosition(offset=offset), step=0, since=0, fits=now)

    def check(self, fits: Fits, iterable: bool, num_workers: int) -> None:
        """Raises ValueError if a loader cannot resume from this state."""
        if (iterable or self.has_states) and num_workers != self.num_workers:
            raise AnotherNumberOfWorkers(
                f"the state is of {self.num_workers} worker processes, but the loader has num_workers={num_workers}: "
                "datasets with a state, and iterable ones, resume only with the same number"
            )
        if self.finished or not (self.step or self.since):
            return
        for name, saved in self.fits.items():
            if name in fits and fits[name] != saved:
                raise ValueError(f"the state does not fit: {_FITS[name]} (saved {saved!r}, now {fits[name]!r})")


def format_state(saved: Saved) -> State:
    """Returns a state as dicts, lists, numbers, strings, and the states of the user's own objects."""
    position, start = saved.position, saved.start
    ours = {
        "version": VERSION,
        "epoch": start.epoch,
        "begun": start.begun,
        "drew_seed": start.drew_seed,
        "sampler_epoch": start.sampler_epoch,
        "generators": None if start.random is None else start.random.pack(),
        "drew_indices": start.drawn,
        "generators_late": None if start.late is None else start.late.pack(),
        "base_seed": start.base_seed,
        "drawn": position.upto,
        "missing": list(position.missing),
        "occurrences": position.occurrences,
        "offset": position.offset,
        "fits": dict(saved.fits),
    }
    of_samplers = {
        "_sampler_iter_state": position.iterator,
        "_index_sampler_state": position.sampler,
        "_sampler_iter_yielded": position.at if position.has_states else position.upto,
        "_IterableDataset_len_called": saved.more.get("len_called"),
        "_shared_seed": saved.more.get("shared_seed"),
    }
    if saved.num_workers == 0:
        one = saved.workers.get(0, WorkerPosition())
        fetcher = None
        if saved.more.get("iterable"):
            fetcher = {"dataset_iter_state": one.iterator, "fetcher_ended": one.ended}
        return {
            **of_samplers,
            "_num_yielded": saved.step + saved.since,
            "fetcher_state": fetcher,
            "dataset_state": one.dataset,
            "_iterator_finished": saved.finished,
            OURS: ours,
        }
    return {
        "_snapshot": {
            "_snapshot_step": saved.step,
            "_last_yielded_worker_id": saved.last_worker,
            "_main_snapshot": {
                "_num_workers": saved.num_workers,
                **of_samplers,
                "_base_seed": start.base_seed,
            },
            "_worker_snapshots": saved.more["worker_snapshots"],
        },
        "_steps_since_snapshot": saved.since,
        "_iterator_finished": saved.finished,
        OURS: ours,
    }


def parse_state(state: object) -> Saved:
    """Returns the content of a state of headrace's or of a StatefulDataLoader.

    Raises:
        ValueError: `state` is neither, or incomplete.
    """
    if isinstance(state, dict) and {"version", "position", "recipe"} <= state.keys():
        raise ValueError(
            "this state is of a loader with headrace's native path, but torch delivers the batches of this loader: "
            "loader.explain() says why"
        )
    if not isinstance(state, dict) or not ({"_snapshot", "_num_yielded"} & state.keys()):
        raise ValueError(
            "this is neither a state of a headrace loader whose batches torch delivers, nor of a StatefulDataLoader: "
            f"{state!r:.80}"
        )
    try:
        return _parse_torch_state(state)
    except KeyError as missing:
        raise ValueError(f"the state lacks its entry {missing}") from None
    except (TypeError, AttributeError, IndexError, RuntimeError, OverflowError) as error:  # RuntimeError: of tensors
        raise ValueError(f"the state is damaged: {error}") from error


def _parse_torch_state(state: State) -> Saved:
    several = "_snapshot" in state
    snapshot = state["_snapshot"] if several else {}
    main = snapshot["_main_snapshot"] if several else state
    num_workers = main["_num_workers"] if several else 0
    workers: dict[int, WorkerPosition] = {}
    if several:
        for number in range(num_workers):
            workers[number] = _parse_worker(snapshot["_worker_snapshots"][f"worker_{number}"])
        step, since = snapshot["_snapshot_step"], state["_steps_since_snapshot"]
    else:
        fetcher = state["fetcher_state"] or {"dataset_iter_state": None, "fetcher_ended": False}
        ended = fetcher["fetcher_ended"]
        workers[0] = WorkerPosition(state["dataset_state"], fetcher["dataset_iter_state"], ended)
        step, since = state["_num_yielded"], 0
    finished = bool(state["_iterator_finished"])
    ours = state.get(OURS)
    if ours is not None and ours["version"] != VERSION:
        raise ValueError(f"the state is of version {ours['version']}; this headrace reads version {VERSION}")
    yielded = _checked_count(main, "_sampler_iter_yielded")
    position = IndexPosition(
        0, yielded, (), main["_index_sampler_state"], _state_of_iterator(main["_sampler_iter_state"])
    )
    if position.has_states:
        position = IndexPosition(yielded, yielded, (), position.sampler, position.iterator)
    start = TorchStart(None, True, base_seed=main.get("_base_seed"))
    fits: Fits = {}
    if ours is not None:
        upto, missing, counts = _checked_count(ours, "drawn"), tuple(ours["missing"]), ours.get("occurrences")
        offset = _checked_count(ours, "offset") if "offset" in ours else 0  # earlier versions had none
        position = IndexPosition(position.at, upto, missing, position.sampler, position.iterator, counts, offset)
        random, late = ours["generators"], ours["generators_late"]
        start = TorchStart(
            int(ours["epoch"]),
            bool(ours["begun"]),
            None if random is None else Randomness.unpack(random),
            None if late is None else Randomness.unpack(late),
            bool(ours["drew_indices"]),
            ours["base_seed"],
            bool(ours["drew_seed"]),
            ours["sampler_epoch"],
        )
        fits = dict(ours["fits"])
        for name, value in fits.items():
            if value is not None and not isinstance(value, int):  # such as a tensor, whose comparison is no condition
                raise ValueError(f"the state is damaged: its {name} is {value!r:.80}, not an integer")
    last = int(snapshot.get("_last_yielded_worker_id", 0))
    step, since = int(step), int(since)
    saved = Saved(start, finished, position, step, since, int(num_workers), workers, last, fits)
    if saved.has_states or not since:
        return saved
    # Without states no batch has to be made again: indices are drawn and skipped.
    return replace(saved, position=replace(position, upto=position.upto + since), step=step + since, since=0)


def _checked_count(held: State, name: str) -> int:
    """Returns an entry that counts. Raises ValueError if it does not."""
    value = held[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"the state is damaged: its {name} is {value!r:.80}, not an integer >= 0")
    return value


def _parse_worker(snapshot: State | None) -> WorkerPosition:
    snapshot = snapshot or {"dataset_state": None, "fetcher_state": None}
    fetcher = snapshot["fetcher_state"] or {"dataset_iter_state": None, "fetcher_ended": False}
    return WorkerPosition(
        snapshot["dataset_state"],
        fetcher["dataset_iter_state"],
        bool(fetcher["fetcher_ended"]),
        int(snapshot.get("_num_yielded", 0)),
        int(snapshot.get("_steps_since_state", 0)),
    )


def _state_of_iterator(state: State | None) -> State | None:
    """Returns the state of an iterator; None if it only has the count of torchdata's batch sampler."""
    return None if isinstance(state, dict) and state.keys() == {"samples_yielded"} else state

"""The state of a loader for a checkpoint: the epoch, the number of batches yielded, and what they belong to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import PIL
import torch

from headrace._base.errors import SampleError
from headrace._base.types import State
from headrace._engine.counters.counters import Counters
from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._loading.epoch.delivery_tracker import Delivery, find_overtaken_by, settle
from headrace._loading.epoch.order import Cut
from headrace._loading.epoch.sampler_setup import GlobalOrder
from headrace._loading.epoch.sampler_state import SamplerState
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.draws.generator_states import RandomState

VERSION = 3
_OUT_OF_ORDER = 4  # of a state that names batches beyond its position, which earlier code would deliver again
_END = 2**62  # an offset beyond the last item of any order


class Fingerprinted(Protocol):
    """A recipe, or the recipes of several fields."""

    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Identity:
    """Identifies the loader that a state belongs to. A loader with another identity would deliver other batches."""

    samples: int
    dataset: str
    world_size: int
    batch_size: int | None  # batch size of one rank
    drop_last: bool
    seed: int | None
    generators: int
    sampler: str
    recipe: str
    pass_order: str

    @classmethod
    def of(
        cls,
        seed: int | None,
        samples: int,
        dataset: str,
        order: GlobalOrder,
        recipe: Fingerprinted | None,
        generators: int,
    ) -> Identity:
        """Returns the identity of a loader; `recipe` is None where samples are delivered as they are."""
        return cls(
            samples,
            dataset,
            order.cut.share.world_size,
            order.cut.batch_size,
            order.cut.drop_last or order.cut.share.drop_last,
            seed,
            generators,
            order.name,
            "" if recipe is None else recipe.fingerprint(),
            "" if recipe is None else pillow_rule.pass_order(),
        )


@dataclass(frozen=True)
class Start:
    """The start of an epoch: everything, besides the loader itself, that its order and draws follow from."""

    epoch: int
    begun: bool  # False: nothing was drawn for this epoch yet
    base_seed: int | None  # drawn at the start of this epoch or, with persistent workers, of an earlier one
    drew_seed: bool  # whether this epoch drew `base_seed`
    sampler_epoch: int | None  # the epoch of a foreign sampler that has set_epoch
    random: RandomState  # the generators' states before this epoch drew from them
    late: RandomState | None = None  # those before the sampler was asked, if other code drew since the base seed was
    asked: bool = True  # whether it was asked; if not, `late` is of the time when the state was taken


@dataclass(frozen=True)
class Resume:
    """Where to resume an epoch: after `offset` items of all ranks and `position` batches of this rank, without the
    batches `overtaking`, which were delivered before an earlier one."""

    start: Start
    position: int = 0
    offset: int = 0  # items of all ranks that were delivered earlier, with another world size
    batches: int = -1  # number of batches of the epoch after `offset`; -1: unknown
    sampler: SamplerState | None = None  # state of a sampler with state_dict
    overtaking: tuple[int, ...] = ()  # numbers of batches of this rank, ascending, each above `position`
    of_rank: int | None = None  # the rank that the position is of; None: that of every rank


@dataclass
class Progress:
    """How far the newest iterator of a loader is."""

    start: Start
    seed: int  # seed of order and draws
    batches: int  # number of batches of the whole epoch, wherever it is resumed; -1: unknown
    cut: Cut
    offset: int = 0  # as in Resume
    after_offset: int = -1  # `batches` of Resume
    first: int = 0  # number of batches yielded before this iterator
    resumed: tuple[int, ...] = ()  # numbers of later batches that were delivered before this iterator
    settled: int = 0  # number of batches at the epoch's front known to be settled
    newest: int = 0  # the newest turn known to have returned a batch
    deliveries: tuple[Delivery, ...] = ()  # deliveries begun since, in order of their numbers
    of_rank: int | None = None  # this rank, where ranks may have delivered other batches; None: all have the same
    ended: bool = False  # the order has no more batches
    errors: list[SampleError] = field(default_factory=list)
    before: Counters = field(default_factory=Counters)  # the engine's counters when the epoch began
    pace: EpochTiming | None = None  # of the newest iterator; None before it is made

    @property
    def epoch(self) -> int:
        return self.start.epoch

    def number(self, position: int) -> int:
        """Returns the number of this rank's batch `position` among the batches of all ranks in the epoch."""
        share = self.cut.share
        rank, ranks = (share.rank, share.world_size) if share.world_size > 1 else self.cut.of_rank
        return self.offset // (self.cut.batch_size or 1) + position * ranks + rank

    @property
    def position(self) -> int:
        """Number of batches yielded at the epoch's front: ``next()`` has returned each of them, or passed it over."""
        return settle(self.settled, self.newest, self.deliveries)[0]

    @property
    def overtaking(self) -> tuple[int, ...]:
        """Numbers of the batches yielded beyond `position`, ascending: an earlier one is still outstanding."""
        settled, newest, left = settle(self.settled, self.newest, self.deliveries)
        numbers = {one for one in self.resumed if one >= settled}
        return tuple(sorted(numbers.union(find_overtaken_by(settled, newest, left))))

    @property
    def untouched(self) -> bool:
        """Whether this iterator has yielded nothing yet."""
        return self.position == self.first and self.overtaking == self.resumed

    @property
    def finished(self) -> bool:
        return self.ended and all(one.settled for one in self.deliveries)

    def finish(self) -> None:
        self.ended = True

    def copy_progress(self) -> Progress:
        """Returns a copy that later deliveries do not change."""
        settled, newest, left = settle(self.settled, self.newest, self.deliveries)
        return replace(self, settled=settled, newest=newest, deliveries=tuple(replace(one) for one in left))


_REASONS = {
    "samples": "the dataset has another number of samples",
    "dataset": "the dataset holds other samples, labels, or another order of them",
    "batch_size": "the loader has another batch_size",
    "drop_last": "the loader has another drop_last",
    "sampler": "the loader shuffles or samples in another way",
    "seed": "the loader has another seed",
    "generators": "the loader and its samplers have another number of torch.Generators",
    "recipe": "the transforms, the output size or the dtype differ",
    "pass_order": f"Pillow {PIL.__version__} resizes in another order of passes than the one the state was made with",
}
_START = ("epoch", "begun", "base_seed", "drew_seed", "sampler_epoch")
_PLACE = ("position", "offset", "batches")


def save_position(identity: Identity, at: Resume) -> State:
    """Returns the state as a dict of ints, strings, tensors and the samplers' own states, for ``torch.save``.

    It can be loaded with ``weights_only=True`` if the samplers' own states can.
    """
    state: State = {"version": _OUT_OF_ORDER if at.overtaking else VERSION, **vars(identity)}
    state.update({name: getattr(at, name) for name in _PLACE})
    state.update({name: getattr(at.start, name) for name in _START})
    # Always states, so that all of a loader's checkpoints are alike; each a tensor of its own, because
    # torch.distributed.checkpoint loads into the tensors of a new loader's state.
    late = at.start.late or at.start.random
    for prefix, random in (("", at.start.random), ("late_", late)):
        state[f"{prefix}generator_states"] = [one.clone() for one in random.own]
        state[f"{prefix}default_generator_state"] = random.default.clone()
    state.update(late=at.start.late is not None, asked=at.start.asked)
    state["sampler_state"] = None if at.sampler is None else vars(at.sampler).copy()
    state.update(overtaking=list(at.overtaking), of_rank=at.of_rank)
    return state


def load_position(state: object, identity: Identity, rank: int = 0) -> Resume:
    """Checks a state against the loader that resumes from it, and returns where to resume.

    Args:
        rank: that of the loader.

    Raises:
        ValueError: the state belongs to another loader, or is damaged; the message names what differs.
    """
    if not isinstance(state, dict) or not _is_count(state.get("version")) or state["version"] not in _VERSIONS:
        if isinstance(state, (str, os.PathLike)):
            remedy = "load it from the file first, as with torch.load(path)"
        elif isinstance(state, dict):
            remedy = (
                "pass what state_dict() of this loader returned (a checkpoint may hold it under a key); loaders whose "
                "batches torch delivers have another format"
            )
        else:
            remedy = "pass what state_dict() of this loader returned"
        raise ValueError(f"this is not a state of headrace's native path, version {VERSION}: {state!r:.80}; {remedy}")
    try:
        saved = {name: state[name] for name in vars(identity)}
        kept = {name: state[name] for name in (*_START, *_PLACE, *_RANDOM, "sampler_state")}
        kept |= {name: state.get(name, given) for name, given in _ADDED.items()}
        if kept["late"] is True:
            kept |= {name: state[name] for name in _LATE_RANDOM}
    except KeyError as missing:
        raise ValueError(f"the state lacks its entry {missing}") from None
    for name, value in {**kept, "world_size": saved["world_size"]}.items():
        what, holds = _ENTRIES[name]
        if not holds(value):
            raise ValueError(f"the state is damaged: its {name} is {value!r:.80}, not {what}")
    if kept["begun"] and not kept["drew_seed"] and kept["base_seed"] is None and saved["seed"] is None:
        raise ValueError("the state is damaged: an epoch that has begun has a base_seed, and it is None")
    another_world = saved["world_size"] != identity.world_size
    for name, now in vars(identity).items():
        if name == "world_size" or (name == "batch_size" and another_world and now and _is_count(saved[name], 1)):
            continue  # with another world size the batch size may change too, to keep the global batch size
        if isinstance(saved[name], torch.Tensor) or saved[name] != now:  # a tensor's comparison is another tensor
            raise ValueError(f"the state does not fit: {_REASONS[name]} (saved {saved[name]!r}, now {now!r})")
    random = RandomState(tuple(kept["generator_states"]), kept["default_generator_state"])
    late = RandomState(*(kept[name] for name in _LATE_RANDOM)) if kept["late"] else None
    start = Start(random=random, late=late, asked=kept["asked"], **{name: kept[name] for name in _START})
    sampler = None if kept["sampler_state"] is None else SamplerState(**kept["sampler_state"])
    resume = Resume(
        start,
        **{name: kept[name] for name in _PLACE},
        sampler=sampler,
        overtaking=tuple(sorted(set(kept["overtaking"]))),
        of_rank=kept["of_rank"],
    )
    _check_rank(resume, saved["world_size"], identity.world_size, rank)
    return _convert_world(resume, saved) if another_world else resume


def _check_rank(then: Resume, world_size: int, now: int, rank: int) -> None:
    """Raises ValueError if the state of one rank does not say what other ranks, or another number of them, have
    delivered."""
    if then.of_rank is None or not (then.position or then.overtaking):
        return
    if (then.of_rank, world_size) != (rank, now):
        raise ValueError(
            f"the state does not fit: with in_order=False each rank delivers in an order of its own, and this is the "
            f"state of rank {then.of_rank} of {world_size}, not of rank {rank} of {now}; save a state on each rank and "
            "load it there, or save between two epochs, where any rank's is valid for all"
        )


def _is_count(value: object, smallest: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= smallest


def _is_number_or_none(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _is_generator_state(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.ndim == 1


def _is_default_generator_state(value: object) -> bool:
    """Whether torch's default generator, which is the CPU's, takes it; those of other devices have other states."""
    if not isinstance(value, torch.Tensor):
        return False
    try:
        torch.Generator().set_state(value)
    except (RuntimeError, TypeError):
        return False
    return True


def _is_sampler_state(value: object) -> bool:
    return value is None or (isinstance(value, dict) and value.keys() == SamplerState.__dataclass_fields__.keys())


_RANDOM = ("generator_states", "default_generator_state")
_VERSIONS = (VERSION, _OUT_OF_ORDER)
_ADDED = {"late": False, "asked": True, "overtaking": [], "of_rank": None}  # not saved by earlier code; what it was
_LATE_RANDOM = ("late_generator_states", "late_default_generator_state")
#: Entry -> (its description for messages, predicate for valid values).
_ENTRIES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "epoch": ("an integer >= 0", _is_count),
    "begun": ("True or False", lambda value: isinstance(value, bool)),
    "base_seed": ("an integer or None", _is_number_or_none),
    "drew_seed": ("True or False", lambda value: isinstance(value, bool)),
    "sampler_epoch": ("an integer or None", _is_number_or_none),
    "position": ("an integer >= 0", _is_count),
    "offset": ("an integer >= 0", _is_count),
    "batches": ("an integer >= -1", lambda value: _is_count(value, -1)),
    "world_size": ("an integer >= 1", lambda value: _is_count(value, 1)),
    "generator_states": (
        "a list of uint8 tensors",
        lambda value: isinstance(value, (list, tuple)) and all(map(_is_generator_state, value)),
    ),
    "default_generator_state": ("a state of torch's default generator", _is_default_generator_state),
    "sampler_state": ("a sampler's state or None", _is_sampler_state),
    "late": ("True or False", lambda value: isinstance(value, bool)),
    "asked": ("True or False", lambda value: isinstance(value, bool)),
    "overtaking": (
        "a list of integers >= 0",
        lambda value: isinstance(value, (list, tuple)) and all(map(_is_count, value)),
    ),
    "of_rank": ("an integer >= 0 or None", lambda value: value is None or _is_count(value)),
}
_ENTRIES |= {name: _ENTRIES[name.removeprefix("late_")] for name in _LATE_RANDOM}


def _convert_world(then: Resume, saved: State) -> Resume:
    """Converts a position of the saved world size to an offset in items, which fits any world size."""
    if 0 <= then.batches <= then.position:  # the epoch was complete; drop_last dropped the items that are left
        offset = _END
    else:
        offset = then.offset + then.position * saved["world_size"] * (saved["batch_size"] or 1)
    return Resume(then.start, 0, offset, sampler=then.sampler)

"""The state of a loader, to save in a checkpoint: which epoch, how many of its batches were yielded, and of what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import PIL
import torch

from headrace.base.errors import SampleError
from headrace.epochs.delivery import Delivery, settle
from headrace.epochs.order import Cut, RandomState
from headrace.epochs.sampler_state import SamplerState
from headrace.epochs.samplers import Order
from headrace.pixels import pillow_rule
from headrace.recipe.recipe import Recipe

VERSION = 3
_END = 2**62  # behind the last item of any order


@dataclass(frozen=True)
class Identity:
    """What a state belongs to: resuming with anything else would give other batches."""

    samples: int
    dataset: str
    world_size: int
    batch_size: int | None  # of one rank
    drop_last: bool
    seed: int | None
    generators: int
    sampler: str
    recipe: str
    pass_order: str

    @classmethod
    def of(
        cls, seed: int | None, samples: int, dataset: str, order: Order, recipe: Recipe, generators: int
    ) -> Identity:
        return cls(
            samples,
            dataset,
            order.cut.share.world_size,
            order.cut.batch_size,
            order.cut.drop_last or order.cut.share.drop_last,
            seed,
            generators,
            order.name,
            recipe.fingerprint(),
            pillow_rule.pass_order(),
        )


@dataclass(frozen=True)
class Start:
    """How an epoch began, or will begin: all that its order and draws follow from, beside the loader itself."""

    epoch: int
    begun: bool  # False: nothing of it was drawn yet
    base_seed: int | None  # drawn at the start of this epoch or, with persistent workers, of an earlier one
    drew_seed: bool  # whether this epoch drew it
    sampler_epoch: int | None  # what set_epoch told the samplers, where they have it
    random: RandomState  # before anything of this epoch was drawn


@dataclass(frozen=True)
class Resume:
    """Where to go on: after `position` batches of an epoch."""

    start: Start
    position: int = 0
    offset: int = 0  # items of the order of all ranks that were behind before those, in a world of another size
    batches: int = -1  # of the epoch, behind `offset`
    sampler: SamplerState | None = None  # of a sampler that keeps its own


@dataclass
class Progress:
    """Where the newest iterator of a loader is."""

    start: Start
    seed: int  # of order and draws
    batches: int  # of the whole epoch, wherever it is resumed; -1 where the sampler does not say
    cut: Cut
    offset: int = 0  # as in Resume
    behind_offset: int = -1  # Resume's `batches`
    first: int = 0  # batches that were yielded before this iterator
    behind: int = 0  # batches that are known to be settled
    deliveries: tuple[Delivery, ...] = ()  # of those begun since, in order
    ended: bool = False  # the order has no more
    waited_ns: int = 0  # of the time that the epoch has taken so far, what the consumer spent waiting
    lasted_ns: int = 0
    errors: list[SampleError] = field(default_factory=list)
    before: list[tuple[str, int, int]] = field(default_factory=list)  # the engine's counters when the epoch began

    @property
    def epoch(self) -> int:
        return self.start.epoch

    def number(self, position: int) -> int:
        """Of a batch, among those of the epoch and of all ranks."""
        share = self.cut.share
        return self.offset // (self.cut.batch_size or 1) + position * share.world_size + share.rank

    @property
    def position(self) -> int:
        """Batches yielded: only what ``next()`` has returned, and what came before that."""
        return settle(self.behind, self.deliveries)[0]

    @property
    def finished(self) -> bool:
        return self.ended and not settle(self.behind, self.deliveries)[1]

    def finish(self) -> None:
        self.ended = True

    def copied(self) -> Progress:
        """As it is now, whatever is delivered later."""
        behind, open_ones = settle(self.behind, self.deliveries)
        return replace(self, behind=behind, deliveries=tuple(replace(one) for one in open_ones))


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


def save(identity: Identity, at: Resume) -> dict[str, Any]:
    """A dict of ints, strings and tensors, and of what samplers keep: fit for torch.save, and for weights_only loading
    where the samplers' own states are."""
    state: dict[str, Any] = {"version": VERSION, **vars(identity)}
    state.update({name: getattr(at, name) for name in _PLACE})
    state.update({name: getattr(at.start, name) for name in _START})
    state.update(generator_states=list(at.start.random.own), default_generator_state=at.start.random.default)
    state["sampler_state"] = None if at.sampler is None else vars(at.sampler).copy()
    return state


def load(state: Any, identity: Identity) -> Resume:
    """Checks a state against the loader that is to take it.

    Raises:
        ValueError: it belongs to another loader, or is damaged; the message names what differs.
    """
    if not isinstance(state, dict) or state.get("version") != VERSION:
        where = " (a loader whose batches torch delivers has others)" if isinstance(state, dict) else ""
        raise ValueError(f"this is not a state of headrace's native path, version {VERSION}{where}: {state!r:.80}")
    try:
        saved = {name: state[name] for name in vars(identity)}
        kept = {name: state[name] for name in (*_START, *_PLACE, *_RANDOM, "sampler_state")}
    except KeyError as missing:
        raise ValueError(f"the state lacks its entry {missing}") from None
    for name, value in {**kept, "world_size": saved["world_size"]}.items():
        what, holds = _ENTRIES[name]
        if not holds(value):
            raise ValueError(f"the state is damaged: its {name} is {value!r:.80}, not {what}")
    another_world = saved["world_size"] != identity.world_size
    for name, now in vars(identity).items():
        if name == "world_size" or (name == "batch_size" and another_world and now and saved[name]):
            continue  # the batch of all ranks together may stay as it was
        if saved[name] != now:
            raise ValueError(f"the state does not fit: {_REASONS[name]} (saved {saved[name]!r}, now {now!r})")
    random = RandomState(tuple(kept["generator_states"]), kept["default_generator_state"])
    start = Start(random=random, **{name: kept[name] for name in _START})
    sampler = None if kept["sampler_state"] is None else SamplerState(**kept["sampler_state"])
    resume = Resume(start, **{name: kept[name] for name in _PLACE}, sampler=sampler)
    return _in_another_world(resume, saved) if another_world else resume


def _is_count(value: Any, smallest: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= smallest


def _is_number_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _is_generator_state(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.ndim == 1


def _is_sampler_state(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and value.keys() == SamplerState.__dataclass_fields__.keys())


_RANDOM = ("generator_states", "default_generator_state")
#: Entry -> what it is, in words, and whether a value is that.
_ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "epoch": ("a number from 0 up", _is_count),
    "begun": ("True or False", lambda value: isinstance(value, bool)),
    "base_seed": ("a number or None", _is_number_or_none),
    "drew_seed": ("True or False", lambda value: isinstance(value, bool)),
    "sampler_epoch": ("a number or None", _is_number_or_none),
    "position": ("a number from 0 up", _is_count),
    "offset": ("a number from 0 up", _is_count),
    "batches": ("a number from -1 up", lambda value: _is_count(value, -1)),
    "world_size": ("a number from 1 up", lambda value: _is_count(value, 1)),
    "generator_states": (
        "a list of uint8 tensors",
        lambda value: isinstance(value, (list, tuple)) and all(map(_is_generator_state, value)),
    ),
    "default_generator_state": ("a uint8 tensor", _is_generator_state),
    "sampler_state": ("what a sampler keeps", _is_sampler_state),
}


def _in_another_world(then: Resume, saved: dict[str, Any]) -> Resume:
    """The same place in the order, where other ranks take steps of another size."""
    if 0 <= then.batches <= then.position:  # what is left was to be left out
        offset = _END
    else:
        offset = then.offset + then.position * saved["world_size"] * (saved["batch_size"] or 1)
    return Resume(then.start, 0, offset, sampler=then.sampler)

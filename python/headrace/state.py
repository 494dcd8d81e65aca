"""The state of a loader, to save in a checkpoint: which epoch, how many of its batches were yielded, and of what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import PIL

from headrace import pillow_rule
from headrace.errors import SampleError
from headrace.order import RandomState
from headrace.recipe import Recipe

VERSION = 1


@dataclass(frozen=True)
class Identity:
    """What a state belongs to: resuming with anything else would give other batches."""

    samples: int
    batch_size: int | None
    drop_last: bool
    sampler: str
    batch_sampler: str
    seed: int | None
    generators: int
    recipe: str
    pass_order: str

    @classmethod
    def of(cls, loader: Any, samples: int, recipe: Recipe, generators: int) -> Identity:
        return cls(
            samples,
            loader.batch_size,
            bool(loader.drop_last),
            type(loader.sampler).__qualname__,
            type(loader.batch_sampler).__qualname__,
            loader.seed,
            generators,
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
    position: int


@dataclass
class Progress:
    """Where the newest iterator of a loader is."""

    start: Start
    seed: int  # of order and draws
    batches: int  # of the whole epoch; -1 where the sampler does not say
    position: int = 0  # batches yielded
    finished: bool = False
    waited_ns: int = 0  # of the time that the epoch has taken so far, what the consumer spent waiting
    lasted_ns: int = 0
    errors: list[SampleError] = field(default_factory=list)
    before: list[tuple[str, int, int]] = field(default_factory=list)  # the engine's counters when the epoch began

    @property
    def epoch(self) -> int:
        return self.start.epoch

    def finish(self) -> None:
        self.finished = True


_REASONS = {
    "samples": "the dataset has another number of samples",
    "batch_size": "the loader has another batch_size",
    "drop_last": "the loader has another drop_last",
    "sampler": "the loader shuffles or samples in another way",
    "batch_sampler": "the loader has another batch_sampler",
    "seed": "the loader has another seed",
    "generators": "the loader and its samplers have another number of torch.Generators",
    "recipe": "the transforms, the output size or the dtype differ",
    "pass_order": f"Pillow {PIL.__version__} resizes in another order of passes than the one the state was made with",
}
_START = ("epoch", "begun", "base_seed", "drew_seed", "sampler_epoch")


def save(identity: Identity, at: Resume) -> dict[str, Any]:
    """A dict of ints, strings and tensors: fit for torch.save and for weights_only loading."""
    state: dict[str, Any] = {"version": VERSION, **vars(identity), "position": at.position}
    state.update({name: getattr(at.start, name) for name in _START})
    state.update(generator_states=list(at.start.random.own), default_generator_state=at.start.random.default)
    return state


def load(state: Any, identity: Identity) -> Resume:
    """Checks a state against the loader that is to take it.

    Raises:
        ValueError: it belongs to another loader; the message names what differs.
    """
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise ValueError(f"this is not a state of headrace's DataLoader, version {VERSION}: {state!r:.80}")
    try:
        saved = {name: state[name] for name in vars(identity)}
        random = RandomState(tuple(state["generator_states"]), state["default_generator_state"])
        start = Start(random=random, **{name: state[name] for name in _START})
        resume = Resume(start, int(state["position"]))
    except KeyError as missing:
        raise ValueError(f"the state lacks its entry {missing}") from None
    for name, now in vars(identity).items():
        if saved[name] != now:
            raise ValueError(f"the state does not fit: {_REASONS[name]} (saved {saved[name]!r}, now {now!r})")
    return resume

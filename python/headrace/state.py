"""The state of a loader, to save in a checkpoint: which epoch, how many of its batches were yielded, and of what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import PIL
import torch

from headrace import pillow_rule
from headrace.errors import SampleError
from headrace.order import RandomState
from headrace.recipe import Recipe

VERSION = 1


@dataclass
class Progress:
    """Where the newest iterator of a loader is."""

    epoch: int
    seed: int
    random: RandomState
    batches: int  # of the whole epoch; -1 where the sampler does not say
    position: int = 0  # batches yielded
    finished: bool = False
    waited_ns: int = 0
    errors: list[SampleError] = field(default_factory=list)

    def finish(self) -> None:
        self.finished = True


@dataclass(frozen=True)
class Identity:
    """What a state belongs to: resuming with anything else would give other batches."""

    samples: int
    batch_size: int | None
    recipe: str
    pass_order: str

    @classmethod
    def of(cls, samples: int, batch_size: int | None, recipe: Recipe) -> Identity:
        return cls(samples, batch_size, recipe.fingerprint(), pillow_rule.pass_order())


@dataclass(frozen=True)
class Resume:
    """Where to go on: after `position` batches of an epoch. Without `random` (and seed) nothing of it was drawn yet."""

    epoch: int
    position: int
    seed: int | None
    random: RandomState | None

    @classmethod
    def after(cls, progress: Progress | None, next_epoch: int, seed: int | None) -> Resume:
        if progress is None or progress.finished:
            return cls(next_epoch, 0, seed, None)
        return cls(progress.epoch, progress.position, progress.seed, progress.random)


_REASONS = {
    "samples": "the dataset has another number of samples",
    "batch_size": "the loader has another batch_size",
    "recipe": "the transforms, the output size or the dtype differ",
    "pass_order": f"Pillow {PIL.__version__} resizes in another order of passes than the one the state was made with",
}


def save(identity: Identity, at: Resume) -> dict[str, Any]:
    """A dict of ints, strings and tensors: fit for torch.save and for weights_only loading."""
    state: dict[str, Any] = {"version": VERSION, **vars(identity)}
    state.update(epoch=at.epoch, position=at.position, seed=at.seed)
    if at.random is not None:
        state.update(generator_state=at.random.generator, default_generator_state=at.random.default)
    return state


def load(state: Any, identity: Identity, seed: int | None) -> Resume:
    """Checks a state against the loader that is to take it.

    Raises:
        ValueError: it belongs to another loader; the message names what differs.
    """
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise ValueError(f"this is not a state of headrace's DataLoader, version {VERSION}: {state!r:.80}")
    try:
        saved = Identity(*(state[name] for name in vars(identity)))
        resume = Resume(int(state["epoch"]), int(state["position"]), state["seed"], None)
    except KeyError as missing:
        raise ValueError(f"the state lacks its entry {missing}") from None
    for name, now in vars(identity).items():
        if getattr(saved, name) != now:
            raise ValueError(f"the state does not fit: {_REASONS[name]} (saved {getattr(saved, name)!r}, now {now!r})")
    if seed is not None and resume.seed != seed:
        raise ValueError(f"the state does not fit: the loader has another seed (saved {resume.seed!r}, now {seed!r})")
    default: torch.Tensor | None = state.get("default_generator_state")
    if default is None:
        return resume
    return Resume(resume.epoch, resume.position, resume.seed, RandomState(state.get("generator_state"), default))

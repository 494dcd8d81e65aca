"""Remedies for the first mistakes: notes below errors that torch and torchvision word, and what they accept."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from headrace._base.safe_exceptions import add_note

_END = "or pass a collate_fn."
# The second by torch's workers, which stack into shared memory.
_SIZES_DIFFER = ("stack expects each tensor to be equal size", "Trying to resize storage that is not resizable")
_SIZES = "CenterCrop(size), Resize((height, width)) or RandomResizedCrop(size)"

# What torch's loader refuses -> what to do; {name} is the argument.
_REFUSED = {
    "batch_size should be a positive": "batch_size={batch_size!r} was given: pass a whole number of 1 or more, or None "
    "for single samples",
    "num_workers option should be non-negative": "num_workers={num_workers!r} was given: pass 0 or more, or 'auto'",
    "timeout option should be non-negative": "timeout={timeout!r} was given: pass seconds, or 0 to wait for ever",
    "prefetch_factor option could only be": "prefetch_factor={prefetch_factor!r} needs num_workers=1 or more",
    "prefetch_factor option should be non-negative": "prefetch_factor={prefetch_factor!r} was given: pass 1 or more, "
    "or leave it out for 2",
    "persistent_workers option needs": "persistent_workers=True was given with num_workers=0: pass 1 or more, or leave "
    "persistent_workers out",
    "sampler option is mutually exclusive with shuffle": "leave shuffle out: the sampler decides the order",
    "batch_sampler option is mutually exclusive": "leave batch_size, shuffle, sampler and drop_last out: the "
    "batch_sampler decides them",
    "batch_size=None option disables": "leave shuffle and drop_last out, or pass a batch_size",
}


def advise_on_arguments(error: Exception, given: dict[str, Any]) -> None:
    """Adds to an error of a loader's arguments what to change.

    Args:
        given: the arguments by their names.
    """
    said = str(error)
    advise_on_dataset(error, given.get("dataset", error))
    for begin, remedy in _REFUSED.items():
        if said.startswith(begin):
            note = remedy.format(**given)
            add_note(error, note)


def advise_on_dataset(error: Exception, dataset: object) -> None:
    """Adds to an error that the dataset is None or a class, if it is."""
    if dataset is None or isinstance(dataset, type):
        named = "None" if dataset is None else f"the class {dataset.__name__} itself"
        note = f"dataset is {named}: pass an object, such as ImageFolder(root, transform)"
        add_note(error, note)


def find_means_of_bytes(dataset: object) -> str | None:
    """Returns what is wrong with a dataset's Normalize: means of bytes, after a step that makes values up to 1."""
    before = ""
    for step in flatten_steps(getattr(dataset, "transform", None)):
        mean = getattr(step, "mean", None)
        if type(step).__name__ == "Normalize" and before == "ToTensor" and isinstance(mean, Sequence):
            numbers = [one for one in mean if isinstance(one, (int, float))]
            if numbers and max(numbers) > 1:
                return f"mean={list(mean)} follows ToTensor, whose values go from 0 to 1: divide mean and std by 255"
        before = type(step).__name__
    return None


def flatten_steps(transform: Any) -> Iterator[Any]:
    """Yields the steps of a transform, those of a Compose one by one."""
    steps = getattr(transform, "transforms", None)
    if not isinstance(steps, (list, tuple)):
        yield transform
        return
    for step in steps:
        yield from flatten_steps(step)


def advise_on_collate_fn(error: Exception, collate_fn: object) -> None:
    """Adds to an error that the `collate_fn` cannot be called, if it cannot."""
    if not callable(collate_fn) and "object is not callable" in str(error):
        note = f"collate_fn={collate_fn!r:.60} is no function: pass one that makes a batch of a list of samples"
        add_note(error, note)


def advise_on_batch(error: Exception, dataset: Any) -> None:
    """Adds to an error of a sample or of `default_collate` what to change about the dataset."""
    advise_on_dataset(error, dataset)
    while not hasattr(dataset, "transform") and hasattr(dataset, "dataset"):  # a Subset
        dataset = dataset.dataset
    said = str(error) if isinstance(error, (TypeError, RuntimeError, ValueError)) else ""
    if "default_collate: batch must contain" in said and "PIL." in said:
        add_note(error, f"The samples are images: end the transforms with ToTensor(), {_END}", _END)
    elif any(words in said for words in _SIZES_DIFFER):
        add_note(error, f"The samples differ in size: end the transforms with {_SIZES}, {_END}", _END)
    elif said:
        found = (_of_transform(said, name, getattr(dataset, name, None)) for name in ("transform", "target_transform"))
        if remedy := next(filter(None, found), ""):
            add_note(error, remedy)


def _of_transform(said: str, name: str, transform: Any) -> str:
    """Returns what is wrong with a transform, by what an error says; "": nothing that is known."""
    steps = list(flatten_steps(transform))
    for number, step in enumerate(steps):
        where = f"{name}={transform!r:.80}" if len(steps) == 1 else f"step {number + 1} of {name}, {step!r:.80},"
        kind = getattr(step, "__name__", type(step).__name__)
        if inspect.isclass(step) and (kind in said or "argument" in said):
            return f"{name} has the class {kind} itself: make an object of it, {kind}()"
        if "object is not callable" in said and not (callable(step) or (step is None and len(steps) == 1)):
            listed = isinstance(step, (list, tuple))
            remedy = "put the steps into Compose([...])" if listed else "pass a function, or an object with __call__"
            return f"{where} cannot be called: {remedy}"
        if "uniform_ expects" in said:
            for field in ("scale", "ratio"):
                value = getattr(step, field, None)
                if isinstance(value, Sequence) and len(value) == 2 and value[0] > value[1]:
                    return f"{kind}'s {field} is (min, max), not {value}: write {field}={(value[1], value[0])}"
        if kind == "Normalize":
            mean = getattr(step, "mean", ())
            if "PIL" in said:
                return "Normalize takes tensors: put ToTensor() before it"
            if "size of tensor" in said and isinstance(mean, Sequence):
                return (
                    f"Normalize has {len(mean)} means, and the image another number of channels: give one mean and one "
                    "std a channel"
                )
        if kind == "Resize" and "must be > 0" in said:
            return f"Resize(size={getattr(step, 'size', None)}) makes no pixel: give sizes of 1 or more"
    return ""

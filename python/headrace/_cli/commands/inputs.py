"""What commands are given: a dataset with its transforms, and files to write; each fault is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace import transforms
from headrace._base.exceptions import named_words_of
from headrace._cli.demo import recipes
from headrace.datasets.opening.dataset_opening import opened
from headrace.datasets.opening.named_objects import is_object, named_object
from headrace.datasets.sources import BlobDataset, NotNative, as_counted


class GivenError(ValueError):
    """An argument of a command is unusable; the message is one sentence."""


def dataset_of(text: str) -> Any:
    """Returns the dataset that a text names; see `datasets.opening`. Raises GivenError."""
    try:
        return opened(text)
    except OSError as error:
        raise GivenError(f"{error.filename or text}: {error.strerror or error}") from error
    except (ValueError, ImportError) as error:
        raise GivenError(" ".join(str(error).split())) from error


def source_of(text: str) -> BlobDataset:
    """Returns the encoded images of the dataset that a text names. Raises GivenError."""
    dataset = dataset_of(text)
    try:
        source = as_counted(dataset)
    except (NotNative, ValueError) as error:
        raise GivenError(f"{text}: {error}") from error
    if not source.encoded:
        raise GivenError(f"{text} holds pixels, not encoded files: there is nothing to scan")
    if not len(source):
        raise GivenError(f"{text} is empty")
    return source


def set_recipe(dataset: Any, text: str | None) -> str:
    """Sets the transforms of a dataset, and returns their name.

    Args:
        text: ``train``, ``eval``, ``own``, ``module:object``, or an expression of names of ``headrace.transforms``.
            None: the dataset's own if it has any, otherwise ``train``.

    Raises:
        GivenError: there are no such transforms, or the dataset does not take any.
    """
    ours = isinstance(dataset, BlobDataset)
    has_own = not ours or dataset.transform is not None
    if text == "own" or (text is None and has_own):
        if not has_own:
            raise GivenError("the dataset has no transforms of its own; leave out --recipe, or name one")
        return "the dataset's own"
    if not ours:
        raise GivenError(
            f"{type(dataset).__name__} keeps its own transforms, which --recipe cannot replace; leave out --recipe"
        )
    dataset.transform = _recipe_of(text or "train")
    return text or "train"


def _recipe_of(text: str) -> Any:
    if text in ("train", "eval"):
        return recipes.train() if text == "train" else recipes.evaluation()
    if is_object(text):
        try:
            made = named_object(text)
        except ValueError as error:
            raise GivenError(f"--recipe: {error}") from error
    else:
        import torch

        names = {name: getattr(transforms, name) for name in transforms.__all__}
        try:
            made = eval(text, {**names, "T": transforms, "transforms": transforms, "torch": torch})
        except Exception as error:
            raise GivenError(f"--recipe {text} raises {named_words_of(error)}") from error
    if not callable(made):
        raise GivenError(f"--recipe {text} is no transform but {type(made).__name__}")
    return made


def check_writable(path: Path | None) -> None:
    """Raises GivenError if a file cannot be written, before anything is measured."""
    if path is None:
        return
    there = path.exists()
    try:
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        raise GivenError(f"{path} cannot be written: {error.strerror or error}") from error

"""Mistakes of the first hour: what a newcomer writes, the exception or the warning, its cause and the remedy in it."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

import headrace
from headrace import ImageFolder
from headrace import transforms as T


class Mistake(NamedTuple):
    """A mistake.

    Attributes:
        make: makes it; called with a folder that `make_folder` has filled.
        kind: of the exception; None: it only warns.
        cause: words of the message, or of a warning, that name what was given.
        remedy: words that say what to do; in a note they show from Python 3.11 on.
        beside: the same with torch's own loader, whose exception must be of this type, with these first words.
    """

    make: Callable[[Path], object]
    kind: type[BaseException] | None
    cause: str
    remedy: str
    beside: Callable[[Path], object] | None = None


def make_folder(root: Path) -> Path:
    """Fills a folder: ok/a and ok/b of four images each, a broken image, an empty folder, something called x.tar."""
    for name in ("a", "b"):
        (root / "ok" / name).mkdir(parents=True)
        for i in range(4):
            Image.new("RGB", (20 + i, 30)).save(root / "ok" / name / f"{i}.jpg")
    (root / "broken/a").mkdir(parents=True)
    (root / "broken/a/0.jpg").write_bytes(b"no image")
    (root / "empty").mkdir()
    (root / "x.tar").write_bytes(b"hello" * 1000)
    return root


def sized() -> T.Compose:
    return T.Compose([T.Resize((9, 9)), T.ToTensor()])


def images(folder: Path, *steps: Any) -> ImageFolder:
    return ImageFolder(str(folder / "ok"), T.Compose(list(steps)) if steps else sized())


def loading(*args: Any, **options: Any) -> Callable[[Path], object]:
    """A loader of the images that is iterated. The first argument that is given is `batch_size`."""
    return lambda folder: list(headrace.DataLoader(images(folder), *(args or (2,)), **options))


def torchs(*args: Any, **options: Any) -> Callable[[Path], object]:
    """The same with torch's loader."""
    return lambda folder: list(torch.utils.data.DataLoader(images(folder), *(args or (2,)), **options))


def stepping(*steps: Any) -> Callable[[Path], object]:
    """A loader of images with these transforms, the first batch."""
    return lambda folder: next(iter(headrace.DataLoader(images(folder, *steps), 2)))


def both(*args: Any, **options: Any) -> tuple[Callable[[Path], object], Callable[[Path], object]]:
    return loading(*args, **options), torchs(*args, **options)


def load(dataset: Any, **options: Any) -> object:
    return list(headrace.DataLoader(dataset, 2, **options))


def check(mistake: Mistake, folder: Path) -> None:
    """Makes a mistake, and asserts what it says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = raised_by(mistake.make, folder)
    if mistake.kind is None:
        assert error is None
    else:
        assert isinstance(error, mistake.kind), error
    notes = getattr(error, "__notes__", [])
    said = "\n".join([str(error), *notes, *(str(one.message) for one in caught)])
    assert re.search(mistake.cause, said), said
    if re.search(mistake.remedy, said) is None:
        assert sys.version_info < (3, 11) and mistake.beside is not None, said
    if mistake.beside is not None:
        theirs = raised_by(mistake.beside, folder)
        assert type(error) is type(theirs) and str(error).startswith(str(theirs)[:40])


def raised_by(make: Callable[[Path], object], folder: Path) -> BaseException | None:
    try:
        made = make(folder)
    except BaseException as error:
        return error
    del made
    return None


def gray_array() -> np.ndarray[Any, Any]:
    return np.zeros((2, 3, 4, 4), np.float32)

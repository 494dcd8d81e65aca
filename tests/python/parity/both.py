"""Runs the same code with torch's DataLoader and with headrace's, and compares every observable effect."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._recipe.arithmetic.functional_pil import open_rgb
from support import TENSOR, let_go, pictures, same

TINY = T.Compose([T.Resize((3, 2)), *TENSOR])
COUNT = 14


class Foreign(Dataset[Any]):
    """The samples of `native()`, from a dataset that headrace does not know."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return TINY(open_rgb(pictures(COUNT)[index])), 3 * index


def native() -> EncodedImages:
    """Pictures that headrace reads, with a transform that draws no random numbers."""
    return EncodedImages(pictures(COUNT), [3 * i for i in range(COUNT)], TINY)


MAKERS: dict[str, Callable[[], Any]] = {"native": native, "foreign": Foreign}


def seen(run: Callable[[Any], Any], kind: Any) -> dict[str, Any]:
    """The result, error and warnings of `run(kind)`, and the states of the generators afterwards."""
    torch.manual_seed(3)
    np.random.seed(4)  # noqa: NPY002 - torch's workers seed it
    random.seed(5)
    result = error = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* is multi-threaded, use of fork")  # Python 3.12, of torch's workers
        try:
            result = run(kind)
        except Exception as raised:
            error = let_go(raised)
    numpys: Any = np.random.get_state()  # noqa: NPY002
    return {
        "result": result,
        "error": (type(error), str(error)),
        "warnings": [(one.category, str(one.message)) for one in told],
        "torch": torch.get_rng_state(),
        "numpy": numpys[1:3],
        "python": random.getstate(),
    }


def assert_parity(run: Callable[[Any], Any], *, fails: bool | None = False) -> dict[str, Any]:
    """Asserts that `run` has the same effects with both loaders, and returns them.

    Args:
        run: takes the class of the loader.
        fails: whether `run` must raise; None: it may.
    """
    theirs, ours = seen(run, TorchDataLoader), seen(run, DataLoader)
    for what, value in theirs.items():
        assert same(ours[what], value), f"{what}: torch has {value!r:.2000}, headrace {ours[what]!r:.2000}"
    if fails is not None:
        assert (theirs["error"][0] is not type(None)) == fails, theirs["error"]
    return theirs

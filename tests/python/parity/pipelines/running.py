"""Runs a pipeline with a DataLoader, and records all that a program can see of it."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import torch

from pipelines.material import Material
from pipelines.registry import Pipeline
from support import let_go

EPOCHS = 2


def observe(pipeline: Pipeline, kind: Any, material: Material, workers: int) -> dict[str, Any]:
    """Returns what loaders of the class `kind` deliver in two epochs, their error, the warnings, and the states of the
    generators afterwards."""
    torch.manual_seed(11)
    np.random.seed(12)  # noqa: NPY002 - people's programs use it
    random.seed(13)
    delivered: list[Any] = []
    error: BaseException | None = None
    length = native = generator = None
    once = not torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else the first loader gets the warnings that come once per process
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* is multi-threaded, use of fork")  # Python 3.12, of torch's workers
        warnings.simplefilter("ignore", ResourceWarning)  # comes whenever garbage is collected
        try:
            options = {"num_workers": workers, **pipeline.make(material)}
            if not workers:
                for name in ("persistent_workers", "prefetch_factor", "timeout"):  # torch refuses them
                    options.pop(name, None)
            generator = options.get("generator")
            loader = kind(**options)
            native = getattr(loader, "native", False)
            length = _length(loader)
            for _ in range(EPOCHS):
                delivered.append([])
                for batch in loader:
                    delivered[-1].append(batch)
        except Exception as raised:
            error = let_go(raised)
        finally:
            torch.set_warn_always(not once)
    return {
        "length": length,
        "delivered": delivered,
        "error": (type(error), _message(error)),
        "warnings": [(one.category, str(one.message)) for one in told],
        "random": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "torch": torch.get_rng_state(),
        "generator": None if generator is None else generator.get_state(),
        "native": native,
    }


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # a stream
        return None


def _message(error: BaseException | None) -> str:
    """The message of an error. Of one that a worker process sends, without the lines of the traceback in it."""
    lines = str(error).splitlines()
    return "\n".join(line for line in lines if not line.startswith("  "))

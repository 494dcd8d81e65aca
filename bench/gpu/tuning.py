"""Times headrace's loader with other numbers of threads, images per call and batches in flight, in turns.

    python -m bench.gpu.tuning [--images DIR] [--seconds S] [--rounds N] [--only NAME ...] [--out FILE.json]
    python -m bench.gpu.training --tuning ...    the same with a training step

Shows the effect of the defaults in headrace/_engine/device_engine.py (CALLS) and in the loader on this machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from bench.gpu.contenders import Batches, Work, headrace
from bench.gpu.loaders import run, table
from bench.gpu.turns import finish_with, options_of, work_of
from headrace._engine import device_engine
from headrace._engine.device_engine import Calls


def variant(decoder: str, calls: Calls, **options: Any) -> Callable[[Work], Batches]:
    """headrace's loader with `calls` for its decoder."""
    begin = headrace(decoder, **options)

    def batches(work: Work) -> Batches:
        with patch.dict(device_engine.CALLS, dict.fromkeys(device_engine.CALLS, calls)):  # until the loader is made
            stream = begin(work)
            first = next(stream)
        yield first
        yield from stream

    return batches


#: Decoder, calls, options of the loader.
VARIANTS: list[tuple[str, Calls, dict[str, Any]]] = [
    ("auto", Calls(2, 64, 2), {}),
    ("auto", Calls(2, 64, 0), {}),
    ("auto", Calls(2, 64, 4), {}),
    ("auto", Calls(4, 64, 2), {}),
    ("auto", Calls(2, 126, 2), {}),
    ("auto", Calls(1, 126, 1), {}),
    ("auto", Calls(3, 64, 3), {}),
    ("auto", Calls(2, 64, 2), {"prefetch_factor": 4}),
    ("hardware", Calls(2, 64, 2), {}),
    ("hardware", Calls(4, 64, 2), {}),
    ("hardware", Calls(2, 126, 2), {}),
    ("hardware", Calls(1, 126, 1), {}),
    ("hardware", Calls(3, 64, 3), {}),
    ("hardware", Calls(2, 64, 2), {"prefetch_factor": 4}),
    ("cuda", Calls(4, 128, 0), {}),
    ("cuda", Calls(4, 256, 0), {"prefetch_factor": 6}),
]


def name_of(decoder: str, calls: Calls, options: dict[str, Any]) -> str:
    """For example "auto, 2 x 64, 2 cores left to them, prefetch_factor=4"."""
    said = [f"{decoder}, {calls.lanes} x {calls.group}, {calls.cores} cores left to them"]
    return ", ".join([*said, *(f"{name}={value}" for name, value in options.items())])


VARIANTS_BY_NAME = {name_of(*one): variant(*one[:2], **one[2]) for one in VARIANTS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.tuning", description=__doc__.splitlines()[0])
    options = options_of(parser, seconds=1.5)
    result = run(work_of(options), options, VARIANTS_BY_NAME)
    finish_with(result, table(result), options)


if __name__ == "__main__":
    main()

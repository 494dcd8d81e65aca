"""How loaders that use one helper at the same time share it.

    python -m bench.helper_shares [--images FOLDER] [--seconds N] [--out FILE]

The helper has one core, and the loaders the other. None has a thread of its own that makes samples, so the helper is
the limit. Each loader is a process; they begin together, and their samples are counted in the same seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

import headrace
from bench.helpers import Helper, Intake, dataset_of
from bench.machine import describe, pick_cpus
from headrace.datasets.sources import as_source

#: By situation: the output size of each loader. Those of equal size have one recipe, as the ranks of a job have.
SITUATIONS = {"two ranks": (224, 224), "two jobs": (224, 223), "a job of three ranks, and one": (224, 224, 224, 223)}


def count_samples(images: str, port: int, size: int, begin: float, seconds: float) -> int:
    """Returns how many samples a loader gets of a helper in some seconds."""
    dataset = dataset_of(images, size)
    made = Intake(dataset, as_source(dataset), port)
    while time.time() < begin:
        made.run(1)
    before = made.work
    while time.time() < begin + seconds:
        made.run(1)
    return made.work.since(before).samples


def measure(images: str, sizes: tuple[int, ...], here: set[int], there: set[int], seconds: float) -> list[int]:
    """Returns the samples of each loader."""
    with Helper(images, there, reads=0, from_memory=False) as helper:
        begin = time.time() + 8.0  # for their imports
        code = "import sys; from bench import helper_shares as b; b.count_here({!r}, {}, {}, {}, {})"
        given = [code.format(images, helper.port, size, begin, seconds) for size in sizes]
        loaders = [
            subprocess.Popen(["taskset", "-c", str(min(here)), sys.executable, "-c", one], stdout=subprocess.PIPE)
            for one in given
        ]
        return [int(one.communicate()[0]) for one in loaders]


def count_here(*given: Any) -> None:
    """Prints `count_samples`."""
    torch.set_num_threads(1)
    print(count_samples(*given), flush=True)
    os._exit(0)  # requests are under way


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", default=str(Path(headrace.__file__).parent / "_cli" / "demo" / "photos"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    here, there = ({cpu} for cpu in sorted(pick_cpus(2)))
    found: dict[str, Any] = {"machine": describe(), "images": Path(args.images).name, "samples": {}}
    for name, sizes in SITUATIONS.items():
        found["samples"][name] = measure(args.images, sizes, here, there, args.seconds)
        print(name, found["samples"][name])
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Gives changed states to loaders, and changed sidecars and messages to their readers.

    python -m fuzz.states [--minutes M] [--seed S]

Each is refused with a ValueError (a sidecar may also be ignored), or the rest of an epoch is delivered; nothing is
unpickled or started. The exit status is 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import torch

from fuzz.states.trials import Files, States


def run(seconds: float, seed: int, files_for_each_state: int = 4) -> tuple[int, int, int, list[str]]:
    """Returns the numbers of states, of states that were refused and of files, and what was wrong."""
    draw, wrong = random.Random(seed), []
    end, number, files = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        of_loaders, of_files = States(draw), Files(draw, Path(folder))
        while time.monotonic() < end:
            wrong += [said for said in (of_loaders.trial(),) if said]
            number += 1
            for _ in range(files_for_each_state):
                wrong += [said for said in (of_files.trial(),) if said]
                files += 1
    if "HEADRACE_FUZZ_BOMB" in os.environ:
        wrong.append("code in a pickle was run")
    return number, of_loaders.refused, files, wrong


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.states", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the changes (default: 0)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    number, refused, files, wrong = run(60 * options.minutes, options.seed)
    for said in wrong[:20]:
        print(said)
    print(f"{number} states, {refused} of them refused; {files} sidecars, lists and messages; {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

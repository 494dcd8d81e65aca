"""Runs random chains of transforms: natively, by the oracle, and by torchvision with the same parameters.

    python -m fuzz.chains [--chains N] [--first NUMBER] [--seed S] [--engines scalar avx2 avx512 emulated]

A chain that differs is made shorter and printed as a program. The exit status is 1 if one differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import PIL
import torch

from fuzz.chains.campaign import Campaign
from fuzz.chains.generate import ENGINES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.chains", description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=1000, help="number of native chains to run (default: 1000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first chain (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="of the chains (default: 0)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="to draw from")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    campaign, start = Campaign(arguments.seed, tuple(arguments.engines)), time.monotonic()
    for number in campaign.run(arguments.first, arguments.chains):
        if number % 500 == 0:
            print(f"Pillow {PIL.__version__}, {time.monotonic() - start:.0f} s: {campaign}", flush=True)
    print(f"Pillow {PIL.__version__}, {time.monotonic() - start:.0f} s: {campaign}")
    for reason, count in Counter(campaign.refused).most_common(12):
        print(f"  refused {count} times: {reason}")
    sys.exit(bool(campaign.failures))


if __name__ == "__main__":
    main()

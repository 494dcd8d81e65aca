"""Compares JPEG files that were changed in their structure with Pillow: verdicts and pixels, by each set of loops.

    python -m fuzz.jpegs [--minutes M] [--seed S]

A file that differs is kept in build/fuzz/jpegs. The exit status is 1 if one does.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import PIL
import torch

from fuzz.jpegs.campaign import Campaign


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.jpegs", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the changes (default: 0)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    campaign, end = Campaign(options.seed, Path("build/fuzz/jpegs")), time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        campaign.round()
    print(f"Pillow {PIL.__version__}: {campaign}")
    sys.exit(bool(campaign.differences))


if __name__ == "__main__":
    main()

"""Runs random programs with torch's DataLoader and with headrace's.

    python -m fuzz.programs [--seed FIRST] [--programs N] [--jobs J] [--seconds S] [--without REGEX] [--out FILE]

Programs that differ are printed, made smaller; the last line is a summary in JSON. The exit status is 1 if one differs
silently, hangs or crashes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from fuzz.programs.campaign import HARMLESS, Campaign


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.programs", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="number of the first program (default: 0)")
    parser.add_argument("--programs", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop, at the latest")
    parser.add_argument("--without", default="", help="a regular expression: programs with it are passed over")
    parser.add_argument("--out", type=Path, help="a file for the programs that differ, as lines of JSON")
    arguments = parser.parse_args()
    campaign, begun, told = Campaign(arguments.without), time.monotonic(), 0
    for done in campaign.run(arguments.seed, arguments.programs, arguments.jobs, arguments.seconds):
        if done >= told + 500:
            told = done
            print(f"{time.monotonic() - begun:.0f} s: {dict(campaign.counts)}", flush=True)
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(one) + "\n" for one in campaign.found))
    print(json.dumps({**campaign.summary(), "seconds": round(time.monotonic() - begun)}))
    sys.exit(bool(set(campaign.counts) - HARMLESS))


if __name__ == "__main__":
    main()

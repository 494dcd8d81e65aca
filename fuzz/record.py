"""Runs each fuzzer for a while at a low priority, and adds what it did to a file of figures.

    python -m fuzz.record [--minutes M] [--seed S]
        [--only jpegs chains states programs fuzz_jpeg fuzz_png fuzz_tar fuzz_http fuzz_lists fuzz_wav]

Executions: files times sets of loops (jpegs), chains with all their samples (chains), states and sidecars (states),
programs, inputs (the libFuzzer harnesses, which need clang). The exit status is 1 if one of them found something.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ABOUT = (
    "python -m fuzz.record: executions of each fuzzer and what they found, summed over runs; seconds: "
    "of wall-clock time, at a low priority. "
    "The findings of a run were mended, with a test, before the next."
)


def jpegs(seconds: float, seed: int) -> dict[str, Any]:
    from fuzz.jpegs.campaign import Campaign

    campaign, end = Campaign(seed, Path("build/fuzz/jpegs")), time.monotonic() + seconds
    while time.monotonic() < end:
        campaign.round()
    return {"executions": campaign.comparisons, "files": campaign.files, "refused_by_both": campaign.refused} | {
        "findings": len(campaign.differences)
    }


def chains(seconds: float, seed: int) -> dict[str, Any]:
    from fuzz.chains.campaign import Campaign

    campaign, end = Campaign(seed), time.monotonic() + seconds
    for _ in campaign.run(0, 1 << 40):
        if time.monotonic() > end:
            break
    counts = {"samples": campaign.samples, "by_torchvision": campaign.direct, "errors_in_both": campaign.failed}
    return {"executions": campaign.chains, **counts, "findings": len(campaign.failures)}


def states(seconds: float, seed: int) -> dict[str, Any]:
    from fuzz.states.__main__ import run

    number, refused, files, wrong = run(seconds, seed)
    for said in wrong[:5]:
        print(said)
    return {"executions": number + files, "states": number, "refused": refused, "findings": len(wrong)}


def programs(seconds: float, seed: int) -> dict[str, Any]:
    from fuzz.programs.campaign import HARMLESS, Campaign

    campaign = Campaign()
    for _ in campaign.run(seed * 1_000_000, 1_000_000, len(os.sched_getaffinity(0)), seconds):
        pass
    counts = campaign.counts
    findings = sum(number for kind, number in counts.items() if kind not in HARMLESS)
    return {
        "executions": campaign.programs,
        "unsteady": counts["unsteady"],
        "loud": counts["loud"],
        "findings": findings,
    }


def harness(name: str) -> Callable[[float, int], dict[str, Any]]:
    def run(seconds: float, seed: int) -> dict[str, Any]:
        command = ["fuzz/run.sh", str(round(seconds)), f"-seed={seed + 1}"]
        done = subprocess.run(command, env={**os.environ, "HARNESS": name}, stderr=subprocess.PIPE, text=True)
        found = re.search(r"stat::number_of_executed_units:\s+(\d+)", done.stderr)
        if found is None or done.returncode:
            print(done.stderr[-3000:])
        if found is None:
            raise RuntimeError(f"{name} did not run")
        return {"executions": int(found[1]), "findings": int(done.returncode != 0)}

    return run


FUZZERS: dict[str, Callable[[float, int], dict[str, Any]]] = {
    "jpegs": jpegs,
    "chains": chains,
    "states": states,
    "programs": programs,
    "fuzz_jpeg": harness("fuzz_jpeg"),
    "fuzz_png": harness("fuzz_png"),
    "fuzz_tar": harness("fuzz_tar"),
    "fuzz_http": harness("fuzz_http"),
    "fuzz_lists": harness("fuzz_lists"),
    "fuzz_wav": harness("fuzz_wav"),
}


def added(content: dict[str, Any], name: str, seconds: float, figures: dict[str, Any]) -> dict[str, Any]:
    """Returns the file's content with one more run of a fuzzer."""
    fuzzers = dict(content.get("fuzzers", {}))
    before = fuzzers.get(name, {})
    sums = {key: before.get(key, 0) + value for key, value in figures.items()}
    fuzzers[name] = {"runs": before.get("runs", 0) + 1, "seconds": round(before.get("seconds", 0) + seconds), **sums}
    return {"about": ABOUT, "fuzzers": fuzzers}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.record", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="of each fuzzer (default: 10)")
    parser.add_argument("--only", nargs="+", choices=FUZZERS, default=list(FUZZERS), help="which of them")
    parser.add_argument("--seed", type=int, help="(default: the time)")
    parser.add_argument("--out", type=Path, default=Path("bench/results/fuzz.json"), help="file of figures to add to")
    options = parser.parse_args()
    os.nice(15)
    torch.set_num_threads(1)
    seed = int(time.time()) if options.seed is None else options.seed
    findings = 0
    for name in options.only:
        begin = time.monotonic()
        figures = FUZZERS[name](60 * options.minutes, seed)
        content = json.loads(options.out.read_text()) if options.out.exists() else {}
        content = added(content, name, time.monotonic() - begin, figures)
        options.out.write_text(json.dumps(content, indent=1) + "\n")
        print(f"{name}: {figures}", flush=True)
        findings += figures["findings"]
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()

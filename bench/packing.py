"""Measures how much of a budget of tokens is not used: headrace's packing, Grain's, and batches of similar length.

    python -m bench.packing [--grain PYTHON] [--samples 100000] [--out NAME.json]

Three distributions of lengths, a budget of 4,096 tokens. The unused share is one minus the tokens over those that bins
of 4,096 hold; of LengthBucketBatchSampler, over the padded ones. PYTHON is an interpreter with Grain, whose datasets of
packed sequences get the same samples, shuffled once.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

BUDGET = 4096
GRAIN_BINS = (64, 1024)


def lengths_of(count: int) -> dict[str, Any]:
    """Returns the lengths, int64 (count,), by name."""
    random = np.random.default_rng(0)
    rows, columns = random.integers(8, 65, (2, count))
    return {
        "sentences (log-normal, median 148)": np.clip(random.lognormal(5, 1, count), 1, BUDGET).astype(np.int64),
        "documents cut at the budget": np.minimum(random.lognormal(6.5, 1.5, count) + 1, BUDGET).astype(np.int64),
        "images of 8 to 64 patches an edge": (rows * columns).astype(np.int64),
    }


def run_grain(path: str) -> None:
    """Prints the unused share and the seconds of Grain's packing, as JSON. Runs in Grain's interpreter."""
    grain, packing = map(importlib.import_module, ("grain", "grain.experimental"))
    lengths, found = np.load(path), {}
    samples = [np.ones(length, np.int8) for length in lengths]
    kinds = {
        "first fit": packing.FirstFitPackIterDataset,
        "best fit": packing.BestFitPackIterDataset,
    }
    for name, kind in kinds.items():
        for bins in GRAIN_BINS:
            source = grain.MapDataset.source(samples).shuffle(seed=1).map(lambda one: {"x": one}).to_iter_dataset()
            begin, made = time.perf_counter(), 0
            for packed in kind(source, length_struct={"x": BUDGET}, num_packing_bins=bins):
                made += len(packed["x"])
            found[f"Grain, {name}, {bins} bins"] = [1 - int(lengths.sum()) / made, time.perf_counter() - begin]
    print(json.dumps(found))


def run_headrace(lengths: Any) -> dict[str, list[float]]:
    """Returns [unused share, seconds] of headrace's samplers."""
    from headrace.sampler import LengthBucketBatchSampler, PackingBatchSampler

    found = {}
    for method in ("best_fit", "first_fit"):
        for window in (1024, 8192):
            begin = time.perf_counter()
            sampler = PackingBatchSampler(lengths, BUDGET, method=method, window=window, seed=1)
            share = sampler.unused_share()
            found[f"headrace, {method.replace('_', ' ')}, window {window}"] = [share, time.perf_counter() - begin]
    begin = time.perf_counter()
    bucketed = list(LengthBucketBatchSampler(lengths, max_tokens=BUDGET, seed=1))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in bucketed)
    took = time.perf_counter() - begin
    found["LengthBucketBatchSampler, padding"] = [1 - int(lengths.sum()) / padded, took]
    found["LengthBucketBatchSampler, of bins"] = [1 - int(lengths.sum()) / (BUDGET * len(bucketed)), took]
    return found


def main() -> None:
    if sys.argv[1:2] == ["--in-grain"]:
        return run_grain(sys.argv[2])
    from bench.machine import describe

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grain")
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for name, lengths in lengths_of(args.samples).items():
        results[name] = run_headrace(lengths)
        if args.grain:
            with tempfile.NamedTemporaryFile(suffix=".npy") as file:
                np.save(file, lengths)
                file.flush()
                command = [args.grain, __file__, "--in-grain", file.name]
                results[name] |= json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        print(name)
        for way, (share, seconds) in results[name].items():
            print(f"  {way:<36} {100 * share:7.3f} % {seconds:8.2f} s")
    if args.out:
        args.out.write_text(
            json.dumps({"machine": describe(), "samples": args.samples, "results": results}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

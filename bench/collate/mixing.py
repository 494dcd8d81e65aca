"""Times MixUp and CutMix of a finished batch: in place, as the loader calls them, against torchvision's and timm's own.

    python -m bench.collate.mixing [--rounds 15] [--samples 256] [--threads 1] [--dtype float32] [--out FILE]

Calls take turns on batches (samples, 3, 224, 224); a figure is the median and the range. Before that, the results are
compared to the bit, with the same random numbers.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from bench.contenders._common import import_torchvision
from bench.machine import describe

CLASSES = 1000


def programs() -> dict[str, Callable[[Any], Any]]:
    """Functions of a batch, as given to `out_transform`."""
    import_torchvision()
    from timm.data.mixup import Mixup
    from torchvision.transforms import v2

    up, cut = v2.MixUp(num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)
    mix = Mixup(mixup_alpha=0.8, num_classes=CLASSES)
    box = Mixup(mixup_alpha=0.0, cutmix_alpha=1.0, num_classes=CLASSES)
    return {
        "torchvision's MixUp": lambda batch: up(*batch),
        "torchvision's CutMix": lambda batch: cut(*batch),
        "timm's Mixup, mixing": lambda batch: mix(*batch),
        "timm's Mixup, boxes": lambda batch: box(*batch),
    }


def seeded(function: Callable[[Any], Any], batch: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - timm's generator
    return function(batch)


def ms(function: Callable[[Any], Any], batch: Any) -> float:
    start = time.perf_counter()
    function(batch)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    from headrace._loading.mixup.recognition import mixing_of_batch

    parser = argparse.ArgumentParser(prog="python -m bench.collate.mixing", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1, help="of torch's operations; ours use one")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32", "float64"), default="float32")
    parser.add_argument("--out", type=Path, help="also writes the figures here, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    images = torch.rand(options.samples, 3, 224, 224).to(getattr(torch, options.dtype))
    labels = torch.randint(CLASSES, (options.samples,))
    results: dict[str, Any] = {"machine": describe(), "samples": options.samples, "dtype": options.dtype, "ms": {}}
    print("| function | its own, ms | in place, ms | ratio |\n|---|---|---|---|")
    for name, function in programs().items():
        mixing = mixing_of_batch(function)
        if mixing is None:
            raise SystemExit(f"{name} is not recognised")
        for seed in range(3):
            theirs = seeded(function, [images.clone(), labels], seed)
            if not all(map(torch.equal, seeded(mixing, [images.clone(), labels], seed), theirs)):
                raise SystemExit(f"{name}: the results differ")
        del theirs
        batch, pairs = [images.clone(), labels], []
        for _ in range(options.rounds):
            pairs.append((ms(function, batch), ms(mixing, batch)))
        results["ms"][name] = pairs
        own, ours = ([pair[k] for pair in pairs] for k in range(2))
        ratios = [a / b for a, b in pairs]
        span = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {name} | {median(own):.1f} | {median(ours):.1f} | {span} |", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

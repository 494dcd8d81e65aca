"""Measures the cost of one Python step in a recipe, compared with the step alone and with torch's loader.

    python -m bench.python_step FOLDER [--rounds 5] [--seconds 3] [--cores 1] [--out NAME.json]

Times, interleaved: the train recipe without and with RandAugment after the flip, in headrace's and torch's DataLoader,
and RandAugment alone on crops like those that it gets there. It stands in a Lambda, because by itself it is native. The
batches are compared with the oracle first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.contenders._common import WARM_UP_BATCHES, Job, import_torchvision, torchvision_transform
from bench.machine import describe, options_of

IMAGES = 256


def loader_of(kind: str, recipe: str, job: Job) -> Any:
    from torch.utils.data import DataLoader as TorchDataLoader
    from torchvision.datasets import ImageFolder

    from headrace import DataLoader

    dataset = ImageFolder(str(job.root), torchvision_transform(recipe))
    options: dict[str, Any] = {
        "batch_size": job.batch_size,
        "shuffle": True,
        "num_workers": job.cores,
        "persistent_workers": True,
    }
    return TorchDataLoader(dataset, **options) if kind == "torch" else DataLoader(dataset, **options, seed=0)


def ms_a_sample(loader: Any, seconds: float) -> float:
    """Milliseconds per sample in steady state: the first batches are not counted, of whichever epoch."""
    taken, start, seen = 0, 0.0, 0
    while True:
        for images, _ in loader:
            seen += 1
            if seen <= WARM_UP_BATCHES:
                start = time.perf_counter()
                continue
            taken += len(images)
            if time.perf_counter() - start > seconds:
                return 1e3 * (time.perf_counter() - start) / taken


def step_alone(root: Path) -> Callable[[], float]:
    """Times RandAugment on crops of the folder's images, in one thread: ms per image."""
    from PIL import Image
    from torchvision import transforms as T

    before, step = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip()]), T.RandAugment()
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()][:IMAGES]
    crops = [before(Image.open(path).convert("RGB")) for path in paths]

    def timed() -> float:
        start = time.perf_counter()
        for crop in crops:
            step(crop)
        return 1e3 * (time.perf_counter() - start) / len(crops)

    return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = options_of(parser, cores=1, rounds=5)
    import_torchvision()

    job = Job(args.folder, "train", args.cores)
    loaders = {(kind, recipe): loader_of(kind, recipe, job) for kind in ("torch", "headrace") for recipe in RECIPES}
    print("verified:", loaders["headrace", "python"].verify(2))
    alone = step_alone(args.folder)
    rounds: list[dict[str, float]] = []
    for _ in range(args.rounds):
        ms = {f"{kind} {recipe}": ms_a_sample(one, args.seconds) for (kind, recipe), one in loaders.items()}
        rounds.append({**ms, "step alone": alone()})
    for one in rounds:
        for kind in ("torch", "headrace"):
            one[f"{kind}: added"] = one[f"{kind} python"] - one[f"{kind} train"]
    names = list(rounds[0])
    for name in names:
        values = [one[name] for one in rounds]
        print(f"{name:<22} {median(values):7.3f} ms a sample ({min(values):.3f} to {max(values):.3f})")
    if args.out:
        args.out.write_text(json.dumps({"machine": describe(), "cores": args.cores, "rounds": rounds}, indent=1) + "\n")


RECIPES = ("train", "python")

if __name__ == "__main__":
    main()

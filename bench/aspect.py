"""Compares batches by aspect ratio with square crops: the share of pixels cut off, and images/s of both loaders."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from bench.machine import describe, options_of
from headrace import DataLoader, ImageFiles, transforms
from headrace._recipe.steps.aspect_sizes import cropped_fractions
from headrace.sampler import AspectRatioBatchSampler

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}


def crop(size: tuple[int, int]) -> Any:
    """The largest centred box of the size's ratio, resized to it, as a normalised tensor."""
    return transforms.Compose(
        [transforms.ResizedCenterCrop(size), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    )


def rate(loader: DataLoader, seconds: float) -> float:
    """Images/s of whole epochs, over at least `seconds`."""
    samples, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        samples += sum(len(images) for images in loader)
    return samples / (time.perf_counter() - begin)


def main() -> None:
    """For each folder: the pixels cut off and a verification, then the speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=8, help="how often an epoch holds each file")
    parser.add_argument("--seconds", type=float, default=2.0)
    options = options_of(parser, cores=2, rounds=5)
    sizes = transforms.aspect_ratio_sizes(224, 32)
    figures: dict[str, Any] = {"machine": describe(), "sizes": sizes}
    for folder in options.folders:
        files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in ENDINGS]
        by_ratio = ImageFiles(
            files * options.repeat, None, transforms.ByAspectRatio({size: crop(size) for size in sizes})
        )
        sampler = AspectRatioBatchSampler(by_ratio, options.batch)
        off = {
            name: cropped_fractions(s, sampler.image_sizes).mean()
            for name, s in (("buckets", sizes), ("square", [(224, 224)]))
        }
        workers = options.cores
        loaders = {
            "buckets": DataLoader(
                by_ratio, batch_sampler=sampler, num_workers=workers, persistent_workers=True, seed=0
            ),
            "square": DataLoader(
                ImageFiles(files * options.repeat, None, crop((224, 224))),
                options.batch,
                shuffle=True,
                num_workers=workers,
                persistent_workers=True,
                seed=0,
            ),
        }
        print(f"{folder.name}: {len(files)} files")
        for name, loader in loaders.items():
            compared = loader.verify(max(1, len(loader) // options.repeat))
            print(f"  {name}: {off[name]:.1%} of the pixels cut off; {compared}")
            rate(loader, 0.2)
        rates: dict[str, list[float]] = {name: [] for name in loaders}
        for _ in range(options.rounds):
            for name, loader in loaders.items():
                rates[name].append(rate(loader, options.seconds))
        ratios = [a / b for a, b in zip(rates["buckets"], rates["square"], strict=True)]
        print(
            f"  buckets {statistics.median(rates['buckets']):,.0f} images/s, square "
            f"{statistics.median(rates['square']):,.0f}: {statistics.median(ratios):.2f} times ({min(ratios):.2f} to "
            f"{max(ratios):.2f})"
        )
        figures[folder.name] = {"files": len(files), "cut_off": off, "rates": rates}
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

"""Measures what ``in_order=False`` gains where one sample in 200 takes 2 s, in torch's loader and in headrace's.

    python -m bench.out_of_order [--rounds 3] [--samples 1600] [--out NAME.json]

All other samples take 5 ms. A sample only sleeps, so that the cores do not matter. A Dataset of one's own sleeps in
`__getitem__`: in headrace, too, torch's workers run it. On the native route a Python step sleeps. Three workers or
threads, batches of 16, an epoch from its beginning to its last batch; each must contain every sample once.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from bench.machine import describe, options_of

WORKERS, BATCH, EVERY, SLOW_S, FAST_S = 3, 16, 200, 2.0, 0.005


def sleep_for(index: int) -> None:
    """Takes as long as the sample with this index does."""
    time.sleep(SLOW_S if index % EVERY == EVERY // 2 else FAST_S)


class Own(Dataset[tuple[torch.Tensor, int]]):
    """A dataset whose samples headrace cannot locate."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        sleep_for(index)
        return torch.zeros(3, 8, 8), index


def sleep_as_painted(image: Any) -> Any:
    """A step: the first pixel is the sample's index."""
    red, green, _ = image.getpixel((0, 0))
    sleep_for(red + 256 * green)
    return image


def native(samples: int) -> Any:
    """A dataset on the native route, with a Python step that sleeps."""
    from headrace import ImageArray
    from headrace import transforms as T

    index = np.arange(samples)
    pixels = np.zeros((samples, 8, 8, 3), np.uint8)
    pixels[:, 0, 0, 0], pixels[:, 0, 0, 1] = index % 256, index // 256
    return ImageArray(pixels, index.tolist(), transform=T.Compose([sleep_as_painted, T.ToTensor()]))


def seconds_of_an_epoch(loader: Any, samples: int) -> float:
    begin, labels = time.perf_counter(), []
    for _, some in loader:
        labels.append(some)
    took = time.perf_counter() - begin
    assert torch.equal(torch.cat(labels).sort()[0], torch.arange(samples))
    return took


def main() -> None:
    import headrace

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1600)
    args = options_of(parser, cores=2, rounds=3)
    count = args.samples
    warnings.simplefilter("ignore")  # nothing gets faster, and more workers than cores
    cases = {
        "torch, own Dataset": (TorchDataLoader, Own(count)),
        "headrace, own Dataset": (headrace.DataLoader, Own(count)),
        "headrace, native route": (headrace.DataLoader, native(count)),
    }
    rounds: list[dict[str, float]] = []
    for number in range(args.rounds):
        took: dict[str, float] = {}
        for name, (kind, dataset) in cases.items():
            for in_order in (True, False):
                torch.manual_seed(number)  # the slow samples meet in other batches in each round, not in each loader
                loader = kind(dataset, BATCH, shuffle=True, num_workers=WORKERS, in_order=in_order)
                assert kind is TorchDataLoader or loader.native == ("native" in name)
                took[f"{name}, in_order={in_order}"] = count / seconds_of_an_epoch(loader, count)
        rounds.append(took)
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        print(f"{name:<45} {median(values):6.1f} samples/s ({min(values):.1f} to {max(values):.1f})")
    if args.out:
        args.out.write_text(json.dumps({"machine": describe(), "samples": count, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()

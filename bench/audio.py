"""Times loaders of clips of WAV files: headrace, and torch's DataLoader with torchcodec and with soundfile.

    python -m bench.audio [--files N] [--minutes M] [--rate R] [--seconds S] [--rounds K] [--out FILE]

16-bit mono files of noise are written first. The batches of centred clips are compared, and must be equal, before
random clips are timed, the loaders in turn, on one core and on two with as many workers. Clips a second: medians and
ranges of the rounds; ratios are medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import torchcodec
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset
from torchcodec.decoders import AudioDecoder

import headrace
from bench import machine

BATCH = 16


class _Clips(Dataset[Any]):
    """Clips as people read them; `center`: from the middle of each file."""

    def __init__(self, paths: list[str], samples: int, rate: int, center: bool) -> None:
        self.paths, self.samples, self.rate, self.center = paths, samples, rate, center

    def __len__(self) -> int:
        return len(self.paths)

    def _begin(self, total: int) -> int:
        spare = total - self.samples
        return spare // 2 if self.center else int(torch.randint(0, spare + 1, ()))


class ByTorchcodec(_Clips):
    def __getitem__(self, index: int) -> torch.Tensor:
        decoder = AudioDecoder(self.paths[index], sample_rate=self.rate, num_channels=1)
        seconds = decoder.metadata.duration_seconds
        assert seconds is not None
        begin = self._begin(round(seconds * self.rate))
        return decoder.get_samples_played_in_range(begin / self.rate, (begin + self.samples) / self.rate).data


class BySoundfile(_Clips):
    def __getitem__(self, index: int) -> torch.Tensor:
        with soundfile.SoundFile(self.paths[index]) as file:
            file.seek(self._begin(file.frames))
            return torch.from_numpy(file.read(self.samples, dtype="float32", always_2d=True).T)


def write_files(folder: Path, count: int, minutes: float, rate: int) -> list[str]:
    """Writes 16-bit WAV files of noise."""
    random = np.random.default_rng(0)
    paths = [str(folder / f"{number}.wav") for number in range(count)]
    for path in paths:
        soundfile.write(path, random.uniform(-0.5, 0.5, int(60 * minutes * rate)), rate, subtype="PCM_16")
    return paths


def clips_a_second(loader: Iterable[Any]) -> float:
    """The speed after the first batch."""
    count, begin = 0, 0.0
    for number, batch in enumerate(loader):
        if number == 0:
            begin = time.perf_counter()
        else:
            count += len(batch)
    return count / (time.perf_counter() - begin)


def measure(loaders: Mapping[str, Callable[[], Iterable[Any]]], rounds: int) -> dict[str, Any]:
    """The speed of each loader, in turn in each round, and the ratios of the first to the others."""
    speeds: dict[str, list[float]] = {name: [] for name in loaders}
    for _ in range(rounds):
        for name, make in loaders.items():
            speeds[name].append(clips_a_second(make()))
    first = next(iter(loaders))
    found: dict[str, Any] = {}
    for name, one in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(speeds[first], one, strict=True))
        found[name] = {"median": statistics.median(one), "range": [min(one), max(one)], f"{first} by": ratio}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=20, help="how often a file occurs in an epoch")
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--rate", type=int, default=16000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rate, samples = options.rate, round(options.seconds * options.rate)
    versions = {one.__name__: one.__version__ for one in (torch, torchcodec, soundfile, headrace)}
    given = {name: value for name, value in vars(options).items() if name != "out"}
    result: dict[str, Any] = {"machine": machine.describe(), "versions": versions, "options": given}
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), options.files, options.minutes, rate)
        ours = headrace.Audio(files, seconds=options.seconds, sample_rate=rate, crop="center")
        loaders = [headrace.DataLoader(ours, batch_size=BATCH, num_workers=2)] + [
            TorchDataLoader(kind(files, samples, rate, True), batch_size=BATCH) for kind in (ByTorchcodec, BySoundfile)
        ]
        for batches in zip(*loaders, strict=True):
            assert all(torch.equal(batches[0], one) for one in batches[1:]), "the batches differ"
        print("equal batches")
        many = files * options.repeats
        clips = headrace.Audio(many, seconds=options.seconds, sample_rate=rate)
        torch.set_num_threads(1)
        usable = os.sched_getaffinity(0)
        kinds: dict[str, tuple[Any, Dataset[Any]]] = {
            "headrace": (headrace.DataLoader, clips),
            "torchcodec": (TorchDataLoader, ByTorchcodec(many, samples, rate, False)),
            "soundfile": (TorchDataLoader, BySoundfile(many, samples, rate, False)),
        }
        for cores in options.cores:
            os.sched_setaffinity(0, usable)
            os.sched_setaffinity(0, machine.pick_cpus(cores))
            contenders = {
                name: functools.partial(loader, data, batch_size=BATCH, num_workers=cores, shuffle=True)
                for name, (loader, data) in kinds.items()
            }
            found = result[f"{cores} cores"] = measure(contenders, options.rounds)
            for name, one in found.items():
                low, high = one["range"]
                print(
                    f"{cores} cores, {name}: {one['median']:,.0f} clips/s ({low:,.0f} to {high:,.0f}); "
                    f"headrace {one['headrace by']:.1f}x"
                )
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

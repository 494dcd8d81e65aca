"""Prints what millions of samples in tar shards cost: indexes, joining, opening, the first batch, the loader's state.

    python -m bench.storage.scale [--samples N] [--shards N] [--folder DIR]

A sample is an image of no bytes and a label of one: 1.5 KB, so that the shards of ten million take 15 GB. Each step
runs in a process of its own; memory is its peak, without what it has before the step. Of real shards, which do not fit
the page cache, the first step reads 1 KB a member from the disk.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS = {
    "index": "indexes made anew, joined, and kept",
    "join": "from the indexes of the shards",
    "open": "from the kept samples",
}
_AT_ONCE = 100_000


def _header(name: str, size: int) -> np.ndarray:
    info = tarfile.TarInfo(name)
    info.size = size
    return np.frombuffer(info.tobuf(tarfile.USTAR_FORMAT), np.uint8)


def write(path: Path, first: int, samples: int) -> None:
    """Writes a shard. The headers differ in nine digits of the names and in their checksums."""
    plain = np.concatenate([_header("0" * 9 + ".jpg", 0), _header("0" * 9 + ".cls", 1), np.zeros(512, np.uint8)])
    sums = [int(plain[at : at + 512].sum()) - int(plain[at + 148 : at + 156].sum()) + 8 * 32 for at in (0, 512)]
    with path.open("wb") as file:
        for begin in range(first, first + samples, _AT_ONCE):
            numbers = np.arange(begin, min(begin + _AT_ONCE, first + samples))
            digits = numbers[:, None] // 10 ** np.arange(8, -1, -1) % 10
            rows = np.tile(plain, (len(numbers), 1))
            for at, total in zip((0, 512), sums, strict=True):
                rows[:, at : at + 9] += digits.astype(np.uint8)
                wanted = total + digits.sum(axis=1)
                octal = wanted[:, None] // 8 ** np.arange(5, -1, -1) % 8
                rows[:, at + 148 : at + 154] = octal + ord("0")
            rows[:, 1024] = numbers % 10 + ord("0")
            file.write(rows.tobytes())
        file.write(bytes(1024))


def step(name: str, folder: Path) -> None:
    """Opens the dataset, and prints a line."""
    from headrace import DataLoader, TarShards, transforms

    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    shards = sorted(folder.glob("*.tar"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    data = TarShards(shards, transform=transform)
    opened = time.perf_counter() - begin
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    begin = time.perf_counter()
    loader = DataLoader(data, batch_size=256, shuffle=True, num_workers=2, seed=0, on_error="skip")
    iterator = iter(loader)
    started = time.perf_counter() - begin
    state = len(pickle.dumps(loader.state_dict()))
    del iterator
    print(
        f"{STEPS[name]}: {len(data):,} samples in {len(shards)} shards open in {opened:.2f} s, peak {peak:.0f} MB; "
        f"loader and iterator in {started:.2f} s; state {state} bytes",
        flush=True,
    )


def size(folder: Path, pattern: str) -> str:
    return f"{sum(one.stat().st_size for one in folder.rglob(pattern)) / 1e6:.0f} MB"


def main() -> None:
    """Measures shards in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="for the temporary files")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(options.step, options.folder)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as root:
        each = options.samples // options.shards
        for number in range(options.shards):
            write(Path(root, f"{number:06}.tar"), number * each, each)
        for name in STEPS:
            if name == "join":
                for one in Path(root).glob(".headrace-*"):
                    one.rename(one.with_suffix(".aside"))
            subprocess.run([sys.executable, "-m", __spec__.name, "--step", name, "--folder", root], check=True)
        indexes, kept = (size(Path(root), pattern) for pattern in ("*.npz", "*.samples/*.npy"))
        print(f"indexes of the shards: {indexes}; kept samples: {kept}")


if __name__ == "__main__":
    main()

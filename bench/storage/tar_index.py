"""Prints the time and the memory that the index of tar shards takes, built from the shards and read from its sidecars.

Members are tiny, so their headers are adjacent: of real shards the disk reads 1 KB for each member.
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
import time
from pathlib import Path

from bench.big_list import resident_mb
from headrace import DataLoader, TarShards, transforms


def write(path: Path, first: int, samples: int) -> None:
    """Writes a shard of samples with an image and a label."""
    with path.open("wb") as file:
        for i in range(first, first + samples):
            for extension, data in (("jpg", b"image"), ("cls", b"%d" % (i % 1000))):
                info = tarfile.TarInfo(f"{i:09}.{extension}")
                info.size = len(data)
                file.write(info.tobuf(tarfile.USTAR_FORMAT) + data.ljust(512, b"\0"))
        file.write(bytes(1024))


def main() -> None:
    """Measures shards in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=100)
    options = parser.parse_args()
    each = options.members // 2 // options.shards
    with tempfile.TemporaryDirectory() as root:
        paths = [Path(root, f"{i:05}.tar") for i in range(options.shards)]
        for i, path in enumerate(paths):
            write(path, i * each, each)
        transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
        for name in ("made anew", "from sidecars"):
            before, begin = resident_mb(), time.perf_counter()
            data = TarShards(paths, transform=transform)
            seconds, mb = time.perf_counter() - begin, resident_mb() - before
            begin = time.perf_counter()
            iterator = iter(DataLoader(data, batch_size=256, shuffle=True, num_workers=2, seed=0))
            started = time.perf_counter() - begin
            print(
                f"{name}: {2 * len(data):,} members in {options.shards} shards: {seconds:.2f} s, {mb:.0f} MB; "
                f"loader and iterator {started:.3f} s"
            )
            del iterator, data
        size = sum(path.stat().st_size for path in Path(root).glob("*.npz")) / 1e6
        print(f"sidecars: {size:.0f} MB, {size * 1e6 / (2 * each * options.shards):.0f} bytes a member")


if __name__ == "__main__":
    main()

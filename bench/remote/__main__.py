"""Times tar shards on an HTTP server on this machine, which adds latency to each request, beside local ones.

    python -m bench.remote --images DIR [--rounds N] [--cores N] [--apart] [--latency MS] [--shards N] [--out FILE]

Training: RandomResizedCrop(224), flip, normalise, shuffled over all shards, whole epochs. First the remote batches must
equal the local ones. "cold": no cache, every sample is a request. "disk", "memory": later epochs over a cache.
"stream": TarStream, which reads shards from front to back; its batches are compared with the oracle's. By default it
does not learn the rows of JPEGs, as the local loader does; "learning stream" does. The figures are shares of the local
images a second, the local epoch measured beside each: the median and the range over the rounds. The server is a process
of its own on the same cores, or with --apart on the last one, and this process on the others, local epochs included.
Then: seconds, and processor seconds of this process, from the dataset's constructor to the first batch of 64, for a
bucket of many shards (no cache): with an index beside each, with one joined index, and as a stream without any.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import headrace
from bench.contenders._common import import_torchvision, torchvision_transform
from bench.machine import describe
from headrace._cli.main import main as headrace_command
from headrace._storage.remote.fetcher_registry import close_all

BATCH, EACH = 64, 200


def write_shards(paths: list[Path], folder: Path, each: int) -> str:
    """Writes shards and their indexes; returns the pattern of their names."""
    count = -(-len(paths) // each)
    for shard in range(count):
        with tarfile.open(folder / f"{shard:05}.tar", "w") as tar:
            for i, path in enumerate(paths[shard * each : (shard + 1) * each]):
                for name, data in ((f"{i:05}.jpg", path.read_bytes()), (f"{i:05}.cls", str(i % 10).encode())):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    pattern = f"{{00000..{count - 1:05}}}.tar"
    headrace.TarShards(f"{folder}/{pattern}")
    return pattern


@contextlib.contextmanager
def served(folder: Path, latency_s: float, core: int | None = None) -> Iterator[str]:
    """The URL of a server of the folder, which runs on this core."""
    command = [sys.executable, "-m", "bench.remote.object_server", str(folder), "--latency", str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        if core is not None:
            os.sched_setaffinity(server.pid, {core})
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def loader(urls: str, cores: int, **options: Any) -> headrace.DataLoader:
    dataset = headrace.TarShards(urls, transform=torchvision_transform("train"), **options)
    return headrace.DataLoader(dataset, BATCH, shuffle=True, num_workers=cores, seed=0)


def rate(batches: headrace.DataLoader) -> float:
    """Images a second of an epoch."""
    begin = time.perf_counter()
    count = sum(len(images) for images, _ in batches)
    return count / (time.perf_counter() - begin)


def steady(paths: list[Path], cores: int, rounds: int, latency_s: float, core: int | None) -> dict[str, list[float]]:
    """The shares of the local rate, by kind of cache."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bucket").mkdir()
        pattern = write_shards(paths, folder / "bucket", EACH)
        with served(folder / "bucket", latency_s, core) as url:
            local = loader(f"{folder}/bucket/{pattern}", cores)
            kinds: dict[str, dict[str, Any]] = {
                "cold": {},
                "disk": {"cache": folder / "cache"},
                "memory": {"cache": "memory:16 GB"},
            }
            far = {kind: loader(f"{url}/{pattern}", cores, **options) for kind, options in kinds.items()}
            for kind, one in far.items():
                local.set_epoch(0)
                one.set_epoch(0)
                for (a, its), (b, theirs) in zip(local, one, strict=True):
                    if not (torch.equal(a, b) and torch.equal(its, theirs)):
                        sys.exit(f"{kind}: the batches differ")
            far["stream"] = stream(f"{url}/{pattern}", cores)
            far["learning stream"] = stream(f"{url}/{pattern}", cores, entry_points="1 GB")
            far["stream"].verify(2)
            shares: dict[str, list[float]] = {kind: [] for kind in far}
            for _ in range(rounds):
                for kind, one in far.items():
                    beside = rate(local)
                    shares[kind].append(rate(one) / beside)
    return shares


def stream(urls: str, cores: int, **options: Any) -> headrace.DataLoader:
    dataset = headrace.TarStream(urls, transform=torchvision_transform("train"), shuffle=True)
    return headrace.DataLoader(dataset, BATCH, num_workers=cores, seed=0, **options)


def first_batches(paths: list[Path], cores: int, shards: int, latency_s: float) -> dict[str, list[float]]:
    """Seconds, and processor seconds, to the first batch of many shards, of four images each."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        pattern = write_shards([paths[i % len(paths)] for i in range(4 * shards)], Path(name), 4)
        index = str(Path(name, "headrace.index.npz"))
        with served(Path(name), latency_s) as url:
            for kind in ("an index each", "joined index", "stream"):
                if kind == "joined index" and headrace_command(["index", name, "--out", index]) != 0:
                    sys.exit("the joined index could not be written")
                close_all()
                begin, spent = time.perf_counter(), time.process_time()
                made = stream(f"{url}/{pattern}", cores) if kind == "stream" else loader(f"{url}/{pattern}", cores)
                next(iter(made))
                found[kind] = [time.perf_counter() - begin, time.process_time() - spent]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5, help="0: no epochs, and the first batches once")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--apart", action="store_true", help="the server has the last core, the loader the others")
    parser.add_argument("--latency", type=float, default=30.0, help="milliseconds added to each request")
    parser.add_argument("--shards", type=int, default=1000, help="of the bucket of the first batches; 0: none")
    parser.add_argument("--samples", type=int, default=1024, help="of an epoch at least: the images are repeated")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    import_torchvision()
    paths = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    paths *= -(-options.samples // len(paths))  # a short epoch measures its first requests, not the steady state
    latency_s = options.latency / 1000
    cores = sorted(os.sched_getaffinity(0))
    core = cores.pop() if options.apart else None
    if core is not None:
        os.sched_setaffinity(0, cores)
        options.cores = len(cores)
    shares = steady(paths, options.cores, options.rounds, latency_s, core) if options.rounds else {}
    figures: dict[str, Any] = {"machine": describe(), "load": os.getloadavg(), "samples": len(paths)}
    figures |= {"latency ms": options.latency, "apart": options.apart, "shares of local": shares}
    for kind, values in shares.items():
        print(f"{kind:<16}{statistics.median(values):.2f} of local ({min(values):.2f} to {max(values):.2f})")
    count = (min(3, options.rounds) or 1) if options.shards else 0
    times = [first_batches(paths, options.cores, options.shards, latency_s) for _ in range(count)]
    figures["first batch s, processor s"] = times
    for kind in times[0] if times else ():
        wall, spent = zip(*(one[kind] for one in times), strict=True)
        print(
            f"first batch of {options.shards} shards, {kind}: {statistics.median(wall):.2f} s "
            f"({min(wall):.2f} to {max(wall):.2f}), {statistics.median(spent):.2f} s of the processor"
        )
    if options.out is not None:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

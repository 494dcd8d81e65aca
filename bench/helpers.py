"""What samples of helpers cost the machine that trains, and what a helper adds.

    python -m bench.helpers [--images FOLDER] [--rounds N] [--out FILE]

All parts use RandomResizedCrop(224), flip, ToTensor, Normalize, batches of 64, and two cores: the loader has one, the
helper the other. Batches are compared with those of a loader alone first.

`intake`: the helper answers from memory. The loader has no thread of its own, so that all samples come from the helper:
CPU time of its process a sample, samples a second, and bytes there and back, where it sends the files and where the
helper reads them.

`together`: epochs of a loader with one thread, alone and with a helper with one thread, interleaved.

`split`: how many samples stay here, as the loader finds it and fixed: with a fast network and one of 100 Mbit/s, with a
helper as fast as the loader and one that is four times slower; epochs in turn.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python" / "helpers"))

from faulty_proxy import Faults, proxy

import headrace
from bench.machine import describe, pick_cpus
from headrace import transforms as T
from headrace._engine.counters.helper_work import HelperWork
from headrace._engine.image_engine import ImageEngine
from headrace._helpers.connection import Address
from headrace._helpers.helper_lane import HelperLane
from headrace._helpers.requests import RowRequests
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.memory_format import Layout
from headrace.datasets.sources import as_source

BATCH, IN_FLIGHT, BATCHES = 64, 6, 60
TIMES = 8  # an epoch of `together` has each image
KEPT = (0, 16, 48, 96, 192, 384)  # samples that stay here, of up to 448 in flight

SERVER = """
import os, sys, time
from headrace._helpers.server import HelperServer
from bench.helpers import joined
os.sched_setaffinity(0, {cpus})

class FromMemory(HelperServer):
    # The first answer of each size is made, and sent again and again.
    known = {{}}

    def make(self, path, name, dataset, arrays):
        begin = time.perf_counter()
        try:
            return self.find(path, name, dataset, arrays)
        finally:
            time.sleep({slower} * (time.perf_counter() - begin))

    def find(self, path, name, dataset, arrays):
        key = path, name, len(arrays[0])
        if key not in self.known or path == "/v1/files" or not {from_memory}:
            self.known[key] = super().make(path, name, dataset, arrays)
        return self.known[key]

server = FromMemory(("127.0.0.1", 0), 1, dataset=joined({images!r}, {reads}) if {reads} else None)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def dataset_of(images: str, size: int = 224) -> headrace.ImageFiles:
    """The images of a folder with the usual training recipe."""
    paths = sorted(path for path in Path(images).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    normalise = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    steps = [T.RandomResizedCrop(size), T.RandomHorizontalFlip(), T.ToTensor(), normalise]
    return headrace.ImageFiles(paths, list(range(len(paths))), T.Compose(steps))


def joined(images: str, times: int) -> Any:
    """The images of a folder, several times."""
    return as_source(torch.utils.data.ConcatDataset([dataset_of(images)] * times))


class Helper:
    """A helper in another process, on some CPUs; `reads`: how often it has the images; 0: it has none."""

    def __init__(self, images: str, cpus: set[int], *, reads: int, from_memory: bool, slower: int = 0) -> None:
        code = SERVER.format(cpus=cpus, images=images, reads=reads, from_memory=from_memory, slower=slower)
        self._process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class Intake:
    """A pipeline without threads: a helper makes all samples of its batches, which are of the first rows of a dataset
    and always the same."""

    def __init__(self, dataset: headrace.ImageFiles, source: Any, port: int) -> None:
        loader: Any = headrace.DataLoader(dataset, BATCH)
        recipe, self._table = loader.recipe(), source.blob_table()
        self._engine = ImageEngine(recipe, Layout.PLANAR, threads=0, slots_kept=IN_FLIGHT + 2)
        requests = RowRequests(self._engine, source)
        self._lane = HelperLane(self._engine, Address("127.0.0.1", port), 0, requests)
        self._lane._pace.keep = 0
        self._rows = np.arange(BATCH, dtype=np.int64) % len(source)
        self._draws = Draws(recipe.columns, 0).batch(0, self._rows, self._rows)
        self._memory = [torch.empty((BATCH, *recipe.shape)) for _ in range(IN_FLIGHT)]
        self._flights: deque[Any] = deque()
        self._begun = 0

    @property
    def work(self) -> HelperWork:
        """What the helper has done."""
        return self._lane._pace.work

    def run(self, batches: int) -> None:
        """Has batches made; up to IN_FLIGHT of them, also of the next call, are made at the same time."""
        for _ in range(batches):
            if len(self._flights) == IN_FLIGHT:
                self._wait()
            memory = self._memory[self._begun % IN_FLIGHT]
            self._flights.append(self._engine._pipeline.submit(self._table, self._rows, self._draws, memory))
            self._begun += 1

    def finish(self) -> None:
        """Waits for the batches in flight."""
        while self._flights:
            self._wait()

    def _wait(self) -> None:
        assert self._engine._pipeline.wait(self._flights.popleft(), 60.0)

    def close(self) -> None:
        """Ends the lane's threads."""
        self._engine.add_lane(self._lane)
        self._engine.close()


def intake(images: str, cpus: set[int], reads: bool) -> dict[str, float]:
    """Costs of samples that a helper has in memory."""
    with Helper(images, cpus, reads=int(reads), from_memory=True) as helper:
        made = Intake(dataset_of(images), joined(images, 1), helper.port)
        made.run(IN_FLIGHT)  # the connection, the probe, the memory
        made.finish()
        before, begin, cpu = made.work, time.perf_counter(), time.process_time()
        made.run(BATCHES)
        made.finish()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        work = made.work.since(before)
        made.close()
    samples = BATCHES * BATCH
    return {
        "us_of_cpu": 1e6 * cpu / samples,
        "samples_a_second": samples / seconds,
        "bytes": work.bytes / work.samples,
        "samples_a_request": work.samples / work.requests,
    }


def seconds_of(loader: Any) -> float:
    """The time of an epoch without its first batches."""
    begin = 0.0
    for number, _ in enumerate(loader):
        if number == 1:
            begin = time.perf_counter()
    return time.perf_counter() - begin


def together(images: str, here: set[int], there: set[int], reads: bool, rounds: int) -> dict[str, Any]:
    """Speed of a loader with a helper, divided by that of the same loader alone."""
    big: Any = torch.utils.data.ConcatDataset([dataset_of(images)] * TIMES)
    options: dict[str, Any] = {"num_workers": 1, "prefetch_factor": 6, "shuffle": True, "seed": 0}
    with Helper(images, there, reads=TIMES * reads, from_memory=False) as helper:
        os.sched_setaffinity(0, here)
        alone = headrace.DataLoader(big, BATCH, persistent_workers=True, **options)
        address = f"127.0.0.1:{helper.port}"
        helped = headrace.DataLoader(big, BATCH, persistent_workers=True, helpers=[address], **options)
        for (ours, _), (theirs, _) in zip(helped, alone, strict=True):
            assert torch.equal(ours, theirs)
        ratios, shares = [], []
        for _ in range(rounds):
            ratios.append(seconds_of(alone) / seconds_of(helped))
            shares.append(helped.stats().helpers[address].samples / len(big))
        for one in (alone, helped):
            one.close()
    return {"ratio": statistics.median(ratios), "ratios": ratios, "share": statistics.median(shares)}


def _keep(number: int, seconds: float) -> int:
    """Stands for `HelperLane._samples_made_here`, as a function that is no method."""
    return number


def split(images: str, here: set[int], there: set[int], rounds: int) -> dict[str, Any]:
    """Seconds of an epoch where the loader finds how many samples stay here, divided by those of the best fixed one."""
    big: Any = torch.utils.data.ConcatDataset([dataset_of(images)] * TIMES)
    options: dict[str, Any] = {"num_workers": 1, "prefetch_factor": 6, "shuffle": True, "seed": 0}
    found, finds = {}, HelperLane._samples_made_here
    os.sched_setaffinity(0, here)
    for network, rate in (("fast network", 0.0), ("100 Mbit/s", 12.5e6)):
        for strength, slower in (("strong helper", 0), ("weak helper", 3)):
            with (
                Helper(images, there, reads=TIMES, from_memory=False, slower=slower) as helper,
                proxy(helper.port, Faults(rate=rate)) as between,
            ):
                address = f"127.0.0.1:{between.port if rate else helper.port}"
                loader = headrace.DataLoader(big, BATCH, persistent_workers=True, helpers=[address], **options)
                seconds: dict[str, list[float]] = {}
                for number in range(rounds + 1):
                    for keep in (None, *KEPT):
                        fixed: Any = finds if keep is None else functools.partial(_keep, keep)
                        HelperLane._samples_made_here = fixed  # type: ignore[method-assign]
                        took = seconds_of(loader)
                        if number:  # the first round is the helper's first
                            seconds.setdefault("found" if keep is None else str(keep), []).append(took)
                loader.close()
            medians = {name: statistics.median(each) for name, each in seconds.items()}
            best = min(value for name, value in medians.items() if name != "found")
            found[f"{network}, {strength}"] = {"to_best": medians["found"] / best, "seconds": medians}
    HelperLane._samples_made_here = finds  # type: ignore[method-assign]
    return found


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", default=str(Path(headrace.__file__).parent / "_cli" / "demo" / "photos"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    here, there = ({cpu} for cpu in sorted(pick_cpus(2)))
    os.sched_setaffinity(0, here)
    torch.set_num_threads(1)
    found: dict[str, Any] = {"machine": describe(), "images": Path(args.images).name, "intake": {}, "together": {}}
    for reads, name in ((False, "files are sent"), (True, "the helper reads them")):
        rounds = [intake(args.images, there, reads) for _ in range(args.rounds)]
        found["intake"][name] = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        print(name, json.dumps(found["intake"][name]))
    for reads, name in ((False, "files are sent"), (True, "the helper reads them")):
        found["together"][name] = together(args.images, here, there, reads, args.rounds)
        print(name, json.dumps(found["together"][name]))
    found["split"] = split(args.images, here, there, args.rounds)
    print(json.dumps(found["split"], indent=1))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

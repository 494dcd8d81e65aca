"""Compares what `headrace doctor` and `headrace tune` state with loaders that run longer.

    python -m bench.advice doctor FOLDER ... [--busy] [--out FILE]
    python -m bench.advice tune FOLDER [--times N] [--seconds S] [--busy] [--out FILE]

`doctor`: its rate of training crops on cores of their own, beside that of a loader with as many threads: whole epochs,
the median after the first. With `--busy` another process computes and pauses while `doctor` measures, not while the
loader runs: that is what its rate is about.

`tune`: as often as `--times` says; then the settings that were recommended and those that were tried beside them take
turns in epochs of loaders. A recommendation is refuted where another setting is more than 5% faster.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headrace
from bench.contenders._common import MEAN, SIZE, STD
from bench.machine import describe
from headrace import transforms

LEAST_IMAGES = 2000  # of an epoch
ROUNDS = 7
REFUTED = 1.05
TRAIN = transforms.Compose(
    [
        transforms.RandomResizedCrop(SIZE),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
#: Computes for a random time, then pauses for one.
NOISE = """
import random, time
while True:
    end = time.time() + random.random()
    while time.time() < end:
        pass
    time.sleep(random.random())
"""


@contextmanager
def other_work(is_wanted: bool) -> Iterator[None]:
    """Inside ``with``, another process uses half of a core, if that is wanted."""
    process = subprocess.Popen([sys.executable, "-c", NOISE]) if is_wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def run_command(*arguments: object) -> Any:
    """Returns the JSON document that a command of headrace writes to its standard output."""
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return json.loads(done.stdout)


def loader_of(folder: Path, num_workers: int, prefetch_factor: int, batch_size: int) -> headrace.DataLoader[Any]:
    """A loader of training crops of all images in a folder, repeated until they are enough."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg", ".png")]
    files *= -(-LEAST_IMAGES // len(files))
    images = headrace.ImageFiles(files, transform=TRAIN)
    return headrace.DataLoader(
        images,
        batch_size,
        shuffle=True,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        on_error="skip",
        persistent_workers=True,
    )


def rate(loader: headrace.DataLoader[Any]) -> float:
    """Images a second of one epoch."""
    begin, count = time.perf_counter(), 0
    for batch in loader:
        count += len(batch)
    return count / (time.perf_counter() - begin)


def check_doctor(folder: Path, *, busy: bool) -> dict[str, Any]:
    """The rates of `doctor` and of a loader for one folder."""
    with other_work(busy):
        crops = run_command("doctor", folder, "--json")["crops"]
    loader = loader_of(folder, crops["cores"], 2, 64)
    rates = [rate(loader) for _ in range(ROUNDS)][1:]
    loader.close()
    found = {"folder": folder.name, "busy": busy, "doctor": crops, "loader": rates}
    found["ratio"] = crops["images_per_s"] / statistics.median(rates)
    return found


def check_tune(folder: Path, times: int, seconds: float, *, busy: bool) -> dict[str, Any]:
    """What `tune` recommended each time, and the rates of these and of the other settings in longer runs."""
    runs = []
    with other_work(busy):
        for _ in range(times):
            runs.append(run_command("tune", folder, "--seconds", seconds, "--json", "-"))
            print(runs[-1]["num_workers"], runs[-1]["prefetch_factor"], runs[-1]["busy"], flush=True)
    tried = sorted({(one["num_workers"], one["prefetch_factor"]) for run in runs for one in run["figures"]})
    loaders = {one: loader_of(folder, *one, runs[0]["batch_size"]) for one in tried}
    rates: dict[tuple[int, int], list[float]] = {one: [] for one in tried}
    for _ in range(ROUNDS):
        for one in random.sample(tried, len(tried)):
            rates[one].append(rate(loaders[one]))
    for loader in loaders.values():
        loader.close()
    medians = {one: statistics.median(found[1:]) for one, found in rates.items()}
    recommended = [(run["num_workers"], run["prefetch_factor"]) for run in runs if run["num_workers"] is not None]
    refuted = [one for one in recommended if max(medians.values()) > REFUTED * medians[one]]
    return {
        "folder": folder.name,
        "busy": busy,
        "seconds": seconds,
        "recommended": recommended,
        "none": len(runs) - len(recommended),
        "longer_runs": [[*one, *found] for one, found in rates.items()],
        "refuted": refuted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.advice", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["doctor", "tune"])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--busy", action="store_true", help="beside another process")
    parser.add_argument("--times", type=int, default=20, help="runs of tune")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a run of tune")
    parser.add_argument("--out", type=Path, help="also adds the figures to this JSON file")
    options = parser.parse_args()
    for folder in options.folders:
        if options.command == "doctor":
            found = check_doctor(folder, busy=options.busy)
            stated = found["doctor"]["images_per_s"]
            print(f"{folder.name}: doctor {stated:.0f} images/s, {found['ratio']:.2f} of the loader's")
        else:
            found = check_tune(folder, options.times, options.seconds, busy=options.busy)
            print(f"{folder.name}: {len(found['recommended'])} recommendations, {len(found['refuted'])} refuted")
        if options.out:
            known = json.loads(options.out.read_text()) if options.out.exists() else {"machine": describe(), "runs": []}
            known["runs"].append({"command": options.command, **found})
            options.out.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()

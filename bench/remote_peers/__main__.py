"""Epochs of loaders whose samples other processes make, on the same two cores: images a second, and the same batches?

    python -m bench.remote_peers [--images N] [--rounds N] [--epochs N] [--only CONTENDER ...] [--out FILE]

ImageNet files (`imagenet_dev` of bench.datasets), RandomResizedCrop(224), flip, ToTensor, Normalize, batches of 64,
shuffled with a seed. Each turn is a process of its own; contenders take turns within each round. The first epoch is not
timed: its order and its pixels are hashed, which must be those of every other turn with the same seed. Then whole
epochs are timed, from their beginning to their last batch. What is not installed is left out, with one sentence.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import datasets, machine
from bench.processes import run_for_line
from bench.remote_peers import headrace_helpers, ray_data, tf_data_service
from bench.remote_peers.epochs import Job, Missing

CORES, LIMIT_S = 2, 900
CONTENDERS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "headrace, 1 thread + a helper of 1": lambda job: headrace_helpers.measure(job, 1, 1),
    "headrace, 1 thread + 2 helpers of 1": lambda job: headrace_helpers.measure(job, 2, 1),
    "headrace alone, 2 threads": lambda job: headrace_helpers.measure(job, 0, 2),
    "Ray Data, read_images": lambda job: ray_data.measure(job, "images", False),
    "Ray Data, read_binary_files": lambda job: ray_data.measure(job, "bytes", False),
    "Ray Data, read_binary_files, preserve_order": lambda job: ray_data.measure(job, "bytes", True),
    "tf.data service, 1 worker": lambda job: tf_data_service.measure(job, 1),
    "tf.data service, 2 workers": lambda job: tf_data_service.measure(job, 2),
}


def turn(name: str, root: Path, epochs: int) -> dict[str, Any]:
    """Runs one contender in a process, and ends all that it has started."""
    command = [sys.executable, "-m", "bench.remote_peers", "--turn", name, "--root", str(root), "--epochs", str(epochs)]
    return run_for_line(command, LIMIT_S)


def run_turn(name: str, job: Job) -> None:
    """Runs one contender in this process, on its cores, and prints one line."""
    os.sched_setaffinity(0, machine.pick_cpus(CORES))
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    try:
        print("\n" + json.dumps(CONTENDERS[name](job)), flush=True)
    except Missing as error:
        print("\n" + json.dumps({"missing": str(error)}), flush=True)


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """What the turns of one contender have in common."""
    rates = [one["images"] / one["seconds"] for one in turns]
    return {
        "images_a_second": round(statistics.median(rates), 1),
        "least": round(min(rates), 1),
        "most": round(max(rates), 1),
        "first_batch_s": round(statistics.median(one["first_batch_s"] for one in turns), 2),
        "after_it": round(statistics.median(one["after_it"] for one in turns), 1),
        "each_file_once": all(one["each_once"] for one in turns),
        "same_order": len({one["order"] for one in turns}) == 1 if len(turns) > 1 else None,
        "same_pixels": len({one["pixels"] for one in turns}) == 1 if len(turns) > 1 else None,
        "pixels": sorted({one["pixels"] for one in turns}),
        "version": turns[0].get("version"),
        "made_by_helpers": [round(one["made_by_helpers"], 3) for one in turns if "made_by_helpers" in one],
        "rates": [round(one, 1) for one in rates],
        "load": [round(one["load"], 1) for one in turns],
    }


def table(found: dict[str, dict[str, Any]]) -> str:
    """The figures as Markdown."""
    heads = ["", "images/s", "first batch after, s", "images/s after it", "same order", "same pixels"]
    lines = [heads, ["---"] * len(heads)]
    for name, one in found.items():
        rate = f"{one['images_a_second']:,.0f} ({one['least']:,.0f} to {one['most']:,.0f})"
        same = [{True: "yes", False: "no", None: ""}[one[what]] for what in ("same_order", "same_pixels")]
        lines.append([name, rate, f"{one['first_batch_s']:.2f}", f"{one['after_it']:,.0f}", *same])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def folder_of(images: int) -> Path:
    """The tree of links of bench.datasets, or one of its first images."""
    sets = datasets.lay_out(["imagenet_dev"])
    if not sets:
        sys.exit("bench.remote_peers: no images; set HEADRACE_BENCH_DATA")
    links = sorted(path for path in sets[0].root.rglob("*") if not path.is_dir())[:images]
    root = datasets.OUT / f"{sets[0].root.name}-first-{len(links)}"
    for link in links:
        copy = root / link.relative_to(sets[0].root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            copy.symlink_to(link.resolve())
    return root


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(prog="python -m bench.remote_peers", description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=2048, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2, help="that are timed in each turn")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--turn", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turn:
        return run_turn(args.turn, Job(args.root, args.epochs))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the turn's processes end, too
    root, missing = folder_of(args.images), dict[str, str]()
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in args.only}
    for number in range(args.rounds):
        for name in args.only:
            if name in missing:
                continue
            found = turn(name, root, args.epochs)
            if why := found.get("missing") or found.get("failed"):
                missing[name] = why
                print(f"{name}: left out: {why}", flush=True)
                continue
            load, rate = os.getloadavg()[0], found["images"] / found["seconds"]
            turns[name].append(found | {"load": load})
            print(f"round {number + 1}  {name:<45} {rate:8,.1f} images/s, load {load:.1f}", flush=True)
    out = {name: summary(found) for name, found in turns.items() if found}
    whole = {"machine": machine.describe(), "cores": CORES, "images": args.images, "rounds": args.rounds}
    whole |= {"epochs": args.epochs, "missing": missing, "contenders": out}
    print(table(out))
    if args.out:
        args.out.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()

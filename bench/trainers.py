"""Times the training examples with headrace's loader and with the oracle's in processes; the losses must be equal.

    python -m bench.trainers [FOLDER] [--rounds 3] [--examples ddp timm_train ...] [--out NAME.json]

Each run is a separate process on the same cores, and the loaders alternate: A B A B. The oracle makes the same batches
with Pillow and torch, in as many processes as headrace has threads. The timed part is the whole loop after its first
step: decoding, the network, the optimiser. FOLDER is an ImageFolder; the default is a folder of headrace's photographs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import describe, options_of
from headrace._cli.demo.photo_folder import make_photo_folder

ROOT = Path(__file__).resolve().parents[1]
RUNNER = ROOT / "tests/python/oracle_loader.py"
#: Example -> the modules that it needs, and the ranks that torchrun starts.
EXAMPLES = {
    "resnet18_accumulate": ((), 1),
    "ddp": ((), 2),
    "compiled_step": ((), 1),
    "timm_train": (("timm",), 1),
    "lightning_module": (("lightning",), 1),
    "accelerate_loop": (("accelerate",), 1),
    "transformers_trainer": (("transformers",), 1),
    "ray_train": (("ray",), 1),
}
PACKAGES = ("torch", "torchvision", "Pillow", "lightning", "accelerate", "transformers", "timm", "ray")
LOADERS = ("native", "processes")


def run(whose: str, name: str, options: list[str], ranks: int) -> tuple[dict[int, str], float]:
    """The losses of an example, and its images per second."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    command = [sys.executable, *torchrun, str(RUNNER), whose, str(ROOT / "examples" / f"{name}.py"), *options]
    folders = [str(ROOT / "examples"), str(ROOT / "tests/python"), os.environ.get("PYTHONPATH", "")]
    more = {"PYTHONPATH": os.pathsep.join(folders), "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, check=False)
    if done.returncode:
        raise SystemExit(f"{name} with the {whose} loader ended with {done.returncode}:\n{done.stderr[-4000:]}")
    lines = done.stdout.splitlines()
    losses = {int(line.split()[1].rstrip(":")): line.split()[-1] for line in lines if line.startswith("step ")}
    (rate,) = (float(line.split()[0]) for line in lines if line.endswith(" images/s"))
    return losses, rate


def versions() -> dict[str, str]:
    """The versions of the installed packages."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def told(rates: dict[str, list[float]]) -> str:
    """One line of the table."""
    ratios = [ours / theirs for ours, theirs in zip(rates["native"], rates["processes"], strict=True)]
    cells = [f"{median(one):,.1f} ({min(one):,.1f} to {max(one):,.1f})" for one in (rates[who] for who in LOADERS)]
    return " | ".join([*cells, f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--examples", nargs="+", choices=EXAMPLES, default=list(EXAMPLES))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--size", type=int, default=96)
    args = options_of(parser, cores=2, rounds=3)
    results: dict[str, Any] = {}
    print("| trainer | headrace, images/s | oracle in processes, images/s | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or make_photo_folder(Path(temporary), files=200).train
        for name in args.examples:
            modules, ranks = EXAMPLES[name]
            missing = [module for module in modules if importlib.util.find_spec(module) is None]
            if missing:
                print(f"| {name} | {missing[0]} is not installed | | |")
                continue
            # The threads, or processes, of all ranks together are as many as the cores.
            dealt = 2 if name in ("ddp", "ray_train") else 1
            numbers = {"--epochs": args.epochs, "--batch-size": args.batch_size // dealt, "--size": args.size}
            numbers["--workers"] = max(1, args.cores // dealt)
            options = [str(folder), *(str(part) for pair in numbers.items() for part in pair)]
            rates: dict[str, list[float]] = {whose: [] for whose in LOADERS}
            curves: list[dict[int, str]] = []
            if name == "ray_train":
                options += ["--every", str(2**31)]  # no checkpoints during the run
            for _ in range(1 if name == "ray_train" else args.rounds):  # Ray needs most of a minute to start
                for whose in LOADERS:
                    losses, rate = run(whose, name, options, ranks)
                    curves.append(losses)
                    if not losses or losses != curves[0]:
                        raise SystemExit(f"{name}: the losses with the {whose} loader are others: {losses}")
                    rates[whose].append(rate)
            results[name] = {"steps": len(curves[0]), "equal losses": True, "images/s": rates}
            print(f"| {name} | {told(rates)} |", flush=True)
    if args.out:
        given = {name: str(value) for name, value in vars(args).items()}
        about = {"machine": describe(), "versions": versions(), "options": given}
        args.out.write_text(json.dumps({**about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Runs all checks of the GPU path that need a GPU, in runs of less than ten minutes: proofs, then figures; and datasets
of one's own, both at once.

    python -m bench.gpu.check proofs  --out FOLDER [--images DIR]
    python -m bench.gpu.check figures --out FOLDER [--images DIR]
    python -m bench.gpu.check own     --out FOLDER [--images DIR]

Each part is a separate process with a time limit. The folder receives its output, JSON of its figures, and verdicts.
The exit status is 1 if a test failed, a sanitizer found something or a part did not end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import machine
from bench.datasets import REPOSITORY
from bench.gpu import verdicts

TOO_LONG = 124
PYTEST = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:benchmark"]
# The CUDA tests that the sanitizers run: a sanitizer slows kernels down a hundred times.
SMALL_RUN = ["tests/python/contract", "-k", "cuda and (test_ops or (every_dtype and float32))"]
# For racecheck, which did not end within 150 s on one of the tests above.
SMALLEST_RUN = [sys.executable, "-m", "bench.gpu.kernels", "--parts", "fuse", "--batch", "4", "--repeats", "1"]
ENDURANCE, DURATIONS = ["tests/python/engine/test_endurance.py"], ["--durations", "12"]
# Tests of the emulated device, which run on the GPU: warps, policies, textures, colours, views, samples.
EMULATED_TESTS = ["tests/python/oracle", "tests/python/datasets/fields", "tests/python/engine/test_views_engine.py"]
EMULATED_TESTS += [
    "tests/python/recipe/arithmetic/test_blur.py",
    "tests/python/lowering",
    "tests/python/datasets/sources",
    "-k",
]
EMULATED_TESTS += ["emulated or device or policies or everywhere or warp or views_engine or samples_loading"]
# Records of datasets of one's own, and programs as people write them.
OWN_TESTS = ["tests/python/loading/records", "tests/python/parity/test_device_pipelines.py"]
MANY = {"HEADRACE_GPU_BATCHES": "10000"}

TIMELINE = [sys.executable, "-m", "bench.timeline", "--device", "cuda", "--batch", "256"]
TIMELINE += ["--threads", str(len(os.sched_getaffinity(0)))]


@dataclass(frozen=True)
class Part:
    """A command, its time limit in seconds, and its environment. `figures`: the JSON file that it writes."""

    command: list[str]
    limit: int
    environment: dict[str, str] = field(default_factory=dict)
    figures: str = ""


def _sanitizer(tool: str, limit: int, program: list[str]) -> Part:
    ours = [f"--kernel-name=kns={name}" for name in ("fuse_kernel", "retouch_kernel")]  # not torch's kernels
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *ours]
    # Blocks of torch's caching allocator would hide accesses beyond the end of headrace's memory.
    return Part([*command, *program], limit, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})


def _figures(module: str, limit: int, *options: str) -> Part:
    return Part([sys.executable, "-m", module, *options], limit, figures=module.rpartition(".")[2] + ".json")


RUNS: dict[str, dict[str, Part]] = {
    "proofs": {
        "tests": Part([*PYTEST, "tests/python/contract", "tests/python/engine/devices/test_cuda.py", "-k", "cuda"], 75),
        "emulated": Part([*PYTEST, "-n", "12", *EMULATED_TESTS], 135, {"HEADRACE_EMULATED": "cuda"}),
        "endurance": Part([*PYTEST, "-n", "8", *DURATIONS, *ENDURANCE, "-k", "not memory"], 200, MANY),
        "memory": Part([*PYTEST, *DURATIONS, *ENDURANCE, "-k", "memory"], 60, MANY),  # alone: reads the free memory
        "memcheck": _sanitizer("memcheck", 40, [*PYTEST, *SMALL_RUN]),
        "racecheck": _sanitizer("racecheck", 40, SMALLEST_RUN),
        "initcheck": _sanitizer("initcheck", 40, [*PYTEST, *SMALL_RUN]),
    },
    "figures": {
        "exactness": _figures("bench.gpu.exactness", 60),
        "questions": _figures("bench.gpu.questions", 130),
        "kernels": _figures("bench.gpu.kernels", 60),
        "loaders": _figures("bench.gpu.loaders", 150, "--most-seconds", "120"),
        "training": _figures("bench.gpu.training", 140, "--most-seconds", "110"),
        "timeline": Part(TIMELINE, 40, figures="timeline/timeline.json"),
    },
    "own": {
        "records": Part([*PYTEST, "-n", "8", *DURATIONS, *OWN_TESTS], 180, {"HEADRACE_EMULATED": "cuda"}),
        "own_datasets": _figures("bench.gpu.own_datasets", 150, "--most-seconds", "120"),
    },
}


def call(name: str, part: Part, images: Path | None, out: Path) -> dict[str, Any]:
    """Runs one part; returns its exit status (TOO_LONG: killed), time, last line of output, and figures."""
    command, begin = list(part.command), time.monotonic()
    if shutil.which(command[0]) is None:
        return {"status": None, "seconds": 0.0, "last_line": f"{command[0]} is not on the PATH"}
    made = (out / part.figures).resolve()
    if part.figures:
        target = made if made.parent == out.resolve() else made.parent
        command += ["--out", str(target), *(["--images", str(images)] if images else [])]
        made.unlink(missing_ok=True)  # of an earlier run
    with (out / f"{name}.txt").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=os.environ | {"FAIL_WITHOUT_CUDA": "1"} | part.environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(part.limit)
        except subprocess.TimeoutExpired:
            status = TOO_LONG
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # no process of it may use the GPU during the next part
        process.wait()
    text = (out / f"{name}.txt").read_text(errors="replace")
    last = [line for line in text.strip().splitlines() if line][-1:]
    result = {"status": status, "seconds": round(time.monotonic() - begin, 1), "last_line": last[0] if last else ""}
    if made.is_file():
        result["result"] = json.loads(made.read_text())
    return result


def gpu() -> dict[str, Any]:
    """The GPU, driver and libraries of the measurement."""
    from importlib.metadata import PackageNotFoundError, version

    import torch

    from headrace._engine import destination

    properties = torch.cuda.get_device_properties(0)
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=False)
    versions = {}
    packages = ("headrace", "torch", "torchvision", "nvidia-nvjpeg", "nvidia-nvimgcodec-cu13", "nvidia-dali-cuda130")
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    decoders = {}
    module, why_not = destination.import_gpu_module()
    for decoder in ("hardware", "cuda"):
        try:
            said = module.nvjpeg(0, decoder, destination.nvjpeg_candidates()) if module else why_not
            decoders[decoder] = said.replace(f"{REPOSITORY}/", "")
        except RuntimeError as error:
            decoders[decoder] = f"not to be had: {error}"
    return {
        "gpu": properties.name,
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "multiprocessors": properties.multi_processor_count,
        "driver": driver.stdout.strip(),
        "cuda": torch.version.cuda,
        "versions": versions,
        "nvjpeg": decoders,
    }


def failures(parts: dict[str, dict[str, Any]]) -> list[str]:
    """Parts that failed. A missing program, such as a sanitizer, is no failure, but is printed."""
    return [name for name, part in parts.items() if part["status"] not in (0, None)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.check", description=__doc__.splitlines()[0])
    parser.add_argument("run", choices=tuple(RUNS))
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--only", nargs="+", metavar="PART")
    args = parser.parse_args()
    if args.images and not args.images.is_dir():
        sys.exit(f"--images: there is no folder {args.images}")
    import torch

    if not torch.cuda.is_available():
        sys.exit(f"gpu-check needs a GPU, and torch {torch.__version__} finds none: look whether nvidia-smi lists one")
    args.out.mkdir(parents=True, exist_ok=True)
    images = args.images.resolve() if args.images else None
    parts: dict[str, dict[str, Any]] = {}
    result: dict[str, Any] = {
        "run": args.run,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "device": gpu(),
        "parts": parts,
    }
    for name, part in RUNS[args.run].items():
        if args.only and name not in args.only:
            continue
        parts[name] = call(name, part, images, args.out)
        (args.out / f"{args.run}.json").write_text(json.dumps(result, indent=1) + "\n")  # kept if the run ends early

    print(f"\n{result['device']['gpu']}, driver {result['device']['driver']}, {result['device']['nvjpeg']}\n")
    for name in parts:
        if RUNS[args.run][name].figures:
            print((args.out / f"{name}.txt").read_text(errors="replace"))
    for name, outcome in parts.items():
        print(f"{name:<10} status {outcome['status']}  {outcome['seconds']} s  {outcome['last_line']}")
    print("\n" + verdicts.table(verdicts.judge(parts)))
    bad = failures(parts)
    sys.exit(f"failed: {', '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()

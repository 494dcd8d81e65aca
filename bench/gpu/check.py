"""Everything about the GPU path that needs a GPU, in under eight minutes: tests, timings, sanitizers; JSON and a table.

    python -m bench.gpu.check --out FOLDER [--images DIR]

Exit status 1 if a test failed or a sanitizer found something.
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
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import machine
from bench.datasets import REPOSITORY

# Seconds that each part may take; together less than eight minutes.
LIMITS = {"tests": 120, "kernels": 70, "loaders": 140, "memcheck": 70, "racecheck": 70}
TOO_LONG = 124
TESTS = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python/test_cuda.py"]
# Of the CUDA tests, for the sanitizers: they slow kernels down a hundred times.
SMALL_RUN = "test_ops or (every_dtype and float32)"


def call(part: str, command: list[str], out: Path, **environment: str) -> dict[str, Any]:
    """Runs one part; its exit status (TOO_LONG: ended), its time, and the end of what it said (all of it in a file)."""
    begin = time.monotonic()
    with (out / f"{part}.txt").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=os.environ | environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(LIMITS[part])
        except subprocess.TimeoutExpired:
            status = TOO_LONG
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # nothing of it may use the GPU beside the next part
        process.wait()
    text = (out / f"{part}.txt").read_text(errors="replace")
    last = [line for line in text.strip().splitlines() if line][-1:]
    return {"status": status, "seconds": round(time.monotonic() - begin, 1), "last_line": last[0] if last else ""}


def gpu() -> dict[str, Any]:
    """What the figures were taken on."""
    from importlib.metadata import PackageNotFoundError, version

    import torch

    from headrace import target

    properties = torch.cuda.get_device_properties(0)
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=False)
    versions = {}
    for package in ("headrace", "torch", "torchvision", "nvidia-nvjpeg", "nvidia-nvimgcodec-cu13"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    decoders = {}
    module, why_not = target.native()
    for decoder in ("hardware", "cuda"):
        try:
            decoders[decoder] = module.nvjpeg(0, decoder, target.nvjpeg_candidates()) if module else why_not
        except RuntimeError as error:
            decoders[decoder] = f"not to be had: {error}"
    return {
        "gpu": properties.name,
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "multiprocessors": properties.multi_processor_count,
        "driver": driver.stdout.strip(),
        "versions": versions,
        "nvjpeg": decoders,
        "libnvcuvid": shutil.which("ldconfig") is not None
        and "libnvcuvid.so.1" in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout,
    }


def sanitizer(tool: str, out: Path) -> dict[str, Any]:
    """compute-sanitizer over a small run of the CUDA tests."""
    if shutil.which("compute-sanitizer") is None:
        return {"status": None, "last_line": "compute-sanitizer is not on the PATH"}
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--kernel-name", "regex:fuse_kernel"]
    command += [*TESTS, "-k", SMALL_RUN]
    return call(tool, command, out, PYTORCH_NO_CUDA_MEMORY_CACHING="1", FAIL_WITHOUT_CUDA="1")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.check", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--images", type=Path, metavar="DIR")
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        sys.exit(f"gpu-check needs a GPU, and torch {torch.__version__} finds none: look whether nvidia-smi lists one")
    args.out.mkdir(parents=True, exist_ok=True)
    where = ["--images", str(args.images)] if args.images else []
    result: dict[str, Any] = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "device": gpu(),
    }
    result["tests"] = call("tests", [*TESTS, "-rs"], args.out, FAIL_WITHOUT_CUDA="1")
    for part in ("kernels", "loaders"):
        made = args.out / f"{part}.json"
        command = [sys.executable, "-m", f"bench.gpu.{part}", *where, "--out", str(made.resolve())]
        result[part] = call(part, command, args.out)
        if made.exists():
            result[part]["result"] = json.loads(made.read_text())
    for tool in ("memcheck", "racecheck"):
        result[tool] = sanitizer(tool, args.out)
    (args.out / "gpu-check.json").write_text(json.dumps(result, indent=1) + "\n")

    print(f"\n{result['device']['gpu']}, driver {result['device']['driver']}, {result['device']['nvjpeg']}\n")
    for part in LIMITS:
        print(f"{part:<10} status {result[part]['status']}  {result[part]['last_line']}")
    for part in ("kernels", "loaders"):
        text = args.out / f"{part}.txt"
        print(f"\n{text.read_text()}" if text.exists() else "")
    bad = [part for part in ("tests", "memcheck", "racecheck") if result[part]["status"] not in (0, None, TOO_LONG)]
    bad += ["tests"] if result["tests"]["status"] == TOO_LONG else []
    sys.exit(f"failed: {', '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()

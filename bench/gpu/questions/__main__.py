"""Measures what the documentation of GPU, driver and nvJPEG leaves open, and writes the answers to a file.

    python -m bench.gpu.questions [--images DIR] [--out FILE.json]

1 libraries and engines; 2 images per second of nvJPEG; 3 its samples against libjpeg's; 4 when it writes;
5 damaged files; 6 files, regions and scales that it takes; 7 the cost of pinned memory.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.gpu import images
from bench.gpu.questions import behaviour, decoding
from bench.gpu.questions.place import Place
from headrace._base.native import core
from headrace._engine import destination


def present(candidates: Sequence[str]) -> dict[str, Any]:
    """Question 1: the libraries, and the JPEG engines."""
    answer: dict[str, Any] = {}
    for name in ("libcuda.so.1", "libnvcuvid.so.1"):
        try:
            ctypes.CDLL(name)
            answer[name] = "loads"
        except OSError as error:
            answer[name] = str(error)
    for backend in ("hardware", "cuda"):
        try:
            with decoding.opened(backend, candidates) as library:
                answer["nvjpeg"] = library.version()
                if backend == "hardware":
                    answer["engines"], answer["cores_of_each"] = library.engines()
                else:
                    answer["cuda"] = "starts"
        except RuntimeError as error:
            answer[backend] = str(error)
    return answer


def pinned(place: Place, repeats: int = 7) -> list[dict[str, Any]]:
    """Question 7: milliseconds to allocate and to free pinned memory, by size."""
    if not place.cuda:
        return [{"failed": "pinned memory is a GPU's"}]
    try:
        runtime = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).split('.')[0]}")  # the one that torch uses
    except OSError as error:
        return [{"failed": str(error)}]
    runtime.cudaHostAlloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
    runtime.cudaFreeHost.argtypes = [ctypes.c_void_p]
    rows: list[dict[str, Any]] = []
    for mib in (1, 8, 64):
        allocate, free = [], []
        for _ in range(repeats):
            memory, begin = ctypes.c_void_p(), time.perf_counter()
            if runtime.cudaHostAlloc(ctypes.byref(memory), mib << 20, 0) != 0:
                return [*rows, {"mib": mib, "failed": "cudaHostAlloc refused"}]
            middle = time.perf_counter()
            runtime.cudaFreeHost(memory)
            allocate.append(1e3 * (middle - begin))
            free.append(1e3 * (time.perf_counter() - middle))
        rows.append({"mib": mib, "allocate_ms": statistics.median(allocate), "free_ms": statistics.median(free)})
    return rows


def run(device: str, folder: Path | None, seconds: float, batches: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Yields all seven answers, the longest last."""
    place, candidates = Place(device), destination.nvjpeg_candidates()
    wanted = images.engine_files(images.files(folder, 8 * batches[-1]))
    colour = images.colour(wanted, 4 * batches[-1])
    few = list(dict.fromkeys(colour))
    yield "1 present", present(candidates)
    yield "3 planes", decoding.planes(place, candidates, list(dict.fromkeys(wanted))[:64])
    yield "4 order", behaviour.order(place, candidates, few[:32])
    yield "5 corrupt", behaviour.corrupt(place, candidates, [(data, core.jpeg_header(data)) for data in few[:3]])
    yield "6 takes", behaviour.takes(candidates)
    yield "6 parts", behaviour.parts(place, candidates, few[:6])
    yield "7 pinned", pinned(place)
    yield "2 throughput", decoding.throughput(place, candidates, colour, seconds=seconds, batches=batches)


def lines(question: str, answer: Any) -> list[str]:
    """An answer as text: its rows, or for many rows the count of each outcome."""
    rows = answer if isinstance(answer, list) else [answer]
    if question == "5 corrupt":
        keys = ["backend", "routed", "means", "gone", "raised", "neighbours_equal"]
    elif question == "6 takes":
        keys = ["backend", "routed", "supported", "failed"]
    else:
        return [json.dumps(row) for row in rows]
    outcomes: dict[str, list[str]] = {}
    for row in rows:
        outcome = json.dumps({key: row[key] for key in keys if key in row})
        outcomes.setdefault(outcome, []).append(row.get("what", ""))
    return [f"{len(of)} x {outcome}: {', '.join(dict.fromkeys(of))[:150]}" for outcome, of in outcomes.items()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.questions", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help='"cpu" where $HEADRACE_NVJPEG names a double of nvJPEG')
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each figure of question 2")
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    args = parser.parse_args()
    answers: dict[str, Any] = {}
    for question, answer in run(args.device, args.images, args.seconds, args.batches):
        answers[question] = answer
        if args.out:  # after each answer: the next question may not end
            args.out.write_text(json.dumps(answers, indent=1) + "\n")
    for question, answer in sorted(answers.items()):
        print(f"\n{question}")
        for line in lines(question, answer):
            print("  " + line)


if __name__ == "__main__":
    main()

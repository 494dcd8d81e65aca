"""Prints where the time of a sample goes, by stage: a profile of stage_bench beside the times that it prints.

    python -m bench.kernels.stages STAGE_BENCH FOLDER [--recipe train-known] [--sets avx512 avx2 scalar] [--ghz 3.7]
        [--rounds 8]

STAGE_BENCH is the program of stage_bench.cpp, with symbols. `perf` samples the processor's clock of whole samples; a
symbol's share goes to the stage that its name belongs to. A share of stage_bench's time for whole samples is its
microseconds, and with --ghz its cycles a byte of the file, or a pixel of the box. Where callgrind can run the set: also
thousands of instructions, instructions a cycle, and branches that a simulated predictor misses, of a sample.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

#: Stage -> a pattern of the names of its functions, and what its cycles are divided by. The first match counts.
STAGES: dict[str, tuple[str, str]] = {
    "header": ("parse_jpeg_header|jpeg_header|memchr", "byte of the file"),
    "stuffing removed": ("ScanBytes|unstuff", "byte of the file"),
    "tables of the Huffman codes": ("AcTable|DcTable|LongCodes::build|HuffmanTable|ScanTables|LaneTables", ""),
    "Huffman loop": (
        "HuffmanDecoder|LongCodes|single_step|read_mcus|EntryPoints|RowsAhead|decode_rows|move_blocks|SharedLists"
        "|LaneScan|ScanPieces|PiecesInMemory|decode_pieces|read_symbol|find_junction|before_mcu",
        "byte of the file",
    ),
    "inverse DCT": ("Inverse<|invert", "pixel of the box"),
    "upsampling, colour": ("Pixels<|upsampled|colour|upsample|ComponentRows", "pixel of the box"),
    "weights of the resize": ("ResampleTable|weigh", ""),
    "horizontal pass": ("resample_x|resample_block|Reach", "pixel of the box"),
    "vertical pass": ("resample_columns|resample_y|Resampler", "pixel of the box"),
    "store": ("store_|planar|RowStore|Store", "byte stored"),
}


def profile(program: Path, folder: Path, recipe: str, rounds: int, environment: dict[str, str]) -> dict[str, float]:
    """Returns the share of each stage; "other" is the rest. The loop of stage_bench itself is left out."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name, "perf.data")
        whole = [str(program), str(folder), recipe, str(rounds), "float32", "whole"]
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-o", str(data), *whole]
        subprocess.run(record, check=True, env=environment, stdout=subprocess.DEVNULL)
        report = ["perf", "report", "-i", str(data), "--stdio", "--sort", "symbol"]
        lines = subprocess.run(report, check=True, capture_output=True, text=True).stdout.splitlines()
    shares: dict[str, float] = defaultdict(float)
    for line in lines:
        found = re.match(r"\s*([\d.]+)%\s+(.*)", line)
        if found is not None and (stage := stage_of(found[2])):
            shares[stage] += float(found[1])
    return shares


def stage_of(symbol: str) -> str:
    """Returns the stage of a function; "": none, it is the kernel's, or stage_bench's own loop."""
    if symbol.startswith("[k]") or re.search(r"\bmain\b", symbol):
        return ""
    return next((one for one, (names, _) in STAGES.items() if re.search(names, symbol)), "other")


def instructions(
    program: Path, folder: Path, recipe: str, environment: dict[str, str], samples: float
) -> dict[str, Counter[str]]:
    """Returns instructions and mispredicted branches of a sample by stage, as callgrind simulates them. It knows no
    AVX-512."""
    one, two = (_counted(program, folder, recipe, environment, rounds) for rounds in (1, 2))
    return {name: Counter({at: (two[name][at] - one[name][at]) / samples for at in two[name]}) for name in two}


def _counted(
    program: Path, folder: Path, recipe: str, environment: dict[str, str], rounds: int
) -> dict[str, Counter[str]]:
    with tempfile.TemporaryDirectory() as name:
        data = Path(name, "callgrind.out")
        whole = [str(program), str(folder), recipe, str(rounds), "float32", "whole"]
        run = ["valgrind", "--tool=callgrind", "--branch-sim=yes", f"--callgrind-out-file={data}", *whole]
        subprocess.run(run, check=True, env=environment, capture_output=True)
        told = subprocess.run(["callgrind_annotate", "--threshold=100", str(data)], check=True, capture_output=True)
    found: dict[str, Counter[str]] = {"instructions": Counter(), "mispredicted": Counter()}
    for line in told.stdout.decode().splitlines():
        # Ir, Bc, Bcm, Bi, Bim: each a number with its share in brackets, or a dot. Then FILE:FUNCTION [OBJECT].
        columns = re.match(r"\s*((?:(?:[\d,]+ \(\s*[\d.]+%\)|\.)\s+){5})\S*?:(\D.*)", line)
        if columns is None or not (stage := stage_of(columns[2])):
            continue
        numbers = [
            int(re.sub(r"[,.]", "", one) or 0) for one in re.findall(r"([\d,]+|\.)(?: \([^)]*\))?\s", columns[1])
        ]
        found["instructions"][stage] += numbers[0]
        found["mispredicted"][stage] += numbers[2] + numbers[4]
    return found


def times(program: Path, folder: Path, recipe: str, rounds: int, environment: dict[str, str]) -> dict[str, float]:
    """Returns what stage_bench prints: microseconds of a sample, and bytes and pixels."""
    run = [str(program), str(folder), recipe, str(rounds), "float32"]
    said = subprocess.run(run, check=True, capture_output=True, text=True, env=environment).stdout
    found: dict[str, float] = {}
    for name, value in re.findall(r"(whole|ceiling) ([\d.]+)", said):
        found.setdefault(name, float(value))  # their quotient follows
    for name in ("files", "bytes", "pixels"):
        found[name] = float(re.search(rf"(\d+) {name}", said)[1])  # type: ignore[index]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", default="train")
    parser.add_argument("--sets", nargs="+", default=["avx512", "avx2", "scalar"])
    parser.add_argument("--ghz", type=float, default=3.7)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    for one in options.sets:
        environment = {**os.environ, "HEADRACE_ISA": one}
        said = times(options.program, options.folder, options.recipe, options.rounds, environment)
        shares = profile(options.program, options.folder, options.recipe, options.rounds, environment)
        each = {
            "byte of the file": said["bytes"], "pixel of the box": said["pixels"], "byte stored": 4 * 3 * 224.0 * 224,
        }  # fmt: skip
        counted = (
            {}
            if one == "avx512"
            else instructions(options.program, options.folder, options.recipe, environment, said["files"])
        )
        whole, ceiling = said["whole"], said["ceiling"]
        print(f"\n{one}: {whole:.0f} us a sample, the ceiling {ceiling / whole:.2f} times as long")
        for stage in [*STAGES, "other"]:
            us = whole * shares[stage] / sum(shares.values())
            unit = STAGES[stage][1] if stage in STAGES else ""
            cycles = f"{1e3 * options.ghz * us / each[unit]:.2f} cycles a {unit}" if unit else ""
            row = [stage, f"{us:.0f}", cycles]
            if counted:
                ran = counted["instructions"][stage]
                row += [f"{ran / 1e3:,.0f}", f"{ran / (1e3 * options.ghz * us):.1f}" if us else ""]
                row += [f"{counted['mispredicted'][stage]:,.0f}"]
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()

"""Compares the figures of a GPU with their targets.

    python -m bench.gpu.verdicts FOLDER/proofs.json FOLDER/figures.json

A target that was not measured is reported as such, and never counts as reached.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.contenders import PEERS
from bench.gpu.loaders import BARE
from bench.gpu.own_datasets import NATIVE, OWN
from bench.gpu.turns import spread

Parts = dict[str, dict[str, Any]]
Round = dict[str, dict[str, float]]


class Missing(Exception):
    """A required figure is missing."""


@dataclass(frozen=True)
class Bar:
    """A target. `judge` returns the measured value as text and whether it reaches the target, or raises Missing."""

    what: str
    asked: str
    judge: Callable[[Parts], tuple[str, bool]]


@dataclass(frozen=True)
class Verdict:
    """A target and its result."""

    bar: Bar
    measured: str
    met: bool


def _figures(parts: Parts, name: str) -> dict[str, Any]:
    if name not in parts:
        raise Missing(f"{name} was not run")
    if parts[name]["status"] != 0 or "result" not in parts[name]:
        raise Missing(f"{name} ended with status {parts[name]['status']}: {parts[name]['last_line']}")
    found: dict[str, Any] = parts[name]["result"]
    return found


def _answers(parts: Parts, question: str) -> list[dict[str, Any]]:
    answers = _figures(parts, "questions")
    if question not in answers:
        raise Missing(f"questions has no {question!r}")
    found: list[dict[str, Any]] = answers[question]
    return found


def _passes(part: str, what: str, says: str = " passed") -> Bar:
    """The target of a part whose last line must report success, and no skipped tests."""

    def judge(parts: Parts) -> tuple[str, bool]:
        if part not in parts:
            raise Missing(f"{part} was not run")
        status, said = parts[part]["status"], parts[part]["last_line"]
        if status is None or (status == 0 and (" skipped" in said or says not in said)):
            raise Missing(f"{part}: {said}")
        return said, status == 0

    return Bar(what, "passes", judge)


def _ratio(what: str, least: float, over: Sequence[str], under: Sequence[str], part: str = "loaders") -> Bar:
    """The sum of the rates of some loaders over that of others, taken per round; the median over the rounds counts."""

    def rate(row: Round, names: Sequence[str]) -> float:
        return sum(row[name]["images_per_s"] for name in names)

    def judge(parts: Parts) -> tuple[str, bool]:
        figures = _figures(parts, part)
        rounds: list[Round] = [row for row in figures["rounds"] if all(name in row for name in (*over, *under))]
        if not rounds:
            missing = [name for name in (*over, *under) if not any(name in row for row in figures["rounds"])]
            raise Missing("; ".join(f"{name}: {figures['failed'].get(name, 'no round')}" for name in missing))
        ratio = spread([rate(row, over) / rate(row, under) for row in rounds])
        said = f"{ratio['median']:.3f} ({ratio['least']:.3f} to {ratio['greatest']:.3f})"
        return said, ratio["median"] >= least

    return Bar(what, f"at least {least:g}", judge)


def _kernel(parts: Parts) -> tuple[str, bool]:
    rows = _figures(parts, "kernels")["fuse"]
    worst = min(rows, key=lambda row: float(row["of_copy"]))
    middle = statistics.median(row["of_copy"] for row in rows)
    return f"{worst['of_copy']:.2f} ({worst['what']}), median {middle:.2f}", bool(worst["of_copy"] >= 0.5)


def _starved(parts: Parts) -> tuple[str, bool]:
    figures = _figures(parts, "training")
    name = "headrace, auto"
    rows = [row[name]["starved"] for row in figures["rounds"] if name in row]
    if not rows:
        raise Missing(f"{name}: {figures['failed'].get(name, 'no round')}")
    share = spread(rows)
    return f"{share['median']:.2%} ({share['least']:.2%} to {share['greatest']:.2%})", share["median"] < 0.02


def _samples(parts: Parts) -> tuple[str, bool]:
    rows = [row for row in _answers(parts, "3 planes") if "failed" not in row]
    if not rows:
        raise Missing("nvJPEG decoded nothing")
    kinds = [row[kind] for row in rows for kind in ("luma", "chroma") if kind in row]
    greatest, mean = max(kind["greatest"] for kind in kinds), max(kind["mean"] for kind in kinds)
    return f"greatest {greatest}, mean {mean:.3f}", greatest <= 4 and mean <= 0.1


def _beyond(parts: Parts) -> tuple[str, bool]:
    rows = [row for row in _answers(parts, "3 planes") if "failed" not in row]
    if not rows:
        raise Missing("nvJPEG decoded nothing")
    columns, below = max(row["columns_beyond"] for row in rows), max(row["rows_beyond"] for row in rows)
    return f"{columns} columns, {below} rows", max(columns, below) == 0


def _damaged(parts: Parts) -> tuple[str, bool]:
    rows = [row for row in _answers(parts, "5 corrupt") if row["routed"]]
    if not rows:
        raise Missing("no damaged file reached a decoder")
    gone = [f"{row['backend']}: {row['what']} ({row['gone']})" for row in rows if "gone" in row]
    return "; ".join(gone) or f"none of {len(rows)}", not gone


def _routes(parts: Parts) -> tuple[str, bool]:
    rows = [row for row in _answers(parts, "6 takes") if "failed" not in row and row["routed"]]
    if not rows:
        raise Missing("nvJPEG was not asked")
    refused = [f"{row['backend']}: {row['what']}" for row in rows if not row["supported"]]
    return ", ".join(refused) or f"none of {len(rows)}", not refused


ENDURANCE = "10,000 batches each: busy stream, own stream, graphs, two loaders; fuzzed files; exits"
BARS = [
    _passes("tests", "tests of the GPU path"),
    _passes("emulated", "tests of warps, policies, textures, colours, views and samples, on the GPU"),
    _passes("endurance", ENDURANCE),
    _passes("memory", "memory is flat over 20 epochs"),
    _passes("records", "tests of records of datasets of one's own, on the GPU"),
    _passes("memcheck", "compute-sanitizer memcheck", "ERROR SUMMARY: 0 errors"),
    _passes("racecheck", "compute-sanitizer racecheck", "RACECHECK SUMMARY: 0 hazards"),
    _passes("initcheck", "compute-sanitizer initcheck", "ERROR SUMMARY: 0 errors"),
    Bar("nvJPEG's samples off libjpeg's", "at most 4, mean 0.1", _samples),
    Bar("nvJPEG writes beyond an image's whole iMCUs", "nothing", _beyond),
    Bar("files that are sent to nvJPEG and that it does not take", "none", _routes),
    Bar("damaged files that hang or end a decoder", "none", _damaged),
    _ratio('decoder="hardware" over nvjpegDecodeBatched alone', 0.9, ["headrace, hardware"], [BARE]),
    _ratio(
        'decoder="auto" over hardware and cpu, added',
        0.9,
        ["headrace, auto"],
        ["headrace, hardware", "headrace, cpu (exact)"],
    ),
    *(_ratio(f'decoder="auto" over {peer}', 1.0, ["headrace, auto"], [peer]) for peer in PEERS),
    _ratio("a dataset of one's own over headrace's", 0.9, [OWN], [NATIVE], "own_datasets"),
    _ratio("a dataset of one's own over DALI Proxy", 1.0, [OWN], ["DALI Proxy"], "own_datasets"),
    Bar("the fused kernel's bytes a second over a copy's", "at least 0.5", _kernel),
    Bar('a training step fed by decoder="auto" waits', "less than 2%", _starved),
]


def judge(parts: Parts) -> list[Verdict]:
    """The verdicts of all targets."""
    made = []
    for bar in BARS:
        try:
            made.append(Verdict(bar, *bar.judge(parts)))
        except Missing as missing:
            made.append(Verdict(bar, f"not measured: {missing}", False))
    return made


def table(verdicts: list[Verdict]) -> str:
    """The verdicts as a markdown table."""
    lines = ["| what | asked | measured | reached |", "|---|---|---|---|"]
    for one in verdicts:
        lines.append(f"| {one.bar.what} | {one.bar.asked} | {one.measured} | {'yes' if one.met else 'no'} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.verdicts", description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", metavar="FILE.json")
    parts: Parts = {}
    for path in parser.parse_args().results:
        parts |= json.loads(path.read_text())["parts"]
    print(table(judge(parts)))


if __name__ == "__main__":
    main()

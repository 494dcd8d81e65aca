"""Runs the contenders, interleaved, each in its own subprocess, and writes JSON, a table and a plot.

    python -m bench.run --out bench/results/NAME.json

Before the timing, every contender is probed (and listed if it is not installed) and makes the files that it reads,
headrace is verified against torchvision and Pillow, and the pixels of all contenders are compared.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from bench import datasets, machine, report
from bench.contenders import BASELINE, CEILING, CONTENDERS
from bench.contenders._common import MEAN, STD, TORCHVISION_RECIPES
from bench.processes import run_for_line

TIMEOUT_S = 900


def call(name: str, *arguments: str) -> dict[str, Any]:
    """Runs one job of one contender in a process; returns its line of JSON, or `failed` with its last line of
    output."""
    contender = CONTENDERS[name]
    command = [sys.executable, "-m", f"bench.contenders.{contender.module}", "--variant", contender.variant]
    found = run_for_line([*command, *arguments], TIMEOUT_S, '{"name"')
    if found.keys() == {"failed"}:
        found["failed"] = _without_paths(found["failed"])
    return {**found, "name": name}


def _without_paths(text: str) -> str:
    """Removes this machine's folders, which mean nothing to a reader of the results."""
    return text.replace(str(datasets.REPOSITORY), ".").replace(sys.prefix, "$VENV")


def _job(dataset: datasets.Dataset, recipe: str, cores: int) -> list[str]:
    size = str(dataset.batch_size)
    return ["--root", str(dataset.root), "--recipe", recipe, "--cores", str(cores), "--batch-size", size]


def _why_not(answer: Mapping[str, Any]) -> str:
    """The reason for a missing figure: the recipe, a failed import, or an exception."""
    return _without_paths(str(answer.get("unsupported") or answer.get("missing") or answer.get("failed")))


def probe(names: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The versions of installed contenders, and the reasons why the others are missing."""
    versions, missing = {}, {}
    for name in names:
        answer = call(name, "--probe")
        if "versions" in answer:
            versions[name] = answer["versions"]
        else:
            missing[name] = _why_not(answer)
            print(f"{name}: not installed ({missing[name]})")
    return versions, missing


def verify(sets: Sequence[datasets.Dataset], recipes: Sequence[str], cores: int) -> list[dict[str, Any]]:
    """Verifies headrace with its oracle on every data set and recipe that will be timed; exits on a difference."""
    checks = []
    for dataset in sets:
        for recipe in recipes:
            answer = call("headrace", "--verify", *_job(dataset, recipe, cores))
            where = f"{dataset.name}, {recipe}"
            if "verified" not in answer:
                raise SystemExit(f"headrace does not equal its reference on {where}: {answer}")
            print(f"headrace equals torchvision + Pillow on {where}: {answer['verified']}")
            checks.append({"dataset": dataset.name, "recipe": recipe, "report": answer["verified"]})
    return checks


def compare_pixels(names: Sequence[str], cores: int) -> dict[str, Any]:
    """The differences of every contender's pixels from torchvision's on Pillow images."""
    import numpy as np

    root = datasets.pixel_tree()
    mean, std = np.reshape(MEAN, (1, 3, 1, 1)), np.reshape(STD, (1, 3, 1, 1))

    def levels(name: str, folder: str) -> Any:
        path = Path(folder) / f"{name}.npy"
        answer = call(name, "--pixels", str(path), "--root", str(root), "--cores", str(cores))
        if "images" not in answer:
            print(f"{name}: no pixels ({_why_not(answer)})")
            return None
        images = np.load(path)
        path.unlink()
        return 255 * (images.astype(np.float64) * std + mean)

    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        truth = levels(BASELINE, folder)
        for name in names:
            mine = levels(name, folder) if name not in (BASELINE, CEILING) else None
            if mine is None or mine.shape != truth.shape:
                continue
            difference = np.abs(mine - truth)
            # 1e-3 of a grey level is float32's rounding in the normalisation, not a difference between bytes.
            difference[difference < 1e-3] = 0
            rows[name] = {
                "mean": float(difference.mean()),
                "max": float(difference.max()),
                "share_over_1": float((difference > 1 + 1e-3).mean()),
            }
            mean_, max_ = rows[name]["mean"], rows[name]["max"]
            print(f"{name}: pixels differ by {mean_:.3g} on average, by {max_:.4g} at most")
    return rows


def time_rounds(result: dict[str, Any], sets: Sequence[datasets.Dataset], out: Path) -> None:
    """Times every combination, round by round: A B C A B C ...; saves after every round."""
    options = result["options"]
    names = [name for name in options["contenders"] if name not in result["missing"]]
    places = list(product(sets, options["recipes"], options["cores"]))
    unsupported: set[tuple[str, str]] = set()
    for k in range(options["rounds"]):
        for (dataset, recipe, cores), name in product(places, names):
            if (name, recipe) in unsupported:
                continue
            answer = call(name, "--seconds", str(options["seconds"]), *_job(dataset, recipe, cores))
            answer.pop("versions", None)
            if "libjpeg_turbo" in answer:  # known only after a run
                result["versions"][name]["libjpeg-turbo"] = answer.pop("libjpeg_turbo")
            if "unsupported" in answer:
                unsupported.add((name, recipe))
                _note(result, f"{name} has no {recipe} recipe: {answer['unsupported']}")
                continue
            place = {"round": k, "dataset": dataset.name, "recipe": recipe, "cores": cores}
            result["figures"].append(place | answer)
            _say(result, result["figures"][-1])
        result["rounds_done"] = k + 1
        save(result, out)


def _say(result: dict[str, Any], figure: Mapping[str, Any]) -> None:
    name, cores = figure["name"], figure["cores"]
    where = f"{figure['dataset']}, {figure['recipe']}, {cores} core{'s' * (cores > 1)}"
    if "images" not in figure:
        _note(result, f"{name} failed on {where}: {_why_not(figure)}")
        return
    rate = figure["images"] / figure["seconds"]
    print(f"round {figure['round'] + 1}  {where:<30} {name:<17} {rate:9,.1f} images/s")
    if figure.get("equal_to_pillow") is False:
        _note(result, f"the ceiling's crops of {where} are not Pillow's to the byte")
    if figure.get("undecoded"):
        _note(result, f"the ceiling could not decode {figure['undecoded']} crops of {where}")


def _note(result: dict[str, Any], text: str) -> None:
    if text not in result["notes"]:
        result["notes"].append(text)
        print(f"note: {text}")


def save(result: dict[str, Any], out: Path) -> None:
    """Writes JSON, the table next to it and, if matplotlib is installed, the plot."""
    result["summary"] = report.summarise(result["figures"])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    out.with_suffix(".md").write_text(report.markdown(result))
    try:
        from bench import plot
    except ImportError as error:
        print(f"no plot: {error}")
    else:
        plot.draw(result, out.with_suffix(".png"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="NAME.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--recipes", nargs="+", default=["train", "eval"], choices=TORCHVISION_RECIPES)
    parser.add_argument("--datasets", nargs="+", default=list(datasets.NAMES), choices=datasets.NAMES)
    default = [name for name, contender in CONTENDERS.items() if contender.by_default]
    parser.add_argument("--contenders", nargs="+", default=default, choices=list(CONTENDERS))
    parser.add_argument("--no-pixels", action="store_true", help="leave out the comparison of pixels")
    args = parser.parse_args()

    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)  # so that a log file shows the progress
    sets = datasets.lay_out(args.datasets)
    versions, missing = probe(args.contenders)
    names = [name for name in args.contenders if name not in missing]
    for dataset in sets:
        for name in names:
            for recipe in args.recipes:
                call(name, "--prepare", "--root", str(dataset.root), "--recipe", recipe)
    checks = verify(sets, args.recipes, max(args.cores)) if "headrace" in names else []
    pixels = {} if args.no_pixels else compare_pixels(names, max(args.cores))
    result: dict[str, Any] = {
        "machine": machine.describe(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "options": {
            "rounds": args.rounds,
            "seconds": args.seconds,
            "cores": args.cores,
            "recipes": args.recipes,
            "contenders": args.contenders,
        },
        "datasets": [{"name": d.name, "about": d.about, "batch_size": d.batch_size} for d in sets],
        "versions": versions,
        "missing": missing,
        "verified": checks,
        "pixels": pixels,
        "notes": [],
        "rounds_done": 0,
        "figures": [],
    }
    time_rounds(result, sets, args.out)
    print("\n" + report.markdown(result))


if __name__ == "__main__":
    main()

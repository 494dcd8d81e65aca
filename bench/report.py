"""Turns the raw figures of a run into medians, ratios and a markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from bench.contenders import BASELINE, CEILING, CONTENDERS

RECIPES = {
    "train": "RandomResizedCrop(224) + horizontal flip + normalise",
    "eval": "Resize(256) + CenterCrop(224) + normalise",
    "jitter": "RandomResizedCrop(224) + horizontal flip + ColorJitter(0.4, 0.4, 0.4, 0.1) + normalise",
    "randaugment": "RandomResizedCrop(224) + horizontal flip + RandAugment + normalise",
    "trivialaugment": "RandomResizedCrop(224) + horizontal flip + TrivialAugmentWide + normalise",
    "rotation": "RandomResizedCrop(224) + horizontal flip + RandomRotation(30) + normalise",
    "perspective": "RandomResizedCrop(224) + horizontal flip + RandomPerspective + normalise",
    "python": "RandomResizedCrop(224) + horizontal flip + RandAugment in a Lambda + normalise",
    "reference": "RandomResizedCrop(224) + horizontal flip + normalise + RandomErasing(0.1)",
    "timm": "timm's training transforms, rand-m9-mstd0.5-inc1, RandomErasing of random pixels at 0.25",
}


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    values = list(values)
    return {"median": median(values), "min": min(values), "max": max(values)}


def summarise(figures: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for every data set, recipe, number of cores and contender, in the order they were measured.

    A ratio is taken within each round, where both were measured within a minute or two, and only then the
    median over the rounds: a machine that slows down for one round moves both, and leaves the ratio alone.
    """
    rates: dict[tuple[str, str, int, str], dict[int, float]] = {}
    for figure in figures:
        if "images" in figure:
            key = (figure["dataset"], figure["recipe"], figure["cores"], figure["name"])
            rates.setdefault(key, {})[figure["round"]] = figure["images"] / figure["seconds"]
    rows = []
    for (dataset, recipe, cores, name), by_round in rates.items():
        row: dict[str, Any] = {"dataset": dataset, "recipe": recipe, "cores": cores, "name": name}
        row["images_per_s"] = spread(by_round.values())
        for column, other in (("to_torch", BASELINE), ("to_ceiling", CEILING)):
            base = rates.get((dataset, recipe, cores, other), {})
            ratios = [rate / base[k] for k, rate in by_round.items() if k in base]
            row[column] = spread(ratios) if ratios else None
        rows.append(row)
    return rows


def _cells(row: Mapping[str, Any] | None) -> list[str]:
    if row is None:
        return ["-", "-", "-"]
    rate = row["images_per_s"]
    cells = [f"{rate['median']:,.0f} ({rate['min']:,.0f}-{rate['max']:,.0f})"]
    for column in ("to_torch", "to_ceiling"):
        ratio = row[column]
        cells.append(f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})" if ratio else "-")
    return cells


def conditions(result: Mapping[str, Any]) -> str:
    """One line under a table or a title: the conditions of the measurement."""
    machine, options = result["machine"], result["options"]
    return (
        f"{machine['cpu']}, {machine['usable_cpus']} CPUs, Linux {machine['kernel']}; {result['date'][:10]}; "
        f"{result['rounds_done']} round(s) of {options['seconds']:g} s, contenders interleaved, "
        "page cache warm; median (least-greatest)"
    )


def _pixel_table(pixels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [
        "### Pixels",
        "",
        "The whole image to 224x224 against torchvision on Pillow, in grey levels of 255.",
        "",
        "| contender | mean difference | greatest | off by more than 1 |",
        "|---|---|---|---|",
    ]
    for name, row in pixels.items():
        label = CONTENDERS[name].label
        lines.append(f"| {label} | {row['mean']:.3g} | {row['max']:.4g} | {100 * row['share_over_1']:.3g}% |")
    return [*lines, ""]


def title(result: Mapping[str, Any]) -> str:
    """What was measured, and where."""
    return f"From JPEG files to batches: {result['machine']['cpu']}"


def verdict(result: Mapping[str, Any]) -> str:
    """One sentence in plain words: the first recipe on the fewest cores, and the range of headrace's ratios."""
    ours = [row for row in result["summary"] if row["name"] == "headrace"]
    if not ours:
        return "headrace was not among the loaders of this run."
    first = min(ours, key=lambda row: row["cores"])
    cores = "one core" if first["cores"] == 1 else f"{first['cores']} cores"
    sentence = f"On {cores} headrace makes {first['images_per_s']['median']:,.0f} images a second"
    ratios = [row["to_torch"] for row in ours if row["to_torch"]]
    if first["to_torch"]:
        ratio = first["to_torch"]
        times = f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})"
        sentence += f", {times} times as many as torch's DataLoader"
    if len(ratios) > 1:
        medians = [ratio["median"] for ratio in ratios]
        sentence += f"; over all recipes, files and cores here the ratio is {min(medians):.2f} to {max(medians):.2f}"
    return sentence + "."


def markdown(result: Mapping[str, Any]) -> str:
    """The whole report of a run."""
    rows = {(r["dataset"], r["recipe"], r["cores"], r["name"]): r for r in result["summary"]}
    cores = result["options"]["cores"]
    lines = [f"# {title(result)}", "", verdict(result), ""]
    lines += ["## Images per second, JPEG files to float32 NCHW batches", "", conditions(result), ""]
    for dataset in result["datasets"]:
        for recipe in result["options"]["recipes"]:
            lines += [f"### {dataset['name']}, {recipe}: {RECIPES[recipe]}", ""]
            lines += [f"{dataset['about']}; batches of {dataset['batch_size']}.", ""]
            columns = [f"{n} core{'s' * (n > 1)}: images/s | to torch | to ceiling" for n in cores]
            lines += [f"| contender | {' | '.join(columns)} |", "|---" * (1 + 3 * len(cores)) + "|"]
            for name in result["options"]["contenders"]:
                label = CONTENDERS[name].label
                if name in result["missing"]:
                    lines.append(f"| {label} | not installed |" + " |" * (3 * len(cores) - 1))
                    continue
                cells = [cell for n in cores for cell in _cells(rows.get((dataset["name"], recipe, n, name)))]
                lines.append(f"| {label} | {' | '.join(cells)} |")
            lines.append("")
    if result["pixels"]:
        lines += _pixel_table(result["pixels"])
    if result["notes"]:
        lines += ["### Notes", "", *(f"- {note}" for note in result["notes"]), ""]
    lines += ["### Versions", ""]
    by_module = {CONTENDERS[name].module: versions for name, versions in result["versions"].items()}
    for name, versions in by_module.items():
        lines.append(f"- {name}: " + ", ".join(f"{key} {value}" for key, value in versions.items()))
    return "\n".join(lines) + "\n"

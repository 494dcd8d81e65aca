"""Times loaders on the user's dataset: equality first, then rounds in turn; table, JSON, Markdown and PNG."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace._base.cores import usable_cores
from headrace._base.exceptions import name_of, words_of
from headrace._base.text import printable
from headrace._cli.bench import plot, result_tables, sample_choice
from headrace._cli.bench.equality import DifferentError, check
from headrace._cli.bench.loaders import contenders
from headrace._cli.bench.result import Result
from headrace._cli.bench.rounds import Rounds
from headrace._cli.bench.sample_choice import UnusableError
from headrace._cli.commands.inputs import GivenError, check_writable, dataset_of, set_recipe
from headrace._reports.loader import machine

_CHECKED = 4  # batches
_ONE_CORE = "This process may use one core: workers and the consumer share it, so more workers would gain nothing."


@dataclass(frozen=True)
class Plan:
    """What is measured; see the command's options. None: the command chooses."""

    workers: list[int] | None
    batch_size: int
    rounds: int
    seconds: float
    samples: int | None
    recipe: str | None


@dataclass(frozen=True)
class Files:
    """Where the result is written; None: nowhere."""

    json: Path | None
    markdown: Path | None
    png: Path | None

    def check(self) -> None:
        """Raises GivenError if a file cannot be written."""
        for path in (self.json, self.markdown, self.png):
            check_writable(path)
        if self.png is not None and not plot.available():
            raise GivenError("--png needs matplotlib: pip install matplotlib")

    def write(self, result: Result) -> None:
        if self.json is not None:
            self.json.write_text(json.dumps(result.as_dict(), indent=1) + "\n")
        if self.markdown is not None:
            self.markdown.write_text(printable(result_tables.markdown(result)), encoding="utf-8")
        if self.png is not None:
            plot.save(result, self.png)


def run(text: str, plan: Plan, files: Files) -> int:
    """Measures, prints the table and writes the files.

    Returns:
        The exit status: 0 measured, 1 the batches differ or cannot be made, 2 an argument is unusable, 130 interrupted;
        what was measured before an interrupt is printed and written.
    """
    try:
        files.check()
        dataset = dataset_of(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files, torch's about workers beyond the cores
            result = _compared(text, dataset, plan)
    except GivenError as error:
        print(f"headrace bench: {error}", file=sys.stderr)
        return 2
    except (UnusableError, DifferentError) as error:
        print(f"headrace bench: {error}", file=sys.stderr)
        return 1
    if not result.series:
        print("headrace bench: interrupted before the first round; nothing was measured", file=sys.stderr)
        return 130
    print(result_tables.terminal(result))
    files.write(result)
    return 130 if result.interrupted else 0


def _compared(text: str, dataset: Any, plan: Plan) -> Result:
    recipe = set_recipe(dataset, plan.recipe)
    workers = list(dict.fromkeys(plan.workers or [usable_cores()]))
    try:
        chosen, errors, equality = _checked(dataset, plan, max(workers))
    except (UnusableError, DifferentError):
        raise
    except Exception as error:  # of the dataset's own code or of its transforms
        why = (words_of(error).strip().splitlines() or [""])[0]
        raise UnusableError(f"a sample cannot be made: {name_of(error)}: {why}") from error
    found = contenders()
    kind = type(dataset).__name__
    result = Result(text, kind, len(dataset), len(chosen), recipe, plan.batch_size, equality, machine.describe())
    if errors:
        left_out = "1 sample that cannot be decoded is left out"
        if len(errors) > 1:
            left_out = f"{len(errors)} samples that cannot be decoded are left out; the first"
        first = f"{errors[0].location}: {errors[0].reason}"
        result.notes.append(f"{left_out}: {first}. headrace doctor DATASET lists them.")
    if usable_cores() == 1:
        result.notes.append(_ONE_CORE)
    if (busy := machine.busy()) is not None:
        result.notes.append(busy)
    Rounds(result, chosen, found, seconds=plan.seconds, shown=sys.stderr.isatty()).run(workers, plan.rounds)
    return result


def _checked(dataset: Any, plan: Plan, workers: int) -> tuple[Any, list[Any], str]:
    """Returns the samples to time, the errors of those that cannot be made, and what was compared."""
    if not len(dataset):
        raise UnusableError("the dataset is empty")
    number = plan.samples
    if number is None:
        number = sample_choice.number_of(sample_choice.speed_of(dataset), workers, plan.seconds, plan.batch_size)
    chosen, errors = sample_choice.readable(sample_choice.chosen(dataset, number), plan.batch_size, workers)
    return chosen, errors, check(chosen, plan.batch_size, workers, _CHECKED)

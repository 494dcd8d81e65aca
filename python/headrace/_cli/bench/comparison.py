"""Compares loaders on one dataset: equality first, then rounds in turn."""

from __future__ import annotations

import argparse
from typing import Any

from headrace._base.cores import usable_cores
from headrace._base.errors import SampleError
from headrace._base.safe_exceptions import message_of, type_name_of
from headrace._cli.bench import sample_choice
from headrace._cli.bench.equality import DifferentError, check_equal_batches
from headrace._cli.bench.loaders import list_contenders
from headrace._cli.bench.result import Result
from headrace._cli.bench.rounds import Rounds
from headrace._cli.bench.sample_choice import UnusableError
from headrace._cli.inputs import set_recipe
from headrace._reports.loader import machine

_CHECKED = 4  # batches
_ONE_CORE = "This process may use one core: workers and the consumer share it, so more workers would gain nothing."


def compare_loaders(dataset: Any, args: argparse.Namespace) -> Result:
    """Returns what the rounds measured, some of them if the user interrupts.

    Raises:
        GivenError: the dataset does not take the recipe.
        DifferentError: batches differ.
        UnusableError: samples cannot be made.
    """
    recipe = set_recipe(dataset, args.recipe)
    workers = list(dict.fromkeys(args.workers or [usable_cores()]))
    try:
        chosen, errors, equality = _choose_samples(dataset, args, max(workers))
    except (UnusableError, DifferentError):
        raise
    except Exception as error:  # of the dataset's own code or of its transforms
        why = (message_of(error).strip().splitlines() or [""])[0]
        raise UnusableError(f"a sample cannot be made: {type_name_of(error)}: {why}") from error
    found = list_contenders()
    kind = type(dataset).__name__
    result = Result(
        args.dataset, kind, len(dataset), len(chosen), recipe, args.batch_size, equality, machine.describe_machine()
    )
    if errors:
        left_out = "1 sample that cannot be decoded is left out"
        if len(errors) > 1:
            left_out = f"{len(errors)} samples that cannot be decoded are left out; the first"
        first = f"{errors[0].location}: {errors[0].reason}"
        result.notes.append(f"{left_out}: {first}. headrace doctor DATASET --bad - lists them.")
    if usable_cores() == 1:
        result.notes.append(_ONE_CORE)
    if (busy := machine.warning_if_busy()) is not None:
        result.notes.append(busy)
    Rounds(result, chosen, found, seconds=args.seconds).run(workers, args.rounds)
    return result


def _choose_samples(dataset: Any, args: argparse.Namespace, workers: int) -> tuple[Any, list[SampleError], str]:
    """Returns the samples to time, the errors of those that cannot be made, and what was compared."""
    if not len(dataset):
        raise UnusableError("the dataset is empty")
    number = args.samples
    if number is None:
        number = sample_choice.number_of_samples(
            sample_choice.measure_python_speed(dataset), workers, args.seconds, args.batch_size
        )
    chosen, errors = sample_choice.drop_unreadable_samples(
        sample_choice.choose_samples(dataset, number), args.batch_size, workers
    )
    return chosen, errors, check_equal_batches(chosen, args.batch_size, workers, _CHECKED)

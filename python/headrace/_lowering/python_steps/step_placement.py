"""Decides where the Python code of a native route may be called: in threads, in the order of the samples, or by torch.

Threads share out the samples by timing, and each has copies of the steps. Code whose results follow from its earlier
calls, or from generators that it shares with the program, would give other batches in each run.

Threads also wait for each other while a step holds the interpreter. So however many there are, they call at most one
step at a time, and from some number on torch's own loader, whose workers have an interpreter each, would be faster. The
decision follows from the program alone, never from a measurement: the random numbers of the two routes differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import headrace._recipe.steps.steps as S
from headrace._base.native import has_gil
from headrace._base.types import Function
from headrace._lowering.python_steps.bytecode_analysis import Reach
from headrace._lowering.python_steps.short_steps import is_short
from headrace._lowering.python_steps.step_state import Kept
from headrace._recipe.draws.transform_reseeding import without_reseeding
from headrace._recipe.steps.recipe import Recipe

#: The most threads that call Python steps; see docs/decisions/0068 for the measurement.
MOST_THREADS = 3
_SEED = "with seed= its generators are seeded for each sample, in threads"


@dataclass(frozen=True)
class PythonEffects:
    """What the Python code of a route does beyond its samples; each a clause, or "" if it does not.

    Attributes:
        steps: the transforms that run in Python.
        labels: the functions of labels.
        coupled: how a function of labels, or a step of another field, sees what a step changes.
        state: how results of steps and of functions of labels follow from earlier calls.
        collated: the same of the collate_fn.
        generators: which step draws from a generator that it holds.
        drawn: how a function of labels draws random numbers, or asks for its worker.
        process_wide: whether a step may draw from generators of the process.
    """

    steps: tuple[object, ...]
    labels: tuple[object, ...] = ()
    coupled: str = ""
    state: str = ""
    collated: str = ""
    generators: str = ""
    drawn: str = ""
    process_wide: bool = False

    @classmethod
    def of(cls, parts: Sequence[tuple[Recipe, object]], collate_fn: Function | None) -> PythonEffects:
        """Returns that of the recipes and sources of a sample's images.

        Args:
            collate_fn: the user's; None: torch's default.
        """
        fields = [_drop_duplicates(list(_list_callees(recipe))) for recipe, _ in parts]
        labels = _drop_duplicates([one for _, source in parts for one in label_functions(source)])
        steps = _drop_duplicates([one for field in fields for one in field])
        if not steps and not labels and collate_fn is None:
            return cls(())
        functions = [*steps, *labels, *([] if collate_fn is None else [collate_fn])]
        kept = Kept(functions)
        number = {id(one): place for place, one in enumerate(functions)}
        of_steps, of_labels = [number[id(one)] for one in steps], [number[id(one)] for one in labels]
        of_collate = [] if collate_fn is None else [len(functions) - 1]
        coupled = kept.describe_sharing(of_steps, of_labels)
        for place, field in enumerate(fields):
            others = [number[id(one)] for other in fields[place + 1 :] for one in other]
            coupled = coupled or kept.describe_sharing([number[id(one)] for one in field], others)
        drawn = next((why for one in labels if (why := _explain_draws(one, kept.draws(number[id(one)])))), "")
        return cls(
            tuple(steps),
            tuple(labels),
            coupled,
            kept.state([*of_steps, *of_labels]) or kept.describe_sharing([*of_steps, *of_labels], of_collate),
            kept.state(of_collate) or kept.generators(of_collate),
            kept.generators([*of_steps, *of_labels]),
            drawn,
            any(call.process_wide for recipe, _ in parts for call in _calls_of_recipe(recipe)),
        )

    def refusal(self, dataset: object, num_workers: object, seed: int | None, *, bound: bool) -> str | None:
        """Returns why torch's loader has to call this code; None if headrace may.

        Args:
            num_workers: the loader's argument; None if it is chosen while the loader works.
            seed: the loader's argument, with which batches do not depend on `num_workers`.
            bound: whether torch's loader cannot deliver, or would deliver something else: another argument asks for the
                native path, or torch's workers would share out the dataset's samples in another way.
        """
        if self.coupled:
            return f"{self.coupled}, so a label, or another field, follows from the calls for its own sample"
        if self.drawn:
            return self.drawn
        ours = any(one.__module__.startswith("headrace.") for one in type(dataset).__mro__)
        workers = num_workers is None or not (type(num_workers) is int and num_workers == 0)
        if seed is None and not bound and not workers and (why := self._order_of_calls(ours=ours)):
            return f"{why}, and torch makes no further sample of a batch after one has failed"
        if seed is None and not bound and workers:
            if why := self.state or self.collated:
                return f"{why}, and each of torch's worker processes has a copy of its own"
            if self.generators:
                return f"{self.generators}, and each of torch's worker processes has a copy of its own; {_SEED}"
        overlaps = type(num_workers) is int and num_workers > 0
        if self.process_wide and not bound and not ours and (seed is not None or overlaps):
            return (
                f"{_join_names(self.steps)} may draw from generators of the process (random, numpy.random), which the "
                "training step draws from, too; worker processes have generators of their own"
            )
        if seed is None and not bound:
            return _explain_processes(list(self.steps), dataset, num_workers)
        return None

    def _order_of_calls(self, *, ours: bool) -> str:
        """Why a batch that fails at one sample must not have made the samples after it, as a clause; "" if it may.

        Args:
            ours: whether the dataset is of headrace's own classes.
        """
        draws = self.process_wide and (self.labels or not ours)
        drawn = f"{_join_names(self.steps)} may draw from generators of the process" if draws else ""
        return self.state or self.generators or drawn

    @property
    def in_order(self) -> str:
        """Why threads may not call the code, as a clause; "" if they may."""
        return self.state


def label_functions(source: object) -> Iterator[object]:
    """Yields the functions that a source calls on its labels."""
    for part in getattr(source, "parts", None) or (getattr(source, "base", None),):
        if part is not None:
            yield from label_functions(part)
    if callable(function := getattr(source, "target_transform", None)):
        yield function


def _calls_of_recipe(recipe: Recipe) -> list[S.Call]:
    return [call for one in recipe.views or (recipe,) for call in one.calls]


def _list_callees(recipe: Recipe) -> Iterator[object]:
    """Yields the user's objects that a recipe calls."""
    for call in _calls_of_recipe(recipe):
        yield from map(without_reseeding, call.function.called)


def _drop_duplicates(objects: Sequence[object]) -> list[object]:
    return list({id(one): one for one in objects}.values())


def _explain_draws(function: object, from_torch: bool) -> str:
    reach = Reach(function)
    if reach.draws or from_torch:
        return (
            f"{_join_names([function])}, which makes labels, may draw random numbers, which torch draws in its workers"
        )
    return (
        f"{_join_names([function])}, which makes labels, asks for its worker process" if reach.asks_for_worker else ""
    )


def _join_names(objects: Sequence[object]) -> str:
    return ", ".join(dict.fromkeys(getattr(one, "__qualname__", type(one).__qualname__) for one in objects))


def _explain_processes(steps: Sequence[object], dataset: object, num_workers: object) -> str | None:
    """Returns why torch's worker processes are to call a recipe's Python steps; None if threads are to call them.

    Threads call those of a dataset of headrace's own, or of a class derived from one: it was chosen for them.

    Args:
        steps: the transforms without a native implementation.
        num_workers: the loader's argument; None if it is chosen while the loader works.
    """
    if type(num_workers) is not int or num_workers <= MOST_THREADS or not has_gil():
        return None
    long = [step for step in steps if not is_short(step)]
    if not long or any(one.__module__.startswith("headrace.") for one in type(dataset).__mro__):
        return None
    names = ", ".join(dict.fromkeys(getattr(step, "__qualname__", type(step).__qualname__) for step in long))
    return (
        f"{names} would run in Python, where {num_workers} threads wait for one interpreter, and worker processes have "
        "one each; seed= makes batches that do not depend on num_workers, in threads"
    )

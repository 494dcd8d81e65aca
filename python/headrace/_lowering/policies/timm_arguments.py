"""The arguments of timm's operations: constants for each sign, or columns computed from drawn magnitudes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._recipe.draws.policy_arguments import arguments_of_operation, has_sign
from headrace._recipe.steps.draw_columns import AnyColumn, Column, Magnitude, Normal, PolicyNumber, WarpNumber

# Rule of an argument -> rule of the three numbers after it.
_FOLLOWED = {"angle": "turn", "radius": "box", "any_radius": "box"}
_MOST = 10.0  # of magnitudes, unless an operation says otherwise


class Operation(Protocol):
    """timm's AugmentOp."""

    name: str
    prob: float
    magnitude: float
    magnitude_std: float
    magnitude_max: float | None
    hparams: Mapping[str, float]
    kwargs: Mapping[str, Any]


class Arguments:
    """Gives the arguments of operations of which at most one is done: they share draws.

    Args:
        builder: gets the columns.
        way: column, uniform in [0, 1), that chooses among the ways of an operation; the first half has negative signs.

    Attributes:
        among: the column that chooses the operation whose argument is wanted, and its bounds (low, high) for it.
    """

    def __init__(self, builder: Builder, way: int) -> None:
        self._builder = builder
        self._way = way
        self._columns: dict[AnyColumn, int] = {}
        self.among = (way, 0.0, 1.0)

    def make_argument(self, operation: Operation, rule: str, *constants: float) -> list[S.Constant] | int:
        """Returns one argument for each sign if the magnitude is constant, otherwise the column of the argument.

        Args:
            operation: timm's AugmentOp.
            rule, constants: those of `policy_arguments.arguments_of_operation`.
        """
        mean, std, most = (
            float(one) for one in (operation.magnitude, operation.magnitude_std, _largest_magnitude(operation))
        )
        if std <= 0 and rule == "any_radius":  # drawn for any magnitude, a constant one too
            return self._add_policy_number(rule, Magnitude(self._way, mean, 0.0, most), constants)
        if std <= 0:
            level = max(0.0, min(mean, most))
            ways = (0.25, 0.75) if has_sign(rule) else (0.5,)
            return [S.Constant(float(arguments_of_operation(rule, level, way, constants))) for way in ways]
        if not math.isfinite(mean + most) or math.isnan(std):
            self._builder.refuse(f"draws magnitudes around {mean} up to {most}, which are not finite")
        uniform = Column() if math.isinf(std) else Normal()
        return self._add_policy_number(rule, Magnitude(self._add_column(uniform), mean, std, most), constants)

    def _add_policy_number(self, rule: str, magnitude: Magnitude, constants: tuple[float, ...]) -> int:
        among = self.among if rule in _FOLLOWED else None  # what follows takes long
        return self._add_column(PolicyNumber(rule, magnitude, self._way, constants, among))

    def _add_column(self, column: AnyColumn) -> int:
        """Returns the number of a column, which is appended the first time, with the numbers that follow from it."""
        if column not in self._columns:
            at = self._columns[column] = self._builder.draw(column)
            if isinstance(column, PolicyNumber) and column.rule in _FOLLOWED:
                self._builder.draw(*[WarpNumber(_FOLLOWED[column.rule], at, at + 1, 3)] * 3)
        return self._columns[column]


def _largest_magnitude(operation: Operation) -> float:
    return float(operation.magnitude_max or _MOST)

"""Which of several settings is fast enough to be recommended, from speeds that were measured in rounds, in spite of
noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headrace._loading.autotune.tuner import Choice

_NEAR = math.log(1.03)  # of settings that come this close to the fastest, the smallest is taken
_REFUTES = math.log(1.05)  # a setting that is faster by as much would refute the recommendation
LEAST_ROUNDS = 3  #: before a recommendation
_LEAST_OF_A_RIVAL = 2  # rounds: another program may slow one measurement to less than half
_ERRORS = 2.0  # standard errors
_MOST_DEVIATION = 0.08  # where ratios vary more from round to round, other programs decide
# How much the logarithm of two speeds' ratio varies from round to round, before anything is known: as if it had varied
# by 0.03 in two rounds.
_SQUARES, _FREEDOM = 2 * 0.03**2, 2


class Race:
    """Speeds of settings, one round after another. Two settings are compared by the rounds that have both.

    Attributes:
        rounds: the logarithm of the speed of each setting that was measured in a round.
    """

    def __init__(self) -> None:
        self.rounds: list[dict[Choice, float]] = []

    def add_round(self, speeds: Mapping[Choice, float]) -> None:
        """Adds one round: samples a second of each setting; 0: it delivered nothing."""
        self.rounds.append({one: math.log(speed) for one, speed in speeds.items() if speed > 0})

    @property
    def is_decided(self) -> bool:
        """Whether no other setting may be 5% faster than `target`, which was measured in three rounds at least."""
        target = self.target
        if target is None or sum(target in one for one in self.rounds) < LEAST_ROUNDS:
            return False
        return not self.rivals() and self._deviation() < _MOST_DEVIATION

    @property
    def target(self) -> Choice | None:
        """The setting to recommend if it withstands the others: the one with the fewest threads, then batches, that
        comes within 3% of the fastest; None: nothing was measured."""
        fastest = self._find_fastest()
        if fastest is None:
            return None
        return min(one for one in self._settings() if self._gain(one, fastest) >= -_NEAR)

    def rivals(self) -> list[Choice]:
        """Returns the settings that may be 5% faster than `target`, the most promising first."""
        target = self.target
        if target is None:
            return []
        bounds = {one: self._gain(one, target) + self._error(one, target) for one in self._settings() if one != target}
        return sorted((one for one, most in bounds.items() if most >= _REFUTES), key=lambda one: -bounds[one])

    def may_gain(self, choice: Choice) -> float:
        """Returns how many times as fast as `target` a setting may be."""
        target = self.target
        return 1.0 if target is None else math.exp(self._gain(choice, target) + self._error(choice, target))

    def _settings(self) -> list[Choice]:
        return sorted({one for speeds in self.rounds for one in speeds})

    def _find_fastest(self) -> Choice | None:
        """Returns the setting that no other one is faster than, in the rounds that have both."""
        settings = self._settings()
        best = settings[0] if settings else None
        for one in settings[1:]:
            if best is not None and self._gain(one, best) > 0:
                best = one
        return best

    def _differences(self, choice: Choice, other: Choice) -> list[float]:
        return [one[choice] - one[other] for one in self.rounds if choice in one and other in one]

    def _gain(self, choice: Choice, other: Choice) -> float:
        """Returns the logarithm of the speeds' ratio, as their common rounds have it."""
        found = self._differences(choice, other)
        return sum(found) / len(found) if found else 0.0

    def _error(self, choice: Choice, other: Choice) -> float:
        found = len(self._differences(choice, other))
        return math.inf if found < _LEAST_OF_A_RIVAL else _ERRORS * self._deviation() / math.sqrt(found)

    def _deviation(self) -> float:
        """Returns the standard deviation of a ratio's logarithm from round to round, pooled over all settings."""
        squares, freedom = _SQUARES, float(_FREEDOM)
        target = self.target
        if target is not None:
            for one in self._settings():
                found = self._differences(one, target) if one != target else []
                if len(found) > 1:
                    mean = sum(found) / len(found)
                    squares += sum((value - mean) ** 2 for value in found)
                    freedom += len(found) - 1
        return math.sqrt(squares / freedom)

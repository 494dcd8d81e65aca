"""Which of several settings is fast enough to be recommended, from speeds that were measured in rounds, in spite of
noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from headrace._loading.autotune.tuner import Choice

_NEAR = math.log(1.03)  # of settings that come this close to the fastest, the smallest is taken
_REFUTES = math.log(1.05)  # a setting that is faster by as much would refute the recommendation
LEAST_ROUNDS = 3  #: before a recommendation
_LEAST_OF_A_RIVAL = 3  # rounds: another program may slow one measurement to less than half
_ERRORS = 3.0  # standard errors, of few rounds and many settings
_MOST_DEVIATION = 0.08  # where ratios vary more from round to round, other programs decide
_MOST_CHANGE = 0.06  # the same of the logarithm of the target's own speed: other programs begin and end
_CHALLENGERS = 2
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
        """Whether a setting can be recommended."""
        return self.recommended is not None

    @property
    def recommended(self) -> Choice | None:
        """The smallest of the settings near the fastest that no other one may be 5% faster than, and that was measured
        in three rounds at least; None: there is none, or speeds vary."""
        if not self.is_steady:
            return None
        found = (
            one
            for one in self._near_fastest()
            if sum(one in speeds for speeds in self.rounds) >= LEAST_ROUNDS and not self._rivals_of(one)
        )
        return next(found, None)

    @property
    def is_steady(self) -> bool:
        """Whether speeds and their ratios vary little from round to round."""
        target = self.target
        speeds = [one[target] for one in self.rounds if target in one] if target is not None else []
        return self._deviation() < _MOST_DEVIATION and (len(speeds) < 2 or statistics.stdev(speeds) < _MOST_CHANGE)

    @property
    def target(self) -> Choice | None:
        """The setting to recommend if it withstands the others: the one with the fewest threads, then batches, that
        comes within 3% of the fastest; None: nothing was measured."""
        return next(iter(self._near_fastest()), None)

    def _near_fastest(self) -> list[Choice]:
        fastest = self._find_fastest()
        return [] if fastest is None else [one for one in self._settings() if self._gain(one, fastest) >= -_NEAR]

    def rivals(self) -> list[Choice]:
        """Returns the settings that may be 5% faster than `target`, the most promising first."""
        target = self.target
        return [] if target is None else self._rivals_of(target)

    def _rivals_of(self, target: Choice) -> list[Choice]:
        bounds = {one: self._gain(one, target) + self._error(one, target) for one in self._settings() if one != target}
        return sorted((one for one, most in bounds.items() if most >= _REFUTES), key=lambda one: -bounds[one])

    def challengers(self) -> list[Choice]:
        """Returns a few settings to compare with `target` once more: of those that were measured least often the most
        promising."""
        target = self.target
        others = [one for one in self._settings() if one != target]
        counts = {one: sum(one in speeds for speeds in self.rounds) for one in others}
        return sorted(others, key=lambda one: (counts[one], -self.may_gain(one)))[:_CHALLENGERS]

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

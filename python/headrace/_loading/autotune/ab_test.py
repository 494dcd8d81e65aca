"""Two choices measured in turns, and whether the second one is faster, in spite of the noise of the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headrace._loading.bottleneck.batch_cost import Load

GAIN = 1.03  #: a smaller one is not worth a change
_WORTH = math.log(GAIN)
_MOST = 8  # pairs of turns; a gain that shows in none of them is not there, or not found in reasonable time
_REMEMBERED = 8  # pairs of earlier trials
_SURE, _ENOUGH = 2.0, 1.0  # standard errors that a gain is above nothing, and below what is worth a change
_LEAST_SPEED = 1e-9


@dataclass(frozen=True)
class Window:
    """What was measured while one choice was in force.

    Attributes:
        seconds: its length.
        load: the work of a batch in this time.
        waits: share of the time in which the consumer waited.
        made: samples that the threads made in a second.
        handed: batches that the consumer took in a second; 0: too few to tell.
    """

    seconds: float
    load: Load
    waits: float
    made: float
    handed: float = 0.0


@dataclass(frozen=True)
class Noise:
    """How much the logarithm of a pair's ratio varies from pair to pair.

    Attributes:
        squares: sum of the squared deviations from the mean.
        freedom: number of pairs that they tell as much as. The first values are a guess: two-core virtual machines show
            spreads of 0.02 to 0.15.
    """

    squares: float = 2 * 0.1**2
    freedom: float = 2.0

    def fade_noise(self) -> Noise:
        """Returns what counts in the next trial."""
        part = min(1.0, _REMEMBERED / self.freedom)
        return Noise(part * self.squares, part * self.freedom)


@dataclass
class Turns:
    """Windows of two choices, in the order before, after, after, before, before, ...: so a speed that drifts favours
    neither, and half of the changes are saved.

    Attributes:
        before, after: the windows of each, in the order of time. Windows of the same place are a pair.
        noise_before: of earlier trials.
    """

    before: list[Window]
    noise_before: Noise = field(default_factory=Noise)
    after: list[Window] = field(default_factory=list)

    @property
    def is_afters(self) -> bool:
        """Whether the next turn is that of the second choice."""
        if len(self.before) != len(self.after):
            return len(self.after) < len(self.before)
        return len(self.after) % 2 == 1

    @property
    def gain(self) -> float:
        """The ratio of the speeds, after to before: the geometric mean of the pairs. Speeds are of batches where every
        window has enough of them, otherwise of samples."""
        return math.exp(self._mean_log_ratio())

    @property
    def noise(self) -> Noise:
        """Of the earlier trials and this one."""
        ratios, mean = self._log_ratios(), self._mean_log_ratio()
        squares = sum((one - mean) ** 2 for one in ratios)
        return Noise(self.noise_before.squares + squares, self.noise_before.freedom + len(ratios) - 1)

    def verdict(self) -> bool | None:
        """Returns whether the second choice is to be kept; None: more turns are needed."""
        pairs = len(self.after)
        if not pairs or len(self.before) != pairs:
            return None
        mean, noise = self._mean_log_ratio(), self.noise
        error = math.sqrt(noise.squares / noise.freedom / pairs)
        if mean > _WORTH and mean > _SURE * error:
            return True
        if mean + _ENOUGH * error < _WORTH or pairs >= _MOST:
            return False
        return None

    def _mean_log_ratio(self) -> float:
        ratios = self._log_ratios()
        return sum(ratios) / len(ratios)

    def _log_ratios(self) -> list[float]:
        """Returns the logarithm of each pair's ratio."""
        by_batches = all(one.handed for one in (*self.before, *self.after))
        then, now = (
            [max(_LEAST_SPEED, one.handed if by_batches else one.made) for one in part]
            for part in (self.before, self.after)
        )
        return [math.log(after / before) for before, after in zip(then, now, strict=False)]

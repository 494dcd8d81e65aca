"""Random numbers that timm's operations are given."""

from __future__ import annotations

from typing import Any


class Fed:
    """Replaces the module random inside timm: magnitude, sign and filter are given."""

    def __init__(self, drawn: float, negative: bool, filter: int) -> None:
        self.drawn, self.negative, self.filter = drawn, negative, filter

    def gauss(self, mean: float, std: float) -> float:
        return mean + self.drawn * std

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self.drawn

    def random(self) -> float:
        return 1.0 if self.negative else 0.0

    def choice(self, given: Any) -> Any:
        return given[self.filter]

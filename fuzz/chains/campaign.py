"""Many chains, one after another, and what came of them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from fuzz.chains.chain import Chain
from fuzz.chains.generate import ENGINES, chain
from fuzz.chains.trial import Refused, Trial, shrunk


class Campaign:
    """Runs chains and counts.

    Args:
        seed: of the chains.
        engines: those to draw from.

    Attributes:
        chains: number of native chains that were compared.
        samples, failed, direct: sums of those of `Trial`.
        refused: why chains were not native.
        failures: (chain, what differs), shrunk.
    """

    def __init__(self, seed: int, engines: tuple[str, ...] = ENGINES) -> None:
        self.seed, self.engines = seed, engines
        self.chains = self.samples = self.failed = self.direct = 0
        self.refused: list[str] = []
        self.failures: list[tuple[Chain, str]] = []

    def __str__(self) -> str:
        return (
            f"{self.chains} chains, {self.samples} samples equal to the oracle's, {self.direct} to torchvision's, "
            f"{self.failed} errors in both; {len(self.refused)} chains refused; {len(self.failures)} differ"
        )

    def run(self, first: int, count: int) -> Iterator[int]:
        """Runs chains from number `first` on, until `count` of them were native; yields how many were so far."""
        number = first
        while self.chains < count:
            one, number = chain(number, self.seed, self.engines), number + 1
            try:
                trial = Trial(one)
                said = trial.difference()
            except Refused as refusal:
                self.refused.append(str(refusal))
                continue
            except Exception:
                said = traceback.format_exc()
                self._failed(one, number - 1, said)
            else:
                self.samples, self.failed = self.samples + trial.samples, self.failed + trial.failed
                self.direct += trial.direct
                if said:
                    self._failed(one, number - 1, said)
            self.chains += 1
            yield self.chains

    def _failed(self, one: Chain, number: int, said: str) -> None:
        small = shrunk(one)
        self.failures.append((small, said))
        print(f"chain {number}: {said}\n{small.snippet}\n", flush=True)

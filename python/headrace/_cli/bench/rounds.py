"""Times loaders in turn, round by round; keeps what was measured if the user interrupts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import DataLoader as TorchDataLoader

from headrace._base.safe_exceptions import message_of, type_name_of
from headrace._cli.bench.loaders import OURS, Make, make_loader
from headrace._cli.bench.result import Result, Series
from headrace._cli.bench.sample_choice import UnusableError
from headrace._cli.console.progress import Progress
from headrace.loader import DataLoader


class Rounds:
    """The rounds of a comparison.

    Args:
        result: what the measurements are added to.
        dataset: the samples of an epoch.
        seconds: shortest duration of a measurement, which covers whole epochs.
    """

    def __init__(self, result: Result, dataset: Any, loaders: Mapping[str, Make], *, seconds: float) -> None:
        self._result, self._dataset, self._makes = result, dataset, dict(loaders)
        self._seconds = seconds
        self._loaders: dict[tuple[int, str], TorchDataLoader[object]] = {}

    def run(self, workers: Sequence[int], rounds: int) -> None:
        """Runs a round without a measurement, which starts workers and fills caches, and then `rounds` rounds.

        On Ctrl-C the result keeps what was measured, and says so. A loader that fails, other than headrace's, is left
        out with a note.

        Raises:
            UnusableError: headrace's own loader fails.
        """
        places = list(itertools.product(workers, self._makes))
        try:
            with Progress("bench", (rounds + 1) * len(places), "run") as bar:
                for number in range(rounds + 1):
                    # Every second round backwards: no loader always runs after the same other one.
                    for count, name in places if number % 2 == 0 else reversed(places):
                        bar.describe(f"{'round ' + str(number) if number else 'first epochs'}: {name}")
                        self._measure(count, name, number)
                        bar.update()
        except KeyboardInterrupt:
            self._result.interrupted = True
        finally:
            for loader in self._loaders.values():
                if isinstance(loader, DataLoader):
                    loader.close()
            self._loaders.clear()

    def _measure(self, count: int, name: str, number: int) -> None:
        if name not in self._makes:
            return
        try:
            if (count, name) not in self._loaders:
                # Worker processes fork in the round without a measurement: torch's before headrace's threads begin.
                self._loaders[count, name] = make_loader(
                    self._makes[name], self._dataset, self._result.batch_size, count
                )
            speed = self._speed(self._loaders[count, name], self._seconds if number else 0.0)
        except Exception as error:
            why = (message_of(error).strip().splitlines() or [type_name_of(error)])[-1]
            if name == OURS:
                raise UnusableError(f"headrace's loader failed: {why}") from error
            del self._makes[name]
            self._result.drop(name, f"{name} is left out: {why}")
            return
        if number:
            self._result.series.setdefault((name, count), Series()).samples_per_s.append(speed)

    def _speed(self, loader: TorchDataLoader[object], seconds: float) -> float:
        """Returns samples per second over whole epochs."""
        samples, begin = 0, time.perf_counter()
        while True:
            for _ in loader:
                pass
            samples += len(self._dataset)
            elapsed = time.perf_counter() - begin
            if elapsed >= seconds:
                return samples / elapsed

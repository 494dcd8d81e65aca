"""Instruments of OpenTelemetry, which ask for values when a reader collects."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from headrace._base.messages import install_command
from headrace._base.version import __version__
from headrace._reports.metrics.loader_registry import Loaders
from headrace._reports.metrics.metrics import Metric, collect_metrics

_SAME_S = 0.2  # all instruments of one collection share one look


class Instruments:
    """An instrument for each metric.

    Args:
        provider: True: the global meter provider; otherwise a provider.
    """

    def __init__(self, loaders: Loaders, provider: object) -> None:
        try:
            from opentelemetry import metrics as library
        except ImportError:
            raise ImportError(
                "publish(opentelemetry=...) needs opentelemetry-api, which is not installed: "
                + install_command("opentelemetry", "opentelemetry-api")
            ) from None
        if provider is not True and not isinstance(provider, library.MeterProvider):
            raise ValueError(f"opentelemetry must be True or a MeterProvider, not {provider!r}")
        given = library.get_meter_provider() if provider is True else provider
        meter = given.get_meter("headrace", __version__)
        self._loaders: Loaders | None = loaders
        self._lock = threading.Lock()
        self._looked_s, self._metrics = float("-inf"), dict[str, Metric]()
        for one in collect_metrics(Loaders()):  # their names are always the same
            make = meter.create_observable_counter if one.kind == "counter" else meter.create_observable_gauge
            make(f"headrace.{one.name}", [self._callback(library, one.name)], one.unit, one.text)

    def _callback(self, library: ModuleType, name: str) -> Callable[[object], Iterator[Any]]:
        return functools.partial(self._observe, library.Observation, name)

    def _observe(self, observation: Callable[..., object], name: str, options: object) -> Iterator[object]:
        found = self._now().get(name)
        for labels, value in () if found is None else found.points:
            yield observation(value, labels)

    def _now(self) -> dict[str, Metric]:
        with self._lock:
            if self._loaders is None:
                return {}
            if time.monotonic() - self._looked_s > _SAME_S:
                self._metrics = {one.name: one for one in collect_metrics(self._loaders)}
                self._looked_s = time.monotonic()
            return self._metrics

    def after_fork(self) -> None:
        """Called in a forked process: a thread may have held the lock."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ends the values: OpenTelemetry cannot remove an instrument. Idempotent."""
        self._loaders = None

"""An HTTP endpoint for Prometheus, which asks when it wants figures; between two scrapes nothing is done."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from types import ModuleType

from headrace._base.messages import install_command
from headrace._reports.metrics.loader_registry import Loaders
from headrace._reports.metrics.metrics import Metric, collect_metrics

_HOME = "127.0.0.1"
_UNITS = {"s": "_seconds", "By": "_bytes"}


def _import_prometheus() -> ModuleType:
    try:
        import prometheus_client
    except ImportError:
        raise ImportError(
            "publish(prometheus=...) needs prometheus_client, which is not installed: "
            + install_command("prometheus", "prometheus_client")
        ) from None
    return prometheus_client


class Endpoint:
    """The metrics of this process in a registry: one of its own with a server, or the program's.

    Args:
        where: port, ``"HOST:PORT"``, or a ``CollectorRegistry``; see `publish`.

    Attributes:
        address: URL; None with a registry of the program's own.
    """

    def __init__(self, loaders: Loaders, where: object) -> None:
        library = _import_prometheus()
        self._loaders, self._server = loaders, None
        self.address: str | None = None
        if isinstance(where, library.CollectorRegistry):
            self._registry = where
            where.register(self)
            return
        host, port = _parse_address(where)
        self._registry = library.CollectorRegistry()
        self._registry.register(self)
        try:
            self._server, self._thread = library.start_http_server(port, host, self._registry)
        except OSError as error:
            reason = error.strerror or error
            raise OSError(
                error.errno, f"the endpoint for Prometheus cannot listen on {host}:{port}: {reason}; give another port"
            ) from None
        self._pid = os.getpid()
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._server.server_port}/metrics"

    def describe(self) -> list[object]:
        """Names no metrics beforehand, so that registering them does not read the loaders."""
        return []

    def collect(self) -> Iterator[object]:
        """Yields the metrics of now; called by prometheus_client."""
        from prometheus_client import core

        for one in collect_metrics(self._loaders):
            make = core.CounterMetricFamily if one.kind == "counter" else core.GaugeMetricFamily
            family = make(_metric_name(one), one.text)
            for labels, value in one.points:
                family.add_sample(family.name + ("_total" if one.kind == "counter" else ""), labels, value)
            yield family

    def after_fork(self) -> None:
        """Called in a forked process, which must not keep its parent's port."""
        if self._server is not None:
            self._server.socket.close()

    def close(self) -> None:
        """Ends the server, or takes the metrics from the program's registry. Idempotent."""
        server, self._server = self._server, None
        if server is not None and self._pid == os.getpid():
            server.shutdown()
            server.server_close()
            self._thread.join()
        elif self.address is None and self._registry is not None:
            self._registry.unregister(self)
        self._registry = None


def _metric_name(metric: Metric) -> str:
    return "headrace_" + metric.name.replace(".", "_") + _UNITS.get(metric.unit, "")


def _parse_address(where: object) -> tuple[str, int]:
    text = where if isinstance(where, str) else f"{_HOME}:{where}"
    match = re.fullmatch(r"\[?(?P<host>[^\[\]]+)\]?:(?P<port>\d{1,5})", text)
    good = match is not None and int(match["port"]) < 2**16 and not isinstance(where, bool)
    if not good or not isinstance(where, (int, str)):
        raise ValueError(
            f"prometheus must be a port, 'HOST:PORT' or a prometheus_client.CollectorRegistry, not {where!r}"
        )
    assert match is not None
    return match["host"], int(match["port"])

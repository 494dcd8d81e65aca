"""`headrace.publish`: makes the figures of this process's loaders visible from outside."""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from headrace._base import messages
from headrace._reports.metrics.loader_registry import Loaders
from headrace._reports.metrics.status_writer import Writer

if TYPE_CHECKING:
    from headrace._reports.metrics.open_telemetry import Instruments
    from headrace._reports.metrics.prometheus import Endpoint
    from headrace._reports.ranks.rank_figures import JobVerdict

_VARIABLE = "HEADRACE_PUBLISH"

_loaders = Loaders()
_published: list[Published] = []
_read_variable = False  # whether the environment variable has been read; once per process


class Published:
    """What `publish` returns; `close`, or the end of a ``with`` block, ends it. Otherwise it lasts until the process
    ends.

    Attributes:
        path: the file that ``headrace top`` reads; None without one.
        address: URL of the Prometheus endpoint; None without one.
    """

    def __init__(self, writer: Writer | None, endpoint: Endpoint | None, instruments: Instruments | None) -> None:
        self._writer, self._endpoint, self._instruments = writer, endpoint, instruments
        self.address = None if endpoint is None else endpoint.address

    @property
    def path(self) -> Path | None:
        return None if self._writer is None else self._writer.path

    @property
    def job(self) -> JobVerdict | None:
        """The newest verdict on all ranks of this process's job: which one the others wait for, and why; print it.
        None: it has one rank, or none of them has published for long enough, or there is no file."""
        return None if self._writer is None else _loaders.job

    def close(self) -> None:
        """Removes the file, ends the endpoint, and takes the values from the meter. Idempotent."""
        if self in _published:
            _published.remove(self)
        for one in (self._writer, self._endpoint, self._instruments):
            if one is not None:
                one.close()

    def __enter__(self) -> Published:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _keep_writer_alive(self) -> None:
        if self._writer is not None:
            self._writer.restart_in_child()
            if self._writer.trouble:
                self._warn(self._writer)
            if self._writer.job_trouble:
                messages.warn(
                    f"the ranks of this job cannot be compared: {self._writer.job_trouble}; the loaders go on",
                    RuntimeWarning,
                )

    def _warn(self, writer: Writer) -> None:
        messages.warn(
            f"the figures for headrace top cannot be written to {writer.path}: {writer.trouble}; the loaders go on",
            RuntimeWarning,
        )

    def _after_fork(self) -> None:
        if self._endpoint is not None:
            self._endpoint.after_fork()
            self._endpoint, self.address = None, None
        if self._instruments is not None:
            self._instruments.after_fork()


def publish(
    *,
    top: bool = True,
    prometheus: int | str | object = None,
    opentelemetry: bool | object = False,
    folder: str | os.PathLike[str] | None = None,
    every_s: float = 1.0,
) -> Published:
    """Makes the figures of this process's loaders visible from outside, until the process ends or ``close()``.

    A loader appears when it next begins an epoch. Without this call, and without the environment variable
    ``HEADRACE_PUBLISH=1``, which is ``headrace.publish()``, nothing is written and nothing runs.

    Args:
        top: for ``headrace top``: writes a file that only this user can read, every `every_s` seconds.
        prometheus: port of an HTTP endpoint ``/metrics`` on this machine (127.0.0.1; 0: any free one), ``"HOST:PORT"``
            for another address, or a ``prometheus_client.CollectorRegistry`` that the program serves itself.
        opentelemetry: True: reports to OpenTelemetry's global meter provider; or a ``MeterProvider``.
        folder: of the file. None: ``$XDG_RUNTIME_DIR/headrace``, or ``/tmp/headrace-UID``.
        every_s: seconds between two files, at least 0.1; more where writing one takes longer than 0.5% of that.

    Raises:
        ImportError: prometheus_client or opentelemetry-api is not installed.
        OSError: the file cannot be written, or the port is in use.
        ValueError: an argument is unusable, or nothing would be published.
    """
    if not isinstance(every_s, (int, float)) or isinstance(every_s, bool) or not 0.1 <= every_s < float("inf"):
        raise ValueError(f"every_s must be a number of seconds from 0.1 up, not {every_s!r}")
    if not top and folder is not None:
        raise ValueError("folder is that of the file for headrace top, which top=False leaves out")
    if not top and prometheus is None and opentelemetry is False:
        raise ValueError("nothing would be published: give top=True, prometheus or opentelemetry")
    with contextlib.ExitStack() as begun:
        writer = endpoint = instruments = None
        if prometheus is not None:
            from headrace._reports.metrics.prometheus import Endpoint

            endpoint = Endpoint(_loaders, prometheus)
            begun.callback(endpoint.close)
        if opentelemetry is not False:
            from headrace._reports.metrics.open_telemetry import Instruments

            instruments = Instruments(_loaders, opentelemetry)
            begun.callback(instruments.close)
        if top:
            _check_alone()
            writer = Writer(_loaders, folder, float(every_s))
        begun.pop_all()
    made = Published(writer, endpoint, instruments)
    _published.append(made)
    return made


def _check_alone() -> None:
    """Ends the file that the environment variable began; a second one of the program's own is refused."""
    for one in list(_published):
        if one._writer is not None and one is _of_variable:
            one.close()
        elif one._writer is not None:
            raise ValueError(f"this process publishes already, in {one.path}: close() that first, or give top=False")


_of_variable: Published | None = None


def epoch_begins(loader: object) -> bool:
    """Called by a loader before each epoch, if something publishes or the environment variable is set. Returns whether
    anything does publish."""
    global _read_variable, _of_variable
    if not _read_variable:
        _read_variable = True
        _of_variable = _publish_by_variable()
    if not _published:
        return False
    _loaders.begins(loader)
    for one in list(_published):
        one._keep_writer_alive()
    return True


def newest_job() -> JobVerdict | None:
    """Returns the newest verdict on the ranks of this process's job; None if nothing publishes, or there is none."""
    return next((one.job for one in _published if one.job is not None), None)


def _publish_by_variable() -> Published | None:
    """Faults are warnings: a training must not fail because it cannot be watched."""
    value = os.environ.get(_VARIABLE, "")
    if value in ("", "0") or any(one._writer is not None for one in _published):
        return None
    try:
        if value != "1" and "/" not in value:
            raise ValueError("it is neither 1 nor the path of a folder")
        return publish(folder=None if value == "1" else value)
    except (OSError, ValueError) as error:
        messages.warn(f"{_VARIABLE}={value} has no effect: {error}", RuntimeWarning)
        return None


def _close_all() -> None:
    for one in list(_published):
        one.close()


def _after_fork() -> None:
    _loaders.forget()
    for one in _published:
        one._after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)

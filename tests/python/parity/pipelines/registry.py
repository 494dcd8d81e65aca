"""The pipelines: functions that return the arguments of a DataLoader."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipelines.material import Material

Make = Callable[[Material], dict[str, Any]]


@dataclass(frozen=True)
class Pipeline:
    """One pipeline.

    Attributes:
        make: returns the arguments of the loader, `dataset` among them; called again for each loader.
        needs: a package or module; the pipeline is skipped where it is not installed.
        deterministic: its transforms draw no random numbers, so headrace's threads may deliver it. All others are
            torch's to deliver: headrace's threads have random numbers of their own.
        fails: the error that ends it.
        opens: whether it opens JPEG files in a way that headrace.pillow defers.
    """

    make: Make
    needs: str | None = None
    deterministic: bool = False
    fails: type[Exception] | None = None
    opens: bool = True

    @property
    def name(self) -> str:
        return self.make.__name__

    @property
    def missing(self) -> bool:
        """Whether what it needs is missing."""
        try:
            return self.needs is not None and importlib.util.find_spec(self.needs) is None
        except ModuleNotFoundError:  # of the package that holds it
            return True


PIPELINES: dict[str, Pipeline] = {}


def pipeline(**about: Any) -> Callable[[Make], Make]:
    """Registers a pipeline; the arguments are attributes of Pipeline."""

    def add(make: Make) -> Make:
        assert make.__name__ not in PIPELINES, "two pipelines have the same name"
        PIPELINES[make.__name__] = Pipeline(make, **about)
        return make

    return add

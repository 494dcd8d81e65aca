"""What a loader asks its helpers for: samples of a recipe by their draws, or what a program's own code has recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.image_engine import GivenPlan, ImageEngine
from headrace._helpers import messages
from headrace._helpers.connection import Connection
from headrace._helpers.messages import Array, Order
from headrace._helpers.order_engine import are_equal, checksums_of, planned_probe_of, probe_of
from headrace._helpers.plan_text import write_plans
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe_text import write_recipe
from headrace.datasets.sources import BlobDataset

_COMPARED = 8  # files of which both sides have the same bytes, before the helper reads them itself
_CHECKED = 1 / 16  # share of the requests after which one more file is compared
_chance = random.Random()  # a program's own random numbers do not depend on helpers


class Requests(Protocol):
    """Makes the requests of one engine.

    Attributes:
        order: how samples are made; see `messages.Order`.
        finished: whether helpers finish them; see `recipe_text.RecipeText`.
        fingerprint: of the dataset that a helper may read itself; "": none.
    """

    order: bytes
    finished: bool
    fingerprint: str

    def is_equal_to_helper(self, connection: Connection) -> bool:
        """Returns whether the helper makes of a few samples what this machine makes. Raises what `Connection` does."""

    def has_files(self, connection: Connection) -> bool:
        """Returns whether the helper has the same bytes of some files."""

    def has_one_file(self, connection: Connection, rows: npt.NDArray[np.int64]) -> bool:
        """Compares the bytes of one of the files that the helper has read, now and then."""

    def arrays_of(self, job: core.HelperJob, *, reads: bool) -> tuple[str, list[Array]] | None:
        """Returns path and arrays of a request; None: the batch was given up.

        Args:
            reads: whether the helper reads the files itself.
        """


class RowRequests:
    """Asks for samples of a dataset.

    Args:
        engine: makes the same samples here.
        source: the dataset, whose rows the engine is given.

    Raises:
        NotText: no other machine can make them.
    """

    def __init__(self, engine: ImageEngine, source: BlobDataset) -> None:
        self.order, self.finished = order_of(engine)
        self._columns, self._source = engine.recipe.columns, source
        self.fingerprint = source.fingerprint()

    def is_equal_to_helper(self, connection: Connection) -> bool:
        request, truth = probe_of(self.order, self._columns)
        return are_equal(connection.make(messages.SAMPLES_PATH, self.order, request), truth)

    def has_files(self, connection: Connection) -> bool:
        rows = np.unique(np.linspace(0, len(self._source) - 1, _COMPARED).astype(np.int64))
        return self._has_rows(connection, rows)

    def has_one_file(self, connection: Connection, rows: npt.NDArray[np.int64]) -> bool:
        if _chance.random() >= _CHECKED:
            return True
        return self._has_rows(connection, rows[[_chance.randrange(len(rows))]])

    def _has_rows(self, connection: Connection, rows: npt.NDArray[np.int64]) -> bool:
        its = connection.make(messages.FILES_PATH, self.order, [rows], self.fingerprint)
        return are_equal(its, [checksums_of(self._source, rows)])

    def arrays_of(self, job: core.HelperJob, *, reads: bool) -> tuple[str, list[Array]] | None:
        if reads:
            return messages.ROWS_PATH, [job.draws, job.rows]
        files, sizes = job.files()
        return messages.SAMPLES_PATH, [job.draws, sizes, files]


class PlanRequests:
    """Asks for images that a program's own code has recorded; their files are sent.

    Args:
        engine: makes them here; its recipe has no steps.
        plans_of: returns the plans of a batch, by its number. Raises RuntimeError if the batch was given up.

    Raises:
        NotText: no other machine can make them.
    """

    fingerprint = ""

    def __init__(self, engine: ImageEngine, plans_of: Callable[[int], Sequence[GivenPlan]]) -> None:
        self.order, self.finished = order_of(engine)
        self._plans_of = plans_of

    def is_equal_to_helper(self, connection: Connection) -> bool:
        request, truth = planned_probe_of(self.order)
        return are_equal(connection.make(messages.PLANS_PATH, self.order, request), truth)

    def has_files(self, connection: Connection) -> bool:
        return False

    def has_one_file(self, connection: Connection, rows: npt.NDArray[np.int64]) -> bool:
        return True

    def arrays_of(self, job: core.HelperJob, *, reads: bool) -> tuple[str, list[Array]] | None:
        try:
            plans = self._plans_of(job.batch_id)
        except RuntimeError:
            return None
        files, sizes = job.files()
        text = write_plans(plans[job.first : job.first + job.count])
        return messages.PLANS_PATH, [np.frombuffer(text, np.uint8), sizes, files]


def order_of(engine: ImageEngine) -> tuple[bytes, bool]:
    """Returns how another machine makes an engine's samples, and whether it finishes them.

    Raises:
        NotText: it cannot.
    """
    text = write_recipe(engine.recipe)
    order = Order(text.text, engine._layout.value, text.finished, engine.max_pixels, pillow_rule.pass_order())
    return order.to_json(), text.finished

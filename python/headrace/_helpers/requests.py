"""What a loader asks its helpers for: samples of a recipe by their draws, or what a program's own code has recorded."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.image_engine import GivenPlan, ImageEngine
from headrace._helpers import messages
from headrace._helpers.connection import Connection
from headrace._helpers.messages import Array, Order
from headrace._helpers.order_engine import are_equal, checksums_of, fingerprint_of, planned_probe_of, probe_of
from headrace._helpers.plan_text import write_plans
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe_text import write_recipe
from headrace.datasets.sources import BlobDataset

_COMPARED = 8  # files of which both sides have the same bytes, before the helper reads them itself
_CHECKED = 1 / 16  # share of the requests after which one more file is compared
_chance = random.Random()  # a program's own random numbers do not depend on helpers


class Requests(ABC):
    """Makes the requests of one engine.

    Args:
        engine: makes the same samples here.

    Attributes:
        order: how samples are made; see `messages.Order`.
        finished: whether helpers finish them; see `recipe_text.RecipeText`.
        fingerprint: of the dataset that a helper may read itself; "": none.

    Raises:
        NotText: no other machine can make them.
    """

    fingerprint = ""

    def __init__(self, engine: ImageEngine) -> None:
        self.order, self.finished = order_of(engine)

    def is_equal_to_helper(self, connection: Connection) -> bool:
        """Returns whether the helper makes of a few samples what this machine makes. Raises what `Connection` does."""
        path, request, truth = self._probe()
        return are_equal(connection.make(path, self.order, request), truth)

    @abstractmethod
    def _probe(self) -> tuple[str, list[Array], list[Array]]:
        """Returns path and arrays of a request, and what this machine makes of it."""

    @abstractmethod
    def arrays_of(self, job: core.HelperJob, *, reads: bool) -> tuple[str, list[Array]] | None:
        """Returns path and arrays of a request; None: the batch was given up.

        Args:
            reads: whether the helper reads the files itself.
        """

    def has_files(self, connection: Connection) -> bool:
        """Returns whether the helper has the same bytes of some files."""
        return False

    def has_one_file(self, connection: Connection, rows: npt.NDArray[np.int64]) -> bool:
        """Compares the bytes of one of the files that the helper has read, now and then."""
        return True


class RowRequests(Requests):
    """Asks for samples of a dataset.

    Args:
        engine: see `Requests`.
        source: the dataset, whose rows the engine is given.
    """

    def __init__(self, engine: ImageEngine, source: BlobDataset) -> None:
        super().__init__(engine)
        self._columns, self._source = engine.recipe.columns, source
        self.fingerprint = fingerprint_of(source)

    def _probe(self) -> tuple[str, list[Array], list[Array]]:
        return messages.SAMPLES_PATH, *probe_of(self.order, self._columns)

    def arrays_of(self, job: core.HelperJob, *, reads: bool) -> tuple[str, list[Array]] | None:
        if reads:
            return messages.ROWS_PATH, [job.draws, job.rows]
        files, sizes = job.files()
        return messages.SAMPLES_PATH, [job.draws, sizes, files]

    def has_files(self, connection: Connection) -> bool:
        rows = np.unique(np.linspace(0, len(self._source) - 1, _COMPARED).astype(np.int64))
        here = checksums_of(self._source, rows)
        return bool((here >= 0).any()) and self._has_rows(connection, rows, here)

    def has_one_file(self, connection: Connection, rows: npt.NDArray[np.int64]) -> bool:
        if _chance.random() >= _CHECKED:
            return True
        row = rows[[_chance.randrange(len(rows))]]
        here = checksums_of(self._source, row)
        return here[0] < 0 or self._has_rows(connection, row, here)  # what cannot be read now cannot be compared

    def _has_rows(self, connection: Connection, rows: npt.NDArray[np.int64], here: npt.NDArray[np.int64]) -> bool:
        its = connection.make(messages.FILES_PATH, self.order, [rows], self.fingerprint)
        return are_equal(its, [here])


class PlanRequests(Requests):
    """Asks for images that a program's own code has recorded; their files are sent.

    Args:
        engine: see `Requests`; its recipe has no steps.
        plans_of: returns the plans of a batch, by its number. Raises RuntimeError if the batch was given up.
    """

    def __init__(self, engine: ImageEngine, plans_of: Callable[[int], Sequence[GivenPlan]]) -> None:
        super().__init__(engine)
        self._plans_of = plans_of

    def _probe(self) -> tuple[str, list[Array], list[Array]]:
        return messages.PLANS_PATH, *planned_probe_of(self.order)

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

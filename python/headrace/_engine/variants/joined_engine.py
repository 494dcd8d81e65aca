"""Engine for batches whose samples have different recipes of one output: those of joined datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.engine import Flight
from headrace._engine.image_engine import ImageEngine, SampleOptions, byte_table
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe

Int64s = npt.NDArray[np.int64]


class JoinedEngine(ImageEngine):
    """One pipeline, whose workers choose each sample's recipe.

    Args:
        recipes: with outputs of one shape and dtype, without Python steps.
        columns: for each recipe the columns of the draws that it reads.
        recipe_of: returns the number of the recipe of each row, int64 (n,).
        layout, threads, slots_kept, pin: as in `ImageEngine`.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        columns: Sequence[Int64s],
        recipe_of: Callable[[Int64s], Int64s],
        layout: Layout,
        *,
        threads: int,
        slots_kept: int,
        pin: bool = False,
    ) -> None:
        self._recipes, self._columns, self._recipe_of = tuple(recipes), tuple(columns), recipe_of
        super().__init__(recipes[0], layout, threads=threads, slots_kept=slots_kept, pin=pin)

    def _make_pipeline(self, samples: SampleOptions, *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        return core.joined_pipeline(
            self._recipes,
            [byte_table(one) for one in self._recipes],
            threads=threads,
            slots_kept=slots_kept,
            isa=isa,
            **samples,
        )

    def submit(self, table: core.BlobTable, rows: Int64s, draws: npt.NDArray[np.float64]) -> Flight:
        return super().submit(table, rows, self._draws_by_recipe(rows, draws))

    def repair(
        self, flight: Flight, places: list[int], table: core.BlobTable, rows: Int64s, draws: npt.NDArray[np.float64]
    ) -> Flight:
        return super().repair(flight, places, table, rows, self._draws_by_recipe(rows, draws))

    def _draws_by_recipe(self, rows: Int64s, draws: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the number of each sample's recipe, and its draws, float64 (n, 1 + the most of a recipe)."""
        which = self._recipe_of(rows)
        made = np.zeros((len(rows), 1 + max(map(len, self._columns))))
        made[:, 0] = which
        for number, columns in enumerate(self._columns):
            places = np.flatnonzero(which == number)
            made[places, 1 : 1 + len(columns)] = draws[np.ix_(places, columns)]
        return made

    def makes(self, product: object) -> bool:
        if self.closed or not isinstance(product, Mapping) or len(product) != len(self._recipes):
            return False
        return all(one is other for one, other in zip(self._recipes, product.values(), strict=True))

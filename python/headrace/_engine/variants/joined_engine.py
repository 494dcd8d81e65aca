"""Engine for batches whose samples have different recipes of one output: those of joined datasets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.engine import Flight
from headrace._engine.image_engine import ImageEngine, SampleOptions, byte_table
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.sources import BlobDataset

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Joined:
    """What a `JoinedEngine` makes.

    Attributes:
        recipes: with outputs of one shape and dtype, without Python steps.
        columns: for each recipe the columns of the draws that it reads.
        source: the joined datasets.
        recipe_of: number of the recipe of each of the source's variants.
    """

    recipes: tuple[Recipe, ...]
    columns: tuple[Int64s, ...]
    source: BlobDataset
    recipe_of: tuple[int, ...]

    def numbers(self, rows: Int64s) -> Int64s:
        """Returns the number of the recipe of each row, int64 (n,)."""
        return np.asarray(self.recipe_of, dtype=np.int64)[self.source.variant_of(rows)]

    def is_same(self, other: object) -> bool:
        """Whether both make the same samples by the same objects."""
        if not isinstance(other, Joined) or len(self.recipes) != len(other.recipes):
            return False
        same = all(one is another for one, another in zip(self.recipes, other.recipes, strict=True))
        return same and self.source is other.source and self.recipe_of == other.recipe_of


class JoinedEngine(ImageEngine):
    """One pipeline, whose workers choose each sample's recipe.

    Args:
        joined: what it makes.
        layout, threads, slots_kept, pin: as in `ImageEngine`.
    """

    def __init__(self, joined: Joined, layout: Layout, *, threads: int, slots_kept: int, pin: bool = False) -> None:
        self._joined = joined
        super().__init__(joined.recipes[0], layout, threads=threads, slots_kept=slots_kept, pin=pin)

    def _make_pipeline(self, samples: SampleOptions, *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        return core.joined_pipeline(
            self._joined.recipes,
            [byte_table(one) for one in self._joined.recipes],
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
        which = self._joined.numbers(rows)
        made = np.zeros((len(rows), 1 + max(map(len, self._joined.columns))))
        made[:, 0] = which
        for number, columns in enumerate(self._joined.columns):
            places = np.flatnonzero(which == number)
            made[places, 1 : 1 + len(columns)] = draws[np.ix_(places, columns)]
        return made

    def makes(self, product: object) -> bool:
        return not self.closed and self._joined.is_same(product)

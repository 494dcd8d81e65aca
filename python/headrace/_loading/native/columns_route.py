"""The route on which native threads gather rows of columns: no image, no transform, no random numbers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import NoReturn

import torch

from headrace._base.originals.relied_functions import Relied
from headrace._loading.native.settings import OwnSettings
from headrace.datasets.columns.columns_source import ColumnSource, as_columns
from headrace.datasets.columns.row_layout import RowLayout
from headrace.datasets.sources import NotNative


@dataclass(frozen=True)
class Gathered:
    """Route on which headrace gathers rows.

    Attributes:
        source: locates the rows.
        relied: the libraries' functions that it stands for; None for a field of several.
    """

    source: ColumnSource
    relied: Relied | None = field(default=None, compare=False)
    draws = ()
    kinds = torch.Tensor  # of a sample

    @property
    def product(self) -> RowLayout:
        """What an engine has to fit to make the batches."""
        return self.source.layout

    @functools.cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the source; cached because it reads rows."""
        return self.source.fingerprint()

    def renewed(self, dataset: object) -> Gathered:
        """Returns the route of the next epoch: this one, unless the dataset now consists of other objects.

        Raises:
            NotNative: it has no columns any more.
        """
        if self.source.is_current():
            return self
        source = as_columns(dataset)
        if source is None:
            raise NotNative("the dataset has no columns any more")
        return Gathered(source)

    def check(self, own: OwnSettings) -> None:
        """Raises TypeError if a setting applies to images alone."""
        own.refuse_of_images()

    @property
    def recipe(self) -> NoReturn:
        """Raises RuntimeError."""
        raise RuntimeError("rows of columns have no transforms, and so no recipe: they are delivered as they are")

"""The route on which native threads gather rows of columns: no image, no transform, no random numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headrace._engine.columns_engine import ColumnsEngine
from headrace._engine.engine import Engine
from headrace._loading.native.settings import OwnSettings, Settings
from headrace._loading.routes.route import NativeRoute
from headrace.datasets.columns.columns_source import ColumnSource, as_columns
from headrace.datasets.columns.row_layout import RowLayout
from headrace.datasets.sources import NotNative


@dataclass(frozen=True)
class ColumnsRoute(NativeRoute):
    """Route on which headrace gathers rows."""

    source: ColumnSource
    kinds = torch.Tensor
    draws = image_parts = ()
    recipes = None
    staged = True

    def check(self, own: OwnSettings) -> None:
        own.refuse_of_images()

    @property
    def product(self) -> RowLayout:
        return self.source.layout

    def renew(self, settings: Settings) -> ColumnsRoute:
        if self.source.is_current():
            return self
        source = as_columns(settings.dataset)
        if source is None:
            raise NotNative("the dataset has no columns any more")
        return ColumnsRoute(source)

    def new_engine(self, settings: Settings, *, slots_kept: int, pin: bool = False) -> Engine:
        return ColumnsEngine(self.product, threads=settings.num_workers, slots_kept=slots_kept, pin=pin)

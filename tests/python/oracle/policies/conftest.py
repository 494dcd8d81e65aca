"""timm's policies, for the tests beside this file."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def policies(torchvision: ModuleType) -> ModuleType:
    """timm.data.auto_augment, or a skip where timm is not installed."""
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("timm.data.auto_augment")

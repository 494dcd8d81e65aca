"""Makes torchvision's Python part (datasets, transforms) importable with a torch that cannot load its C++ operators.

PyPI has no CPU build of torchvision. The build that ``pip install --no-deps`` installs lacks only the schemas of two
operators, which nothing here calls. Where the operators load, nothing is declared.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

import torch

# The schemas that the import looks up, as torchvision 0.28's csrc/ops declares them.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)

_library: torch.library.Library | None = None  # owns the declarations, which end with it


def import_torchvision() -> ModuleType:
    """torchvision, with its transforms and datasets.

    Raises:
        ImportError: it is not installed.
    """
    global _library
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise ImportError("torchvision is not installed")
    if _library is None and not _operators_load(Path(spec.origin).parent):
        _library = torch.library.Library("torchvision", "DEF")
        for schema in _SCHEMAS:
            _library.define(schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torchvision.transforms.v2")
        return importlib.import_module("torchvision")


def _operators_load(package: Path) -> bool:
    libraries = sorted(package.glob("_C*.so"))
    try:
        for library in libraries:
            torch.ops.load_library(library)
    except OSError:
        return False
    return bool(libraries)

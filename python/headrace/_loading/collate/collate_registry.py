"""Whether torch's table of collate functions makes of images and numbers what native threads make of them."""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch.utils.data._utils import collate

#: What `default_collate` calls for values of these types; None: it takes the container apart.
_USUAL: dict[type, str | None] = {
    torch.Tensor: "collate_tensor_fn",
    int: "collate_int_fn",
    np.int64: "collate_numpy_scalar_fn",
    tuple: None,
    list: None,
    dict: None,
}
_KINDS = ("Image", "Mask", "Video")  # of torchvision's tensors, which transforms may return

_known: list[object] = []  # the entries that were found to be usual


def is_usual() -> bool:
    """Returns whether a batch that default_collate makes is the one of native threads: all entries that it would take
    are torch's own. Costs a microsecond unless an entry has changed."""
    now = list(collate.default_collate_fn_map.items())
    if now == _known:
        return True
    kinds = sys.modules.get("torchvision.tv_tensors")
    usual = dict(_USUAL)
    usual.update({cls: "collate_tensor_fn" for name in _KINDS if isinstance(cls := getattr(kinds, name, None), type)})
    if not all(_is_torchs(_find_function(kind), name) for kind, name in usual.items()):
        return False
    _known[:] = now
    return True


def _find_function(kind: type) -> object:
    """Returns the function that default_collate takes for values of a type; None: it has none."""
    functions = collate.default_collate_fn_map
    if kind in functions:
        return functions[kind]
    return next((function for key, function in functions.items() if issubclass(kind, key)), None)


def _is_torchs(function: object, name: str | None) -> bool:
    if name is None or function is None:
        return function is None and name is None
    module, qualified = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return module == collate.__name__ and qualified == name

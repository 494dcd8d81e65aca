"""Batches of torch's `TensorDataset` in the main process: the rows of a batch are copied by one call of torch.

torch's fetcher takes the rows one by one and stacks them: 5 us a sample, most of what a batch of small tensors costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch.utils.data import TensorDataset, default_collate
from torch.utils.data._utils import collate, fetch

from headrace._base.types import Function
from headrace.pillow.recording.patches import Untouched


class Fetcher(Protocol):
    """torch's fetcher of a map-style dataset."""

    dataset: Any
    collate_fn: Function

    def fetch(self, possibly_batched_index: Any) -> Any: ...


# What `index_select` stands for.
_CALLED = Untouched(
    (TensorDataset, "__getitem__"),
    (fetch._MapDatasetFetcher, "fetch"),
    (collate, "default_collate"),
    (collate, "collate"),
    (collate, "collate_tensor_fn"),
    (torch, "stack"),
    (torch.Tensor, "__getitem__"),
)
_DTYPES = frozenset(
    (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16)
) | {torch.float32, torch.float64, torch.complex64, torch.complex128}


class RowFetcher:
    """Fetches batches as torch's fetcher does, those of whole rows by `Tensor.index_select`.

    Args:
        plain: torch's fetcher, which fetches all others.
    """

    def __init__(self, plain: Fetcher) -> None:
        self._plain = plain

    def fetch(self, possibly_batched_index: Any) -> Any:
        dataset = self._plain.dataset
        if self._plain.collate_fn is default_collate and _is_plain(dataset):
            found = _copy_rows(dataset.tensors, possibly_batched_index)
            if found is not None:
                return found
        return self._plain.fetch(possibly_batched_index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def takes_rows(fetcher: Any) -> bool:
    """Whether a fetcher of torch's may take whole rows of tensors."""
    return type(getattr(fetcher, "dataset", None)) is TensorDataset and bool(getattr(fetcher, "auto_collation", False))


def _is_plain(dataset: TensorDataset) -> bool:
    """Whether nothing of a program's own would be called for a sample or a batch."""
    return (
        bool(_CALLED)
        and not hasattr(dataset, "__getitems__")
        and collate.default_collate_fn_map.get(torch.Tensor) is collate.collate_tensor_fn
        and torch._C._len_torch_function_stack() == 0
        and torch._C._len_torch_dispatch_stack() == 0
    )


def _copy_rows(tensors: Sequence[torch.Tensor], indices: Any) -> list[torch.Tensor] | None:
    """Returns the rows of each tensor, stacked; None where stacking single rows would give something else, or an
    error."""
    if type(indices) is not list or not indices or not tensors:
        return None
    if any(type(one) is not int for one in indices) or min(indices) < 0:
        return None
    last = max(indices)
    if not all(_has_plain_rows(one) and last < len(one) for one in tensors):
        return None
    rows = torch.tensor(indices)
    return [one.index_select(0, rows) for one in tensors]


def _has_plain_rows(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and tensor.dtype in _DTYPES
        and tensor.dim() > 0
        and tensor.is_contiguous()
        and not tensor.requires_grad
        and not tensor.is_conj()
        and not tensor.is_neg()
    )

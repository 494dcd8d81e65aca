"""The memory layout of a batch: one enum from the argument ``memory_format`` to the native store."""

from __future__ import annotations

import enum

import torch


def torch_value(given: object) -> object:
    """Returns torch's dtype or memory format of that name, such as ``"float16"``; anything else as it is."""
    value = getattr(torch, given.removeprefix("torch."), given) if isinstance(given, str) else given
    return value if isinstance(value, (torch.dtype, torch.memory_format)) else given


class Layout(enum.Enum):
    """Memory layout of a batch; the values are the names that the native module uses."""

    PLANAR = "planar"  # (n, C, H, W): torch.contiguous_format
    CHANNELS_LAST = "channels_last"  # (n, H, W, C) in memory: torch.channels_last

    @classmethod
    def of(cls, memory_format: object) -> Layout:
        """Returns the layout of a torch.memory_format. Raises ValueError for any other value than the two formats."""
        for layout in cls:
            if memory_format is layout.memory_format:
                return layout
        raise ValueError(f"memory_format must be torch.contiguous_format or torch.channels_last, not {memory_format!r}")

    @property
    def memory_format(self) -> torch.memory_format:
        """The corresponding torch.memory_format."""
        return torch.channels_last if self is Layout.CHANNELS_LAST else torch.contiguous_format

"""Copies and pickles of a loader."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch

from headrace.delivery.settings import OwnSettings


class Copies:
    """Mixed into the loader: what a copy of it keeps."""

    _own: OwnSettings
    memory_format: torch.memory_format

    def __getstate__(self) -> dict[str, Any]:
        # Even a shallow copy gets epochs and threads of its own.
        own = ("_epochs", "_torch_epochs", "_runner")
        kept = {**self.__dict__, **{name: copy.copy(self.__dict__[name]) for name in own if name in self.__dict__}}
        # torch.save uses a pickle protocol below 4, which does not support torch.memory_format.
        kept["_own"] = replace(self._own, memory_format=str(self.memory_format))  # type: ignore[arg-type]
        return {name: value for name, value in kept.items() if name not in vars(self._own)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        memory_format = getattr(torch, kept["_own"].memory_format.removeprefix("torch."))
        own = replace(kept["_own"], memory_format=memory_format)
        vars(self).update(kept, _own=own)
        vars(self).update(vars(own))

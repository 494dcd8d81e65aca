"""torchvision's MixUp, CutMix and RandomChoice of these, with other code for the values of a batch."""

from __future__ import annotations

import copy
import functools
import sys
from typing import Any, Protocol

import torch

from headrace.lowering.origins import has_hooks
from headrace.mixing import pixels

_TRANSFORMS = "torchvision.transforms.v2"


class Writer(Protocol):
    """Makes the values of mixed batches."""

    def takes(self, batch: Any) -> bool:
        """Whether it takes this batch; others are left to torchvision's code."""

    def mix(self, batch: torch.Tensor, share: float) -> torch.Tensor:
        """Returns the batch of MixUp."""

    def cut(self, batch: torch.Tensor, box: pixels.Box) -> torch.Tensor:
        """Returns the batch of CutMix."""


class _InPlace:
    """Overwrites the batch."""

    def takes(self, batch: Any) -> bool:
        return pixels.is_mixable(batch)

    def mix(self, batch: torch.Tensor, share: float) -> torch.Tensor:
        pixels.mix(batch, share)
        return batch

    def cut(self, batch: torch.Tensor, box: pixels.Box) -> torch.Tensor:
        pixels.move_boxes(batch, box)
        return batch


_IN_PLACE = _InPlace()


def is_known(mix: Any) -> bool:
    """Whether a transform is one of torchvision's, or a choice among them."""
    return twin(mix) is not None


def twin(mix: Any, writer: Writer = _IN_PLACE) -> Any:
    """Returns a copy of a transform whose batches are made by `writer`; None if it is not one of torchvision's."""
    v2 = sys.modules.get(_TRANSFORMS)
    if v2 is None or has_hooks(mix):
        return None
    if type(mix) is v2.RandomChoice:
        twins = [twin(one, writer) for one in mix.transforms]
        if any(one is None for one in twins):
            return None
        made: Any = copy.copy(mix)
        made.transforms = twins
        return made
    if type(mix) not in (v2.MixUp, v2.CutMix):
        return None
    kind: Any = type(mix)
    made = copy.copy(mix)
    made.__class__ = _writing_class(kind)
    made.__dict__["_writer"] = writer
    return made


@functools.cache
def _writing_class(kind: Any) -> Any:
    """Returns a subclass of MixUp or CutMix with a writer."""

    def transform(self: Any, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"] and type(inpt) is torch.Tensor:
            with torch._C.DisableTorchFunction():  # modes of the calling thread cost more than the labels' arithmetic
                return kind.transform(self, inpt, params)
        writer: Writer = self._writer
        if inpt is params["labels"] or not writer.takes(inpt):
            return kind.transform(self, inpt, params)
        self._check_image_or_video(inpt, batch_size=params["batch_size"])
        if kind.__name__ == "MixUp":
            return writer.mix(inpt, params["lam"])
        return writer.cut(inpt, params["box"])

    return type(kind.__name__, (kind,), {"transform": transform})

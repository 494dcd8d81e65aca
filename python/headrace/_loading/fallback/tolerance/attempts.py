"""What passes between the stand-in for a dataset whose samples may fail, torch's fetcher, and the main process."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import Any

from headrace._base.errors import SampleError, sample_error
from headrace._base.safe_exceptions import format_error


@dataclass
class Attempted:
    """A sample, and the errors before it could be made; `is_made`: whether it could."""

    sample: object
    errors: list[SampleError]
    is_made: bool


def describe_failure(error: Exception, number: int, place: str) -> SampleError:
    """Returns the error of a sample as other processes get it, without frames.

    Args:
        number: of the sample; -1: it has none.
        place: where it comes from.
    """
    made = sample_error("dataset", number, place, format_error(error), error)
    return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ToleratedBatch:
    """A batch of which samples have failed.

    Attributes:
        batch: what collate_fn made of the others; None if there are none.
        errors: why.
        is_empty: whether there are none.
    """

    batch: object
    errors: list[SampleError]
    is_empty: bool

    def pin_memory(self) -> ToleratedBatch:
        """Pins the batch as torch does; called by torch."""
        from torch.utils.data._utils.pin_memory import pin_memory

        return replace(self, batch=pin_memory(self.batch))  # type: ignore[no-untyped-call]


class StandIn:
    """Stands for a dataset of the program's, whose attributes it has."""

    dataset: Any

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in vars(self):
            raise AttributeError(name)
        return getattr(self.dataset, name)


@dataclass
class EpochFaults:
    """The errors of the samples of an epoch that were left out or replaced."""

    epoch: int
    errors: list[SampleError] = field(default_factory=list)

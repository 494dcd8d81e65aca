"""A batch sampler that packs samples of known lengths into bins of a token budget, for attention without padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace._base.checks import whole_number
from headrace._recipe.draws.draws import Int64Array
from headrace.sampler.bins import best_fit, first_fit
from headrace.sampler.lengths import checked_lengths
from headrace.sampler.windows import WindowedBatches

_NO_LIMIT = 2**62
_METHODS: dict[str, Callable[[Int64Array, int, int], list[list[int]]]] = {
    "best_fit": best_fit,
    "first_fit": first_fit,
}


class PackingBatchSampler(WindowedBatches):
    """Yields every sample once per epoch, in batches ("bins") whose lengths add up to `max_tokens` at most.

    For models that take the samples of a batch one after another in one sequence, and keep them apart by
    ``cu_seqlens`` or position ids, as `PackingCollate` makes them: then nothing is padded, and what a bin lacks to the
    budget is all that is wasted.

    Each epoch is shuffled and cut into windows; the samples of a window are packed from long to short, and the bins of
    an epoch are shuffled. The samples of each window's emptiest bin go to the next window, so at most one bin of an
    epoch is the rest. Bins differ between epochs.

    Method: best-fit decreasing as in TRL's ``packing_strategy="bfd"``, first-fit decreasing.

    The bins depend only on the arguments and the epoch, so a loader's state resumes in the middle of one. In a
    distributed job, ``DataLoader(distributed=True)`` or ``rank=`` and ``world_size=`` share out the bins of one order:
    each rank gets equally many. As with torch's DistributedSampler, call ``set_epoch`` to get other bins in the next
    epoch; headrace's DataLoader does so itself.

    Args:
        lengths: length of every sample, integers >= 0: a sequence, array or tensor (n,). A length of 0 counts as 1.
        max_tokens: most tokens of a bin, all samples together.
        max_samples: largest number of samples in a bin; None: no limit.
        method: ``"best_fit"``: a sample goes into the bin where it leaves the least room; ``"first_fit"``: into the
            first with room, in the order in which bins were opened.
        window: number of samples that are packed together. Larger windows leave less room, and mix samples of more
            lengths.
        shuffle: whether to shuffle. False: windows of consecutive samples, and their bins in the order in which they
            were opened; the same in every epoch.
        seed: any integer; only its low 64 bits are used.
        drop_last: whether to drop the bin that is the epoch's rest.

    Attributes:
        lengths: length of every sample, int64 (n,).
        epoch: epoch of the next iterator; initially 0.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there are no samples, a length is negative, a sample is longer than `max_tokens` (the message gives
            its index), or there is no such method.
    """

    def __init__(
        self,
        lengths: npt.ArrayLike,
        max_tokens: int,
        *,
        max_samples: int | None = None,
        method: Literal["best_fit", "first_fit"] = "best_fit",
        window: int = 8192,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.max_tokens: int = whole_number("max_tokens", max_tokens, smallest=1)
        self.lengths: Int64Array = checked_lengths(lengths, self.max_tokens)
        self.max_samples: int | None = (
            None if max_samples is None else whole_number("max_samples", max_samples, smallest=1)
        )
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, not {method!r}")
        self.method: str = method
        super().__init__(len(self.lengths), window, shuffle=shuffle, seed=seed, drop_last=drop_last)

    def unused_share(self) -> float:
        """Returns the share of the budget that the bins of the current epoch leave empty: what fixed-size bins would
        be padded with."""
        bins = self._bins()
        used = sum(int(np.maximum(self.lengths[one], 1).sum()) for one in bins)
        return 1 - used / (len(bins) * self.max_tokens) if bins else 0.0

    def _pack_window(self, samples: Int64Array, turn: float) -> tuple[list[Int64Array], Int64Array]:
        """Returns the bins of a window, longest sample first, without the emptiest, and the samples of that one."""
        samples = samples[np.argsort(-self.lengths[samples], kind="stable")]
        tokens = np.maximum(self.lengths[samples], 1)
        packed = _METHODS[self.method](tokens, self.max_tokens, self.max_samples or _NO_LIMIT)
        filled = [int(tokens[one].sum()) for one in packed]
        emptiest = len(filled) - 1 - int(np.argmin(filled[::-1]))  # the last of several
        rest = samples[packed.pop(emptiest)]
        return [samples[one] for one in packed], rest

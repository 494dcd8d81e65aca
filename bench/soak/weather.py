"""Which faults may happen during an epoch, how often, and which errors they excuse."""

from __future__ import annotations

import errno
import random
from collections.abc import Mapping

from headrace import SampleError

#: Name -> chance of each fault; each call on a file of the soak draws for itself, each allocation of the core as well.
WEATHERS: dict[str, dict[str, float]] = {
    "calm": {},
    "gentle": {"read: short": 0.2, "read: interrupted": 0.1},
    "missing": {"open: no such file": 1e-3, "open: I/O error": 1e-3},
    "broken disk": {"read: I/O error": 1e-3, "read: short": 0.05, "read: interrupted": 0.05},
    "truncated": {"read: ends early": 1e-3, "read: short": 0.1},
    "slow": {"read: stalls": 2e-3},
    "full": {"write: no space left": 0.5},
    "no threads": {"no thread": 0.3},
    "no memory": {"no memory": 3e-4},
    "storm": {
        "open: no such file": 3e-4,
        "read: I/O error": 3e-4,
        "read: ends early": 3e-4,
        "read: short": 0.05,
        "read: interrupted": 0.05,
        "read: stalls": 5e-4,
        "write: no space left": 0.2,
        "no thread": 0.05,
        "no memory": 5e-5,
    },
}
_WEIGHTS = (30, 10, 8, 8, 8, 4, 3, 4, 6, 10)

_OF_ERRNO = {
    errno.ENOENT: ("open: no such file",),
    errno.EIO: ("open: I/O error", "read: I/O error"),
    errno.ENOMEM: ("no memory",),
    errno.EAGAIN: ("no thread",),
    errno.ENOSPC: ("write: no space left",),
}


def drawn(draw: random.Random) -> dict[str, float]:
    """Returns the chances of an epoch, between a quarter and four times those of a weather."""
    (name,) = draw.choices([*WEATHERS], _WEIGHTS)
    factor = 4 ** draw.uniform(-1, 1)
    return {fault: min(0.7, chance * factor) for fault, chance in WEATHERS[name].items()}


def excused(error: BaseException, happened: Mapping[str, int], few_descriptors: bool) -> bool:
    """Whether faults that have happened explain an error.

    Args:
        happened: how many faults of each kind were injected since the attempt began; a kind without any may be missing.
        few_descriptors: whether the limit of open files was lowered.
    """
    number = getattr(error, "errno", None)
    if few_descriptors and number in (errno.EMFILE, errno.ENFILE):
        return True
    if isinstance(error, MemoryError):
        return happened.get("no memory", 0) > 0
    if number in _OF_ERRNO:
        return any(happened.get(fault, 0) > 0 for fault in _OF_ERRNO[number])
    if isinstance(error, RuntimeError) and not isinstance(error, SampleError):
        return happened.get("no thread", 0) > 0 and "thread" in str(error).lower()
    # A file that ends early: Pillow's errors about truncated images, the reader's about a shard that has changed, or,
    # where a dataset is made, those of the shard's index.
    return isinstance(error, (SampleError, OSError, ValueError)) and happened.get("read: ends early", 0) > 0

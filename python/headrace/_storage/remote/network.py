"""How objects in other machines are requested: limits of requests, of time and of memory."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._base.checks import checked_size


@dataclass(frozen=True)
class Network:
    """Limits of the requests for objects in other machines.

    Args:
        requests: most requests in flight, of all loaders of a process that have equal settings. Samples a second times
            the seconds of a request are needed: 70 for 2,200 samples and 32 ms.
        timeout: seconds after which a request without a complete answer is given up and made again.
        patience: seconds after which a range that could not be read is an error, retries included.
        ahead: bytes that are fetched ahead of the decoders, a number or a text such as ``"256 MB"``.
        hedge: share of requests that may be made twice: the second one when the first takes longer than 95 % of the
            recent ones, and than two of them. 0: none.
        reach: seconds after which a host that no connection could be made to since the process began is an error: its
            address is wrong, or nothing listens there. Longer where servers start after the program; at most
            `patience` counts.

    Raises:
        ValueError: a value is out of range.
    """

    requests: int = 128
    timeout: float = 30.0
    patience: float = 120.0
    ahead: int | str = 256_000_000
    hedge: float = 0.05
    reach: float = 10.0

    def __post_init__(self) -> None:
        checked_size(self.ahead, "ahead")
        for name in ("requests", "timeout", "patience", "reach"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)!r}")
        if not 0 <= self.hedge <= 1:
            raise ValueError(f"hedge must be in [0, 1], not {self.hedge!r}")

    @property
    def ahead_bytes(self) -> int:
        return checked_size(self.ahead, "ahead")

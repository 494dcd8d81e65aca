"""What the helpers of a loader have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class HelperWork:
    """What one helper has done for a loader.

    Attributes:
        samples: that it made.
        bytes: that were sent there, and that came back.
        requests: that it answered.
        seconds: how long these took, summed over the connections.
        failures: requests that it did not answer in time, or not with what was agreed.
        version: headrace's there; "" as long as it has not answered.
        reads: whether it reads the dataset's files itself; otherwise they are sent.
        refused: why it is not used; "": it is.
        trouble: why the newest request failed; "": it did not.
    """

    samples: int = 0
    bytes: int = 0
    requests: int = 0
    seconds: float = 0.0
    failures: int = 0
    version: str = ""
    reads: bool = False
    refused: str = ""
    trouble: str = ""

    @property
    def works(self) -> bool:
        """Whether the helper is used, and nothing has failed since its last answer."""
        return bool(self.version) and not (self.refused or self.trouble)

    def since(self, before: HelperWork) -> HelperWork:
        """Returns what was done since `before`, with the version and the refusal of now."""
        return replace(
            self,
            samples=self.samples - before.samples,
            bytes=self.bytes - before.bytes,
            requests=self.requests - before.requests,
            seconds=self.seconds - before.seconds,
            failures=self.failures - before.failures,
        )

    def __add__(self, other: HelperWork) -> HelperWork:
        """Returns the work for two engines of a loader. What the helper is, and its trouble, are what `other` says."""
        return HelperWork(
            self.samples + other.samples,
            self.bytes + other.bytes,
            self.requests + other.requests,
            self.seconds + other.seconds,
            self.failures + other.failures,
            other.version or self.version,
            other.reads if other.version else self.reads,
            other.refused or self.refused,
            other.trouble or self.trouble,
        )

    def __str__(self) -> str:
        if self.refused:
            return f"is not used: {self.refused}"
        if not self.version:
            return f"has not answered: {self.trouble}" if self.trouble else "was not needed"
        each = f", {1e3 * self.seconds / self.requests:.1f} ms a request" if self.requests else ""
        lost = f", {self.failures} requests failed" if self.failures else ""
        lost += f": {self.trouble}" if self.trouble else ""
        read = "; it reads the files" if self.reads else ""
        return f"made {self.samples:,} samples, {self.bytes / 1e6:,.1f} MB there and back{each}{lost}{read}"


def work_since(now: Mapping[str, HelperWork], before: Mapping[str, HelperWork]) -> dict[str, HelperWork]:
    """Returns what each helper has done since `before`."""
    return {name: one.since(before.get(name, HelperWork())) for name, one in now.items()}

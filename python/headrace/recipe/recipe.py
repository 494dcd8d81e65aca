"""The recipe: a dataset's transforms, lowered once to a fixed list of native steps.

It is the contract between three readers: `lowering` writes it, the C++ core runs it, and `reference` (the oracle) runs
it again through Pillow and torch, independently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from headrace.recipe.aspect_sizes import nearest
from headrace.recipe.byte_table import Pointwise
from headrace.recipe.steps import Call, Step

#: dtypes that an output may have.
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.uint8)


@dataclass(frozen=True)
class Column:
    """How one draw is made from a uniform u in [0, 1): ``low + u (high - low)``, then `exp` if asked."""

    low: float = 0.0
    high: float = 1.0
    exp: bool = False


@dataclass(frozen=True)
class GaussianWeight:
    """One of the `size` weights of torchvision's Gaussian kernel along one axis, of the sigma in column `sigma`.

    They stand side by side, the first one at `first`. `softmax`: by v2's operations, else by v1's.
    """

    sigma: int
    size: int
    softmax: bool
    first: int


@dataclass(frozen=True)
class Recipe:
    """What is done to every sample of a dataset.

    Attributes:
        steps: in order; on the 8-bit image up to the first Erase, from there on on the tensor.
        columns: how each draw of a sample is made; its length is k of the draws array (n, k).
        height, width, channels: of every output.
        pointwise: the tensor steps but Erase and flips. Called with a uint8 tensor (channels, H, W) it returns the
            finished tensor (channels, H, W) in the final dtype, each element a function of its byte and channel alone.
        lut: ``pointwise`` of the 256 bytes: (channels, 256), in the final dtype.
        erased: what each Erase writes: (Erase steps in the order in which they are written down, nested ones too,
            channels), in the final dtype, after all tensor steps; None where there is none.
        names: a line for `explain()` a user's transform: (its repr, what it was lowered to).
        kind: the class of tensor that the transforms give, which a single sample has; a batch is a plain one.
        in_python: which of `names` are done by Python.
        variants: the recipes of images of other aspect ratios, each with another output size; this one is the first of
            them, and all have the same columns, channels and lut.
    """

    steps: tuple[Step, ...]
    columns: tuple[Column | GaussianWeight, ...]
    height: int
    width: int
    channels: int
    pointwise: Pointwise = field(compare=False)
    lut: torch.Tensor = field(compare=False)
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    erased: torch.Tensor | None = field(default=None, compare=False)
    in_python: frozenset[int] = field(default=frozenset(), compare=False)
    kind: type[torch.Tensor] = field(default=torch.Tensor, compare=False)
    variants: tuple[Recipe, ...] = ()

    def of(self, height: int, width: int) -> Recipe:
        """The recipe of an image of that size: of the variant whose aspect ratio is nearest, where there are any."""
        if not self.variants:
            return self
        return self.variants[nearest(self.sizes, height, width)]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(height, width) of the outputs there are."""
        return [(one.height, one.width) for one in self.variants or (self,)]

    @property
    def dtype(self) -> torch.dtype:
        return self.lut.dtype

    def maps_bytes_as(self, other: Recipe) -> bool:
        """Whether both make the same values of the same bytes, in as many channels."""
        return self.dtype == other.dtype and torch.equal(self.lut, other.lut)

    @property
    def calls(self) -> list[Call]:
        """The steps that Python does, in order."""
        return [step for one in self.variants or (self,) for step in one.steps if isinstance(step, Call)]

    @property
    def finished_by_python(self) -> bool:
        """Whether the last call makes the finished tensors, in this machine's memory."""
        return any(call.finishes for call in self.calls)

    @property
    def erase_bytes(self) -> bytes:
        """The elements of `erased`, row by row."""
        if self.erased is None:
            return b""
        return self.erased.contiguous().view(torch.uint8).numpy().tobytes()

    def fingerprint(self) -> str:
        """A hash of everything that decides a batch's pixels, for `state_dict()`: hex digits of SHA-256, first 16."""
        import hashlib

        parts: list[Any] = [self.steps, self.columns, self.height, self.width, self.channels, str(self.dtype)]
        parts += [one.fingerprint() for one in self.variants]
        digest = hashlib.sha256(repr(parts).encode())
        digest.update(self.lut.contiguous().view(torch.uint8).numpy().tobytes())
        digest.update(self.erase_bytes)
        return digest.hexdigest()[:16]

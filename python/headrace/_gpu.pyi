"""The native module of the GPU path, as Python sees it; see csrc/bind/gpu/gpu_module.cpp."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

from headrace._base.types import Array
from headrace._recipe.steps.recipe import Recipe

_Value = TypeVar("_Value")

cuda: bool
sources: str  # SHA-256 of those of csrc/, concatenated

def trouble() -> str: ...
def backend(
    kind: str,
    index: int,
    recipe: Recipe,
    lut: npt.NDArray[np.uint8],
    *,
    layout: str,
    max_pixels: int,
    pass_order: str,
    batches: int,
    decoder: str = "cpu",
    shared: bool = True,
    lanes: int = 2,
    group: int = 64,
    nvjpeg: list[str] = ...,
    frames: int = 1,
) -> CapsuleType: ...
def nvjpeg(index: int, decoder: str, candidates: list[str]) -> str: ...
def time_fuse(
    kind: str,
    index: int,
    files: list[bytes],
    plans: list[dict[str, _Value]],
    lut: Array,
    layout: str,
    repeats: int,
) -> tuple[list[float], int]: ...
def time_copy(kind: str, index: int, bytes: int, repeats: int) -> list[float]: ...
def time_decoders(
    kind: str,
    index: int,
    decoder: str,
    candidates: list[str],
    files: list[bytes],
    lanes: int,
    group: int,
    repeats: int,
) -> list[float]: ...

class Ops:
    def __init__(self, kind: str, index: int) -> None: ...
    def fuse(
        self,
        images: list[tuple[int, int, int, int, int]],
        plans: list[dict[str, _Value]],
        lut: Array,
        layout: str,
        output: int,
        stream: int,
    ) -> None: ...
    def decode(self, data: bytes, output: int, stream: int) -> bool: ...

def route(data: bytes) -> str | None: ...

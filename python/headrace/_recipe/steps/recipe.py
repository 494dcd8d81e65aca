"""The recipe: a dataset's transforms, lowered once to a fixed list of native steps.

It is the contract between three modules: `lowering` writes it, the C++ core runs it, and `reference` (the oracle) runs
it again through Pillow and torch, independently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from headrace._recipe.steps.aspect_sizes import nearest
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.steps import Call, Step, Texture

#: Supported dtypes of outputs.
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.uint8)


@dataclass(frozen=True)
class Recipe:
    """The steps done to every sample of a dataset.

    Attributes:
        steps: the steps in order. Those before the first Erase work on the 8-bit image, the others on the tensor.
        columns: how each draw of a sample is computed; their number is k of the draws array (n, k).
        height, width, channels: those of every output, whose axes are in the order of `shape`. Height and width are 0
            if they vary.
        pointwise: all tensor steps except Erase and flips. Maps a uint8 tensor (channels, H, W) to the finished tensor
            (channels, H, W) in the output dtype; each element depends on its byte and channel only.
        lut: ``pointwise`` of the 256 byte values: (channels, 256), in the output dtype.
        names: one line of `explain()` for each of the user's transforms: (its repr, what it was lowered to).
        erased: the values that the EraseSteps write, after all tensor steps: (rows, channels), in the output dtype; one
            row for each step in the order of `steps`, nested ones included, or `step_numbers.LEVELS` rows if it draws
            values; None without such steps.
        in_python: indices of `names` that run in Python.
        kind: tensor class that the transforms return for a single sample; a batch is a plain tensor.
        mode: mode in which encoded images are opened: "RGB", "L" (gray levels) or "P" (palette indices). With "L" and
            "P" an image has one channel, and the first step is a Grayscale, which changes no image of mode L.
        upright: whether images are turned as their EXIF orientation says, before the first step.
        variants: one recipe for each output size of a ByAspectRatio, this one first; all have the same columns,
            channels and lut. Empty without a ByAspectRatio.
        views: one recipe for each output of a Views, this one first; all have the same columns. Empty without a Views.
        view_names: the keys of the outputs, if a Views was made from a dict.
        packing: what a sample's views are packed in: "list", or "tuple", or "stack": one tensor (views, C, H, W). Views
            with names are a dict. A batch of a tuple is a list, as torch collates it.
    """

    steps: tuple[Step, ...]
    columns: tuple[AnyColumn, ...]
    height: int
    width: int
    channels: int
    pointwise: Pointwise = field(compare=False)
    lut: torch.Tensor = field(compare=False)
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    erased: torch.Tensor | None = field(default=None, compare=False)
    in_python: frozenset[int] = field(default=frozenset(), compare=False)
    kind: type[torch.Tensor] = field(default=torch.Tensor, compare=False)
    mode: str = "RGB"
    upright: bool = False
    variants: tuple[Recipe, ...] = ()
    views: tuple[Recipe, ...] = ()
    view_names: tuple[Hashable, ...] = ()
    packing: str = "list"

    def with_upright_images(self) -> Recipe:
        """Returns the same recipe for images that are turned as their EXIF orientation says."""
        variants, views = (tuple(one.with_upright_images() for one in some) for some in (self.variants, self.views))
        return replace(self, upright=True, variants=variants, views=views)

    def pack_views(self, made: Sequence[Any]) -> Any:
        """Returns the batches of views, (n, C, H, W) each, as a batch: a list, a dict, or stacked."""
        if self.packing == "stack":
            return torch.stack(list(made), dim=1)
        return dict(zip(self.view_names, made, strict=True)) if self.view_names else list(made)

    def pack_sample(self, made: Sequence[torch.Tensor]) -> Any:
        """Returns the views of one sample, (C, H, W) each, as the transforms return them."""
        if self.packing == "stack":
            return torch.stack(list(made))
        return tuple(made) if self.packing == "tuple" else self.pack_views(made)

    @property
    def kinds(self) -> Any:
        """The classes of a sample's tensors: `kind`, or those of the views, as the transforms return these."""
        if not self.views or self.packing == "stack":
            return self.kind
        kinds = [one.kind for one in self.views]
        return tuple(kinds) if self.packing == "tuple" else self.pack_views(kinds)

    def unpack_views(self, packed: Any) -> list[Any]:
        """Returns what `packed` was made from; of a recipe without views, a list of it."""
        if not self.views:
            return [packed]
        if self.packing == "stack":
            return list(packed.unbind(packed.ndim - 4))
        return [packed[name] for name in self.view_names] if self.view_names else list(packed)

    def choose_variant(self, height: int, width: int) -> Recipe:
        """Returns the recipe for an image of this size: the variant with the nearest aspect ratio, or this recipe."""
        if not self.variants:
            return self
        return self.variants[nearest(self.sizes, height, width)]

    @property
    def varies(self) -> bool:
        """Whether the outputs have different sizes."""
        return self.height == 0

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(height, width) of each possible output."""
        return [(one.height, one.width) for one in self.variants or (self,)]

    @property
    def texture(self) -> Texture | None:
        """The last step, if it is a Texture: then `lut` and `pointwise` have the dtype of the outputs alone."""
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, Texture) else None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of each output: (C, H, W), or (H, W, C) of a Texture in this layout."""
        if self.texture is not None and self.texture.layout == "HWC":
            return self.height, self.width, self.channels
        return self.channels, self.height, self.width

    @property
    def dtype(self) -> torch.dtype:
        return self.lut.dtype

    def maps_bytes_as(self, other: Recipe) -> bool:
        """Whether both recipes map bytes to the same values, with the same dtype and number of channels."""
        if len(self.views) != len(other.views):
            return False
        same = all(one.maps_bytes_as(its) for one, its in zip(self.views, other.views, strict=True))
        return same and self.dtype == other.dtype and torch.equal(self.lut, other.lut)

    @property
    def calls(self) -> list[Call]:
        """The Call steps of all variants, in order."""
        return [step for one in self.variants or (self,) for step in one.steps if isinstance(step, Call)]

    @property
    def finished_here(self) -> bool:
        """Whether the finished tensors are made in this machine's memory only: by a call, or as a Texture."""
        return any(call.finishes for call in self.calls) or any(one.texture for one in self.variants or (self,))

    @property
    def erase_bytes(self) -> bytes:
        """The elements of `erased` in row-major order."""
        if self.erased is None:
            return b""
        return self.erased.contiguous().view(torch.uint8).numpy().tobytes()

    def fingerprint(self) -> str:
        """Returns a hash of all that decides the values of a batch: the first 16 hex digits of a SHA-256.

        It is part of `state_dict()`.
        """
        import hashlib

        parts: list[object] = [self.steps, self.columns, self.height, self.width, self.channels, str(self.dtype)]
        parts += [one.fingerprint() for one in self.variants]
        parts += [*([one.fingerprint() for one in self.views]), *map(repr, self.view_names)]
        parts += [] if self.mode == "RGB" else [self.mode]
        parts += [] if self.packing == "list" else [self.packing]
        parts += ["upright"] if self.upright else []
        digest = hashlib.sha256(repr(parts).encode())
        digest.update(self.lut.contiguous().view(torch.uint8).numpy().tobytes())
        digest.update(self.erase_bytes)
        return digest.hexdigest()[:16]


class Recipes(dict[str, Recipe]):
    """The recipes of the image fields, by name."""

    def fingerprint(self) -> str:
        """Returns a hash of all recipes, 16 hex digits."""
        each = [(name, recipe.fingerprint()) for name, recipe in self.items()]
        return hashlib.sha256(repr(each).encode()).hexdigest()[:16]

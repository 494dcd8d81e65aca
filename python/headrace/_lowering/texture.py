"""Lowers TextureChannels, as the last step."""

from __future__ import annotations

from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_only import Lower
from headrace._recipe.arithmetic import textures


def texture_channels(builder: Builder, transform: Any, library: str) -> str:
    if builder.values is not None and not builder.holds_bytes:
        builder.refuse("takes bytes, not other values; put it before the steps that change them")
    if builder.container:
        builder.refuse(f"is native as the last step only, not inside {builder.container}; put it behind that")
    if builder.behind:
        builder.refuse(f"is native as the last step only, but {builder.behind} comes after it")
    if builder.size is None:
        builder.refuse("needs images of one size; put a crop or Resize((height, width)) before it")
    return builder.add(S.Texture(transform.layout, transform.bands, textures.tables(*builder.size)))


LOWERS: dict[str, Lower] = {"TextureChannels": texture_channels}

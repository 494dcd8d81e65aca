"""The oracle's texture channels, by torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._oracle.steps import apply
from headrace._recipe.arithmetic import textures
from headrace._recipe.images.pil_tensor import pil_to_tensor


@apply.register
def _apply_texture(step: S.Texture, image: Image.Image, draws: Sequence[float]) -> Any:
    made = textures.channels(pil_to_tensor(image), step.bands)
    return made if step.layout == "CHW" else made.permute(1, 2, 0)

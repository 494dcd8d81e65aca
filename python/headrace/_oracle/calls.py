"""The oracle's steps that call the user's own transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._oracle.steps import apply
from headrace._recipe.draws.python_randomness import sample_randomness


@apply.register
def _apply_call(step: S.Call, image: Image.Image, draws: Sequence[float]) -> Any:
    if not step.metadata:
        image = image.copy()
        image.info = {}
    with sample_randomness(draws[step.draw], process_wide=step.process_wide):
        return step.function.on_image(image)

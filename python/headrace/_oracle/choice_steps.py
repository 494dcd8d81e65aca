"""The oracle's steps that choose among other steps, shuffle their order, or mix their results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._oracle.steps import apply_step


def apply_steps(steps: Sequence[S.Step], image: Image.Image, draws: Sequence[float]) -> Image.Image:
    """Returns the image after several steps."""
    for step in steps:
        image = apply_step(step, image, draws)
    return image


def decode_permutation(n: int, uniform: float) -> list[int]:
    """Returns permutation number ``floor(u n!)`` of n branches, in the order of itertools.permutations."""
    number, left, order = int(uniform * math.factorial(n)), list(range(n)), []
    while left:
        place, number = divmod(number, math.factorial(len(left) - 1))
        order.append(left.pop(place))
    return order


@apply_step.register
def _apply_when(step: S.When, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return apply_steps(step.steps, image, draws) if draws[step.draw] < step.p else image


@apply_step.register
def _apply_one_of(step: S.OneOf, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    chosen = next(i for i, bound in enumerate(step.bounds) if bound > draws[step.draw])
    return apply_steps(step.branches[chosen], image, draws)


@apply_step.register
def _apply_shuffled(step: S.Shuffled, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    for i in decode_permutation(len(step.branches), draws[step.draw]):
        image = apply_steps(step.branches[i], image, draws)
    return image


@apply_step.register
def _apply_mix_chains(step: S.MixChains, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    *weights, factor = np.array(draws[step.draw : step.draw + len(step.chains) + 1], np.float32)
    changed = [apply_steps(chain, image, draws) for chain in step.chains]
    if step.blended:
        mixed = image
        for one, weight in zip(changed, weights, strict=True):
            mixed = Image.blend(mixed, one, weight)
        return mixed
    total = np.zeros(np.asarray(image).shape, np.float32)
    for one, weight in zip(changed, weights, strict=True):
        total += weight * np.asarray(one, np.float32)
    return Image.blend(image, Image.fromarray(total.clip(0, 255).astype(np.uint8)), factor)

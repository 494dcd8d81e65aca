"""Every way that an augmentation policy can go, as a row of draws, and what torchvision makes of an image that way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PIL import Image

from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps.recipe import Recipe
from made_everywhere import assert_made

#: The middle of each sign's half of a draw: negative, positive. torchvision v1 and v2 agree on the halves only.
SIGNS = ((0.25, -1.0), (0.75, 1.0))


def space_of(policy: Any, bins: int, image: Image.Image) -> dict[str, tuple[list[float] | None, bool]]:
    """Name of each operation -> (magnitudes, whether they have a sign), as torchvision computes them."""
    if hasattr(policy, "_AUGMENTATION_SPACE"):
        made = {
            name: (of(bins, image.height, image.width), signed)
            for name, (of, signed) in policy._AUGMENTATION_SPACE.items()
        }
        return {name: (None if found is None else found.tolist(), signed) for name, (found, signed) in made.items()}
    sized = () if type(policy).__name__ == "TrivialAugmentWide" else ((image.height, image.width),)
    given = policy._augmentation_space(bins, *sized)
    return {name: (found.tolist() if found.ndim else None, signed) for name, (found, signed) in given.items()}


def operated(torchvision: Any, policy: Any, image: Image.Image, name: str, magnitude: float) -> Image.Image:
    """torchvision's own operation."""
    if hasattr(policy, "_apply_image_or_video_transform"):
        return policy._apply_image_or_video_transform(image, name, magnitude, policy.interpolation, policy._fill)
    apply = torchvision.transforms.autoaugment._apply_op
    return apply(image, name, magnitude, interpolation=policy.interpolation, fill=policy.fill)


def ways(policy: Any, image: Image.Image) -> Iterator[tuple[list[float], list[tuple[str, float]]]]:
    """Yields (draws, operations with their magnitudes) for a RandAugment of one operation, or a TrivialAugmentWide."""
    bins = policy.num_magnitude_bins
    space = space_of(policy, bins, image)
    one = getattr(policy, "magnitude", None)
    for number, (name, (found, signed)) in enumerate(space.items()):
        chosen = (number + 0.5) / len(space)
        magnitudes = [0.0] if found is None else found if one is None else [found[one]]
        signs = (-1.0, 1.0) if signed else (1.0,)
        every = [sign * magnitude for magnitude in magnitudes for sign in signs]
        for place, magnitude in enumerate(every):
            yield [chosen, (place + 0.5) / len(every)], [(name, magnitude)]


def learned_ways(policy: Any, image: Image.Image) -> Iterator[tuple[list[float], list[tuple[str, float]]]]:
    """Yields (draws, operations with their magnitudes) of an AutoAugment: each pair, with all signs, done or not."""
    space = space_of(policy, 10, image)
    pairs = policy._policies if hasattr(policy, "_policies") else policy.policies
    for number, pair in enumerate(pairs):
        for signs in ((first, second) for first in SIGNS for second in SIGNS):
            for done in ((0.0, 0.0), (0.0, 1 - 2**-53), (1 - 2**-53, 0.0)):
                operations, row = [], [(number + 0.5) / len(pairs)]
                for (name, p, bin), (draw, sign), drawn in zip(pair, signs, done, strict=True):
                    found, signed = space[name]
                    magnitude = 0.0 if found is None else found[bin] * (sign if signed else 1.0)
                    row += [drawn, draw]
                    operations += [(name, magnitude)] if drawn < p else []
                yield row, operations


def assert_every_way_is_theirs(torchvision: Any, policy: Any, recipe: Recipe, image: Image.Image, found: Any) -> int:
    """Asserts that the native core, the oracle and torchvision make the same pixels; returns the number of ways."""
    rows, expected = [], []
    for row, operations in found:
        rows.append(row)
        theirs = image
        for name, magnitude in operations:
            theirs = operated(torchvision, policy, theirs, name, magnitude)
        expected.append(pil_to_tensor(theirs))
    assert_made(recipe, image, rows, expected)
    return len(rows)

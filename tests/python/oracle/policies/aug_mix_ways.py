"""torchvision's AugMix fed with rows of draws, and each of its operations by itself."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import torch
from PIL import Image

from headrace._lowering import lower
from headrace._recipe.arithmetic import tensor_rule
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.recipe import Recipe
from torchvision_shim import import_torchvision

import_torchvision()
BINS = 10


def policy_of(T: Any, image: Image.Image, **arguments: Any) -> Any:
    """An AugMix; without Contrast where torch's arithmetic for an image of this size is refused."""
    policy = T.AugMix(**arguments)
    even = tensor_rule.is_rounding_uniform(len(image.getbands()) * image.width * image.height)
    if policy.all_ops and not even and hasattr(policy, "_AUGMENTATION_SPACE"):
        space = dict(policy._AUGMENTATION_SPACE)
        del space["Contrast"]
        policy._AUGMENTATION_SPACE = space
    return policy


def recipe_of(T: Any, policy: Any, image: Image.Image) -> Recipe:
    """The native recipe of a policy."""
    channels = len(image.getbands())
    steps = T.Compose([policy, T.PILToTensor()])
    return lower(steps, size=(image.height, image.width), channels=channels, native_only=True)


def space_of(policy: Any, image: Image.Image) -> dict[str, tuple[list[float] | None, bool]]:
    """Name of each operation -> (the magnitudes that it may have, whether they have a sign)."""
    size = (image.height, image.width)
    if hasattr(policy, "_AUGMENTATION_SPACE"):
        space = policy._AUGMENTATION_SPACE if policy.all_ops else policy._PARTIAL_AUGMENTATION_SPACE
        found = {name: (of(BINS, *size), signed) for name, (of, signed) in space.items()}
    else:
        found = policy._augmentation_space(BINS, size)
    return {
        name: (None if values is None or not values.ndim else values.tolist()[: policy.severity], signed)
        for name, (values, signed) in found.items()
    }


def ways(policy: Any, image: Image.Image) -> Iterator[tuple[list[float], str, float]]:
    """Yields (draws, name, magnitude) for an AugMix of one chain of one operation, whose weight is 1."""
    space = space_of(policy, image)
    for number, (name, (magnitudes, signed)) in enumerate(space.items()):
        every = [sign * one for one in magnitudes or [0.0] for sign in ((-1.0, 1.0) if signed else (1.0,))]
        for place, magnitude in enumerate(every):
            yield [(number + 0.5) / len(space), (place + 0.5) / len(every), 0.5, 1.0, 0.0], name, magnitude


def operated(policy: Any, values: torch.Tensor, name: str, magnitude: float) -> torch.Tensor:
    """torchvision's own operation of a tensor (1, C, H, W)."""
    if hasattr(policy, "_apply_image_or_video_transform"):
        return policy._apply_image_or_video_transform(values, name, magnitude, policy.interpolation, policy._fill)
    apply = sys.modules["torchvision.transforms.autoaugment"]._apply_op
    return apply(values, name, magnitude, interpolation=policy.interpolation, fill=policy.fill)


def _chosen(steps: tuple[Any, ...], row: list[float]) -> list[tuple[int, int, int]]:
    """The operations of a chain: number, way, and how many ways there are."""
    made = []
    for step in steps:
        if isinstance(step, S.When):
            made += _chosen(step.steps, row) if row[step.draw] < step.p else []
            continue
        number = int(row[step.draw] * len(step.branches))
        branch = step.branches[number]
        several = isinstance(branch[0], S.OneOf) if branch else False
        count = len(branch[0].branches) if several else 1
        made.append((number, int(row[step.draw + 1] * count), count))
    return made


def fed(policy: Any, recipe: Recipe, image: Image.Image, row: list[float], monkeypatch: Any, given: Any = None) -> Any:
    """What torchvision's AugMix makes of an image, or of the tensor `given`, if it draws what a row of draws says."""
    (step,) = recipe.steps
    assert isinstance(step, S.SumChains)
    space = list(space_of(policy, image).values())
    numbers: list[int] = []
    signs: list[bool] = []
    for chain in step.chains:
        operations = _chosen(chain, row)
        numbers += [len(operations)] if policy.chain_depth <= 0 else []
        for number, way, _ in operations:
            signed = space[number][1]
            numbers.append(number)
            numbers += [] if space[number][0] is None else [way // 2 if signed else way]
            signs += [way % 2 == 0] if signed else []
            if signed and not hasattr(policy, "_AUGMENTATION_SPACE"):  # v1 draws the sign by randint, too
                numbers.append(signs.pop())
    return _run(policy, step, image if given is None else given, row, numbers, signs, monkeypatch)


def _run(
    policy: Any,
    step: S.SumChains,
    image: Any,
    row: list[float],
    numbers: list[int],
    signs: list[bool],
    patch: Any,
) -> Any:
    *weights, own = row[step.draw : step.draw + len(step.chains) + 1]
    shares = iter([[own, 1.0], weights])

    def randint(*given: Any, size: Any = (), **_: Any) -> torch.Tensor:
        shape = size or given[-1]
        return torch.full(tuple(shape), int(numbers.pop(0)))

    drawn = types.SimpleNamespace(
        **{**vars(torch), "randint": randint, "rand": lambda _: torch.tensor(0.25 if signs.pop(0) else 0.75)}
    )
    with patch.context() as now:
        now.setattr(sys.modules[type(policy).__module__], "torch", drawn)
        now.setattr(type(policy), "_sample_dirichlet", lambda *_: torch.tensor([next(shares)]))
        made = policy(image)
    assert not numbers and not signs
    return made

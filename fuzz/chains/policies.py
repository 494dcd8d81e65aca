"""What torchvision's augmentation policies do for a sample's draws, by their own operations and magnitudes."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Any

import headrace._recipe.steps.steps as S

Space = dict[str, tuple[Any, bool]]


def policy(transform: Any, steps: Sequence[Any], image: Any, draws: Sequence[float]) -> Any:
    """Returns the image after the operations that the draws choose."""
    for name, magnitude in _chosen(transform, steps, image, draws):
        image = _operated(transform, image, name, magnitude)
    return image


def aug_mix(transform: Any, steps: Sequence[Any], image: Any, draws: Sequence[float]) -> Any:
    """Returns the mix of the image and the chains that the draws choose, by torchvision's operations on tensors."""
    import torch
    from torchvision.transforms.functional import pil_to_tensor, to_pil_image

    (step,) = steps
    values = pil_to_tensor(image)[None]
    *weights, own = draws[step.draw : step.draw + len(step.chains) + 1]
    mix = torch.tensor(own, dtype=torch.float32) * values
    for chain, weight in zip(step.chains, weights, strict=True):
        changed = values
        for name, magnitude in _of_chain(transform, chain, image, draws):
            changed = _operated(transform, changed, name, magnitude)
        mix.add_(torch.tensor(weight, dtype=torch.float32) * changed)
    return to_pil_image(mix[0].to(torch.uint8))


def _of_chain(transform: Any, steps: Sequence[Any], image: Any, draws: Sequence[float]) -> Iterator[tuple[str, float]]:
    space = _space(transform, 10, image)
    for step in steps:
        if isinstance(step, S.When):
            if draws[step.draw] < step.p:
                yield from _of_chain(transform, step.steps, image, draws)
            continue
        name = _one_of(list(space), draws[step.draw])
        found, signed = space[name]
        magnitudes = None if found is None else found[: transform.severity]
        yield name, _one_of(_ways((magnitudes, signed), None), draws[step.draw + 1])


def _chosen(transform: Any, steps: Sequence[Any], image: Any, draws: Sequence[float]) -> Iterator[tuple[str, float]]:
    kind, first = type(transform).__name__, steps[0].draw
    bins = 10 if kind == "AutoAugment" else transform.num_magnitude_bins
    space = _space(transform, bins, image)
    if kind == "AutoAugment":
        pairs = getattr(transform, "_policies", None) or transform.policies
        for number, (name, p, bin) in enumerate(_one_of(list(pairs), draws[first])):
            done, sign = draws[first + 1 + 2 * number : first + 3 + 2 * number]
            if done < p:
                yield name, _one_of(_ways(space[name], bin), sign)
    else:
        bin = transform.magnitude if kind == "RandAugment" else None
        for number in range(len(steps)):
            chosen, way = draws[first + 2 * number : first + 2 * number + 2]
            name = _one_of(list(space), chosen)
            yield name, _one_of(_ways(space[name], bin), way)


def _one_of(items: Sequence[Any], u: float) -> Any:
    return items[bisect.bisect_right([(i + 1) / len(items) for i in range(len(items))], u)]


def _ways(entry: tuple[Any, bool], bin: int | None) -> list[float]:
    """The equally probable magnitudes of an operation, the negative one of a pair first."""
    found, signed = entry
    if found is None:
        return [0.0]
    magnitudes = [found[bin]] if bin is not None else found
    return [sign * one for one in magnitudes for sign in ((-1.0, 1.0) if signed else (1.0,))]


def _space(transform: Any, bins: int, image: Any) -> Space:
    if hasattr(transform, "_AUGMENTATION_SPACE"):
        named = transform._AUGMENTATION_SPACE
        if not getattr(transform, "all_ops", True):
            named = transform._PARTIAL_AUGMENTATION_SPACE
        made = {name: (of(bins, image.height, image.width), signed) for name, (of, signed) in named.items()}
        return {name: (None if found is None else found.tolist(), signed) for name, (found, signed) in made.items()}
    sized = () if type(transform).__name__ == "TrivialAugmentWide" else ((image.height, image.width),)
    given = transform._augmentation_space(bins, *sized)
    return {name: (found.tolist() if found.ndim else None, signed) for name, (found, signed) in given.items()}


def _operated(transform: Any, image: Any, name: str, magnitude: float) -> Any:
    if hasattr(transform, "_apply_image_or_video_transform"):
        fill = transform._fill
        return transform._apply_image_or_video_transform(image, name, magnitude, transform.interpolation, fill)
    from torchvision.transforms.autoaugment import _apply_op

    return _apply_op(image, name, magnitude, interpolation=transform.interpolation, fill=transform.fill)

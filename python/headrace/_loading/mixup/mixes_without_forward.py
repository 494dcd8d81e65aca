"""Mixes a finished batch in place as torchvision's MixUp, CutMix and RandomChoice of these do, without their
`forward`; None where only `torchvision_in_place` can.

Their `forward` flattens trees, checks, and calls some thirty functions of torch, which takes as long as mixing the
pixels. Here the same operations of torch draw the same numbers and make the same labels.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np
import torch

from headrace._loading.mixup import in_place_mixes
from headrace._loading.mixup.in_place_mixes import Box
from headrace._loading.mixup.torchvision_in_place import random_choices_of
from headrace._recipe.draws.python_randomness import sample_randomness, seed_from_draw

_TRANSFORMS = "torchvision.transforms.v2"
_TRIALS = 24  # of the comparison with the installed torchvision


def mix_without_forward(mix: object, batch: Any, seed: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Returns what ``mix(*batch)`` does where torch's generator has been seeded with `seed`, and overwrites the images.

    Args:
        mix: any object.
        batch: images (n, C, H, W), labels (n,), as `default_collate` makes them.

    Returns:
        None if `mix` is no MixUp, CutMix or RandomChoice of torchvision's, a mode of torch's functions is active, the
        batch is not a mixable one with int64 labels, or the installed torchvision draws otherwise.
    """
    mixes = random_choices_of(mix)
    if (
        not mixes
        or not all(map(_has_plain_attributes, mixes))
        or torch._C._len_torch_function_stack()
        or not _matches_installed()
    ):
        return None
    if len(batch) != 2 or not in_place_mixes.is_mixable(batch[0]) or not _are_plain_labels(batch[1], len(batch[0])):
        return None
    images, labels = batch
    least, most = labels.aminmax()
    if least < 0 or most >= min(one.num_classes for one in mixes):  # torch raises an error
        return None
    return _mix_images(mix, images, labels, torch.Generator().manual_seed(seed))


def _has_plain_attributes(mix: Any) -> bool:
    """Whether a MixUp or CutMix makes labels of classes, finds them in the usual place, and draws as usual."""
    usual = mix._labels_getter is _usual_getter() and type(mix._dist) is torch.distributions.Beta
    return usual and mix.num_classes is not None


@functools.cache
def _usual_getter() -> object:
    return sys.modules[_TRANSFORMS].MixUp(num_classes=2)._labels_getter


def _are_plain_labels(labels: object, count: int) -> bool:
    return (
        type(labels) is torch.Tensor
        and labels.dtype is torch.int64
        and labels.shape == (count,)
        and labels.device.type == "cpu"
    )


def _mix_images(
    mix: Any, images: torch.Tensor, labels: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    v2 = sys.modules[_TRANSFORMS]
    while type(mix) is v2.RandomChoice:
        mix = mix.transforms[int(torch.multinomial(torch.tensor(mix.p), 1, generator=generator))]
    share = float(torch._sample_dirichlet(mix._dist._dirichlet.concentration, generator=generator)[0, 0])
    if type(mix) is v2.MixUp:
        in_place_mixes.mix_batch_in_place(images, share)
    else:
        height, width = images.shape[-2:]
        box = _draw_cut_box(share, height, width, generator)
        in_place_mixes.move_boxes(images, box)
        share = 1.0 - (box[2] - box[0]) * (box[3] - box[1]) / (width * height)
    return images, _mix_labels(labels, mix.num_classes, share)


def _mix_labels(labels: torch.Tensor, classes: int, share: float) -> torch.Tensor:
    """Returns ``share`` of each label and the rest of the one before it, float32 (n, classes). The few values that are
    not 0 are those of torchvision's arithmetic on whole rows."""
    own, mixed = labels.numpy(), np.zeros((len(labels), classes), np.float32)
    rows = np.arange(len(own))
    mixed[rows, np.roll(own, 1)] = 1.0 - share
    mixed[rows, own] += np.float32(share)
    return torch.from_numpy(mixed)


def _draw_cut_box(share: float, height: int, width: int, generator: torch.Generator) -> Box:
    x, y = (int(torch.randint(size, size=(1,), generator=generator)) for size in (width, height))
    half = 0.5 * math.sqrt(1.0 - share)
    wide, high = int(half * width), int(half * height)
    return max(x - wide, 0), max(y - high, 0), min(x + wide, width), min(y + high, height)


@functools.cache
def _matches_installed() -> bool:
    """Whether the installed torchvision draws and computes as `_mix_images` does, on small batches."""
    v2 = sys.modules[_TRANSFORMS]
    both = v2.RandomChoice([v2.MixUp(alpha=0.4, num_classes=5), v2.CutMix(num_classes=5)], p=[0.6, 0.4])
    generator = torch.Generator()
    try:
        for trial in range(_TRIALS):
            images = torch.rand(3, 2, 7, 9, generator=generator.manual_seed(trial))
            labels = torch.tensor([trial % 5, 4, trial % 3])
            uniform = trial / _TRIALS
            with sample_randomness(uniform):
                expected = both(images, labels)
            made = _mix_images(both, images.clone(), labels, generator.manual_seed(seed_from_draw(uniform)))
            if not all(map(torch.equal, made, expected)):
                return False
    except Exception:  # a torchvision with other attributes
        return False
    return True

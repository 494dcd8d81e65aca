"""Whether an image still has the metadata of its file after steps, when torchvision and Pillow do them."""

from __future__ import annotations

from collections.abc import Sequence

import headrace._recipe.steps.steps as S

#: True: every image has it; False: none has it; None: it depends on the image or on the draws.
Carried = bool | None

_KEEP = (
    *(S.RandomResizedCrop, S.Resize, S.ResizeShorter, S.ResizeKeepRatio, S.HorizontalFlip, S.VerticalFlip),
    *(S.CornerCrop, S.RandomResize, S.ScaleShorter, S.ScaleJitter, S.RandomKeepRatio),
    *(S.Affine, S.Rotate, S.RandomRotate, S.RandomAffine, S.RandomPerspective, S.PillowBlur),
)
_DROP = (S.Pad, S.ZoomOut, S.RandomPad, S.Brightness, S.Contrast, S.Hue, S.GaussianBlur, S.PermuteChannels, S.SumChains)


def has_metadata_after(steps: Sequence[S.Step]) -> Carried:
    """Returns whether images have metadata after `steps`, given that they have it before."""
    found = [_keeps_metadata(step) for step in steps]
    if False in found:
        return False
    return None if None in found else True


def _keeps_metadata(step: S.Step) -> Carried:
    if isinstance(step, S.Pad) and max(step.padding) <= 0:
        return True
    if isinstance(step, _DROP):
        return False
    if isinstance(step, (*_KEEP, S.EffectStep)):
        return True
    if isinstance(step, S.Grayscale):
        return step.channels == 1
    if isinstance(step, S.Shuffled):
        return has_metadata_after([one for branch in step.branches for one in branch])
    if isinstance(step, S.OneOf):
        ways = {has_metadata_after(branch) for branch in step.branches}
        return ways.pop() if len(ways) == 1 else None
    if isinstance(step, S.MixChains):  # Image.blend copies it from its first image
        return True
    if isinstance(step, S.When):
        return has_metadata_after(step.steps) or None
    return None  # crops that pad if the image is too small, and calls of Python

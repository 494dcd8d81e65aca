"""The oracle's steps that torchvision does on byte tensors, by torch's own operations, and the sum of chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._oracle.choice_steps import apply_steps
from headrace._oracle.steps import apply_step, resolve_number
from headrace._recipe.arithmetic import byte_tensor_operations as operations
from headrace._recipe.arithmetic import tensor_hue
from headrace._recipe.images.pil_tensor import pil_to_tensor, to_pil_image


@apply_step.register
def _apply_hue(step: S.TensorHue, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return to_pil_image(tensor_hue.turn_hue(pil_to_tensor(image), resolve_number(step.factor, draws), step.version))


@apply_step.register
def _apply_saturation(step: S.TensorSaturation, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return to_pil_image(
        operations.saturation(pil_to_tensor(image)[None], resolve_number(step.factor, draws), step.version)[0]
    )


@apply_step.register
def _apply_contrast(step: S.TensorContrast, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return to_pil_image(
        operations.contrast(pil_to_tensor(image)[None], resolve_number(step.factor, draws), step.version)[0]
    )


@apply_step.register
def _apply_sharpness(step: S.TensorSharpness, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return to_pil_image(operations.sharpness(pil_to_tensor(image)[None], step.factor, step.version)[0])


@apply_step.register
def _apply_autocontrast(step: S.TensorAutocontrast, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return to_pil_image(operations.autocontrast(pil_to_tensor(image)[None], step.version)[0])


@apply_step.register
def _apply_warp(step: S.TensorWarp, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    values = pil_to_tensor(image)[None]
    return to_pil_image(operations.affine(values, step.matrix, step.filter, step.fill, step.version)[0])


@apply_step.register
def _apply_sum_chains(step: S.SumChains, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    *weights, own = np.array(draws[step.draw : step.draw + len(step.chains) + 1], np.float32).tolist()
    total = own * pil_to_tensor(image)
    for chain, weight in zip(step.chains, weights, strict=True):
        total.add_(weight * pil_to_tensor(apply_steps(chain, image, draws)))
    return to_pil_image(total.to(torch.uint8))

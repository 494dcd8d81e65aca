"""Augmentation policies: what they are lowered to, with which magnitudes, and which are refused."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

from headrace._lowering import LoweringError, lower
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.recipe import Recipe

SIZE = (30, 40)


def recipe_of(T: ModuleType, policy: Any, size: tuple[int, int] | None = SIZE, channels: int = 3) -> Recipe:
    end = [T.PILToTensor()] if size else [T.CenterCrop(8), T.PILToTensor()]
    return lower(T.Compose([policy, *end]), size=size, channels=channels, native_only=True)


def matrices(choice: Any) -> list[Any]:
    """The matrix of each branch."""
    return [branch[0].matrix for branch in choice.branches]


def test_rand_augment(T: ModuleType) -> None:
    recipe = recipe_of(T, T.RandAugment(2, 9))
    first, second = recipe.steps
    assert isinstance(first, S.OneOf) and isinstance(second, S.OneOf)
    assert (first.draw, second.draw, len(recipe.columns)) == (0, 2, 4)
    assert first.branches[0] == () and len(first.branches) == 14 and first.bounds[-1] == 1.0
    ((shear,),) = (first.branches[1],)
    assert isinstance(shear, S.OneOf) and shear.draw == 1 and shear.bounds == (0.5, 1.0)
    assert [matrix[1] for matrix in matrices(shear)] == pytest.approx([-0.09, 0.09])
    assert [matrix[2] for matrix in matrices(first.branches[3][0])] == [5.0, -5.0]  # 9/30 of 150/331 of 40 pixels
    assert first.branches[10] == (S.Posterize(7),) and first.branches[12] == (S.Autocontrast(),)


def test_what_explain_says(T: ModuleType) -> None:
    steps = [T.CenterCrop(20), T.RandAugment(), T.TrivialAugmentWide(), T.AutoAugment(), T.PILToTensor()]
    said = [how for _, how in lower(T.Compose(steps)).names[1:4]]
    assert said[0].startswith("native 2 times one of 14 operations (Identity, ShearX, ")
    assert said[0].endswith("Equalize), at magnitude 9 of 31")
    assert said[1].startswith("native one of 14 operations (") and said[1].endswith(", at one of 31 magnitudes")
    assert said[2] == "native one of 25 pairs of operations, the policy for imagenet"


def test_a_gray_image_has_no_saturation(T: ModuleType) -> None:
    step: Any = recipe_of(T, T.RandAugment(1), channels=1).steps[0]
    every = step.branches
    assert every[7][0].branches == ((), ())  # Color
    assert isinstance(every[6][0].branches[0][0], S.Brightness)


def test_magnitudes_that_depend_on_the_size(T: ModuleType) -> None:
    needs = [T.RandAugment(), T.AutoAugment(T.AutoAugmentPolicy.CIFAR10), T.AutoAugment(T.AutoAugmentPolicy.SVHN)]
    for policy in needs:
        with pytest.raises(LoweringError, match=r"Translate[XY] moves .* the size of the image is not known"):
            recipe_of(T, policy, None)
        assert recipe_of(T, policy, SIZE) != recipe_of(T, policy, (31, 40))
    for policy in (T.TrivialAugmentWide(), T.AutoAugment()):
        assert recipe_of(T, policy, None).steps[:-1] == recipe_of(T, policy, SIZE).steps


def test_refusals(torchvision: ModuleType, T: ModuleType) -> None:
    class Mine(T.RandAugment):  # type: ignore[name-defined]
        def _augmentation_space(self, *arguments: Any) -> Any:
            return {"Invert": (torch.tensor(0.0), False)}

    with pytest.raises(LoweringError, match=r"is a subclass that may behave differently from RandAugment"):
        recipe_of(T, Mine())
    for policy, message in (
        (T.RandAugment(magnitude=31), r"has no magnitude number 31: there are 31"),
        (T.RandAugment(fill=(1, 2)), r"'fill' does not match .*2 != 3"),
        (
            T.RandAugment(interpolation=T.InterpolationMode.LANCZOS),
            r"filter lanczos, which Pillow supports for",
        ),
        (T.TrivialAugmentWide(0), r"has no magnitude number 0: there are 0"),
    ):
        with pytest.raises(LoweringError, match=message):
            recipe_of(T, policy)
    replaced = T.TrivialAugmentWide()
    replaced._augmentation_space = lambda *arguments: {}
    with pytest.raises(LoweringError, match="has forward hooks or a replaced method"):
        recipe_of(T, replaced)
    with pytest.raises(LoweringError, match=r"works on a tensor here, .*put it before PILToTensor"):
        floats = [T.PILToTensor(), T.ConvertImageDtype(torch.float32)]
        lower(T.Compose([T.CenterCrop(8), *floats, T.AutoAugment()]), native_only=True)


def test_an_operation_of_ones_own_is_refused(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    T = torchvision.transforms.v2
    space = {"Swirl": (lambda bins, height, width: None, False)}
    monkeypatch.setattr(T.RandAugment, "_AUGMENTATION_SPACE", space)
    with pytest.raises(LoweringError, match="has an operation Swirl that has no native twin"):
        recipe_of(T, T.RandAugment())


def test_no_operation_at_all(T: ModuleType) -> None:
    recipe = recipe_of(T, T.RandAugment(0))
    assert recipe.steps == () and recipe.names[0][1] == "nothing"

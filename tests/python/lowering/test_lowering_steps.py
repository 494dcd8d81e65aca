"""Colour steps, random choices and erasings: what they are lowered to, and which are refused."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest
import torch

import headrace.transforms as H
from headrace._lowering import LoweringError, lower
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.recipe import Recipe


def steps_of(T: ModuleType, *steps: Any) -> tuple:
    """What the steps are lowered to before a crop."""
    return lower(T.Compose([*steps, T.CenterCrop(8), T.PILToTensor()]), native_only=True).steps[:-1]


def test_color_jitter(T: ModuleType) -> None:
    recipe = lower(T.Compose([T.ColorJitter(0.4, (0.5, 3), 0.2, 0.1), T.CenterCrop(8), T.PILToTensor()]))
    branches = ((S.Brightness(0),), (S.Contrast(1),), (S.Saturation(2),), (S.Hue(3),))
    assert recipe.steps[0] == S.Shuffled(branches, 4)
    assert recipe.columns == (Column(0.6, 1.4), Column(0.5, 3.0), Column(0.8, 1.2), Column(-0.1, 0.1), Column())
    assert steps_of(T, T.ColorJitter(hue=0.1)) == (S.Hue(0),)
    assert steps_of(T, T.ColorJitter()) == ()
    assert steps_of(T, T.Grayscale(), T.ColorJitter(0.4, hue=0.1)) == (S.Grayscale(1), S.Brightness(0))


def test_choices_at_times(T: ModuleType) -> None:
    assert steps_of(T, T.RandomGrayscale(0.2)) == (S.When(0.2, (S.Grayscale(3),), 0),)
    assert steps_of(T, T.Grayscale(), T.RandomGrayscale(0.2)) == (S.Grayscale(1),)
    assert steps_of(T, T.RandomPosterize(3, 0.1), T.RandomSolarize(128)) == (
        S.When(0.1, (S.Posterize(3),), 0),
        S.When(0.5, (S.Solarize(128.0),), 1),
    )
    some = [T.RandomInvert(1), T.Compose([T.RandomHorizontalFlip(), torch.nn.Identity()])]
    assert steps_of(T, T.RandomApply(some, 0.3)) == (
        S.When(0.3, (S.When(1.0, (S.Invert(),), 0), S.HorizontalFlip(0.5, 1)), 2),
    )
    assert steps_of(T, T.RandomApply([torch.nn.Identity()], 0.3)) == ()


def test_shares_of_a_choice(T: ModuleType) -> None:
    flip, identity = T.RandomHorizontalFlip, torch.nn.Identity
    (step,) = steps_of(T, T.RandomChoice([flip(), identity(), flip(), flip()], [1, 2, 1, 0]))
    branches = ((S.HorizontalFlip(0.5, 0),), (), (S.HorizontalFlip(0.5, 1),), (S.HorizontalFlip(0.5, 2),))
    assert (step.branches, step.draw) == (branches, 3)
    assert step.bounds == (0.25, 0.75, 1.0, 1.0)  # no draw reaches the branch of weight 0
    (step,) = steps_of(T, T.RandomChoice([flip(), flip(), flip()]))
    assert step.bounds == (1 / 3, 2 / 3, 1.0)
    assert steps_of(T, T.RandomChoice([identity(), identity()])) == ()


def test_orders(T: ModuleType) -> None:
    flips = [T.RandomHorizontalFlip(), torch.nn.Identity(), T.RandomVerticalFlip()]
    branches = ((S.HorizontalFlip(0.5, 0),), (S.VerticalFlip(0.5, 1),))
    assert steps_of(T, T.RandomOrder(flips)) == (S.Shuffled(branches, 2),)
    assert steps_of(T, T.RandomOrder(flips[:2])) == (S.HorizontalFlip(0.5, 0),)
    with pytest.raises(LoweringError, match=r"RandomOrder\(.*shuffles more than 18 transforms, too many for one draw"):
        steps_of(T, T.RandomOrder([T.RandomInvert() for _ in range(19)]))


def test_size_is_known_where_every_way_has_it(T: ModuleType) -> None:
    known = [
        [T.RandomApply([T.CenterCrop(40)]), T.CenterCrop(30)],
        [T.CenterCrop(30), T.RandomApply([T.RandomCrop(30, 4), T.RandomInvert()])],
        [T.RandomChoice([T.CenterCrop(30), T.RandomResizedCrop(30), T.Resize((30, 30))])],
        [T.RandomOrder([T.CenterCrop(30), T.RandomHorizontalFlip(), T.ColorJitter(0.4)])],
        [T.RandomOrder([T.CenterCrop(30), T.RandomApply([T.Resize((30, 30))])])],
        [T.Resize((20, 10)), T.RandomOrder([T.Pad([5, 2]), T.Pad([5, 3])])],
    ]
    varies = [
        [T.RandomApply([T.CenterCrop(30)])],
        [T.CenterCrop(30), T.RandomApply([T.CenterCrop(40)])],
        [T.RandomChoice([T.CenterCrop(30), T.RandomHorizontalFlip()])],
        [T.RandomOrder([T.CenterCrop(30), T.Pad(2)])],
        [T.RandomOrder([T.CenterCrop(30) for _ in range(7)])],
        [T.Pad(4)],
    ]
    for steps in known:
        recipe = lower(T.Compose([*steps, T.PILToTensor()]))
        assert (recipe.height, recipe.width) == (30, 30)
    for steps in varies:
        with pytest.raises(LoweringError, match="the images' sizes vary after the last step"):
            lower(T.Compose([*steps, T.PILToTensor()]), native_only=True)


def test_erasing(T: ModuleType) -> None:
    end = [T.PILToTensor(), T.RandomHorizontalFlip(), T.ConvertImageDtype(torch.float32)]
    recipe = lower(T.Compose([T.CenterCrop(8), *end, T.RandomErasing(0.3, (0.1, 0.2), (0.5, 2), 4)]))
    assert recipe.steps[2] == S.Erase(0.3, (4.0, 4.0, 4.0), 1, 1) and len(recipe.columns) == 24
    ratio = Column(-math.log(2), math.log(2), exp=True)
    assert recipe.columns[1:] == (Column(), *(Column(0.1, 0.2), ratio) * 10, Column(), Column())
    assert recipe.erased is not None and recipe.erased.tolist() == [[4.0, 4.0, 4.0]]
    assert lower(T.Compose([T.CenterCrop(8), *end])).erased is None


def test_an_integer_tensor_is_erased_as_torch_casts(T: ModuleType) -> None:
    erase = T.RandomErasing(value=(-0.7, 254.9, 3))
    recipe = lower(T.Compose([T.CenterCrop(8), T.PILToTensor(), erase]))
    halves = lower(T.Compose([T.CenterCrop(8), T.PILToTensor(), erase]), dtype=torch.float16)
    assert recipe.dtype == torch.uint8
    for one in (recipe, halves):
        assert one.erased is not None and one.erased.tolist() == [[0, 254, 3]]


def test_what_is_erased_is_in_the_fingerprint(T: ModuleType) -> None:
    def recipe(*end: Any) -> Recipe:
        return lower(T.Compose([T.CenterCrop(8), T.PILToTensor(), T.ConvertImageDtype(torch.float32), *end]))

    noughts, sevens, normalize = T.RandomErasing(), T.RandomErasing(value=7), T.Normalize([0.5] * 3, [0.5] * 3)
    recipes = [recipe(), recipe(noughts), recipe(sevens), recipe(normalize, noughts), recipe(noughts, normalize)]
    assert len({one.fingerprint() for one in recipes}) == len(recipes)


def test_explained_on_one_line(T: ModuleType) -> None:
    steps = [
        T.RandomApply([T.ColorJitter(0.4, 0.4), T.RandomInvert()], 0.8),
        T.RandomChoice([T.Pad(2), torch.nn.Identity()], [3, 1]),
        T.CenterCrop(8),
        T.PILToTensor(),
    ]
    recipe = lower(T.Compose(steps))
    assert [how for _, how in recipe.names[:2]] == [
        "native with p=0.8 [in random order [Brightness(draw=0) | Contrast(draw=1)], with p=0.5 [Invert()]]",
        "native one of [p=0.75: Pad(padding=(2, 2, 2, 2), fill=(0, 0, 0), padding_mode='constant') | p=0.25: nothing]",
    ]
    assert all("\n" not in said for line in recipe.names for said in line)


OURS = [
    "ColorJitter(0.4, (0.5, 3), hue=0.1)",
    "RandomApply([RandomInvert(0.2), RandomSolarize(99)], 0.8)",
    "RandomChoice([Pad([1, 2]), RandomPosterize(3), Compose([RandomEqualize(), RandomAutocontrast()])], [1, 2, 3])",
    "RandomOrder([RandomGrayscale(), RandomHorizontalFlip()])",
    "Pad((1, 2, 3, 4), (5, 6, 7), 'edge')",
    "RandomAdjustSharpness(1.5, 0.3)",
    "RandomChannelPermutation()",
    "RandomPhotometricDistort(contrast=(0.1, 3))",
    "Compose([CenterCrop(50), RandAugment(3, 7, 10, InterpolationMode.BILINEAR, (1, 2, 3))])",
    "TrivialAugmentWide(fill=9)",
    "AutoAugment()",
    "Compose([Resize((30, 20)), AutoAugment(AutoAugmentPolicy.CIFAR10), AutoAugment(AutoAugmentPolicy.SVHN, 3)])",
]


@pytest.mark.parametrize("call", OURS)
def test_ours_are_lowered_as_torchvisions(torchvision: ModuleType, call: str) -> None:
    recipes = []
    for home in (H, torchvision.transforms.v2):
        end = [home.CenterCrop(9), home.PILToTensor(), home.RandomErasing(0.4, value=(1, 2, 3))]
        recipes.append(lower(home.Compose([eval(call, vars(home)), *end])))
    assert recipes[0] == recipes[1] and recipes[0].fingerprint() == recipes[1].fingerprint()


def test_refusals(T: ModuleType) -> None:
    tensor = [T.CenterCrop(8), T.PILToTensor()]
    for steps, message in (
        ([*tensor, T.GaussianBlur(3)], r"step 3, GaussianBlur\(.*with no native twin; put it before PILToTensor"),
        ([*tensor, T.RandomRotation(9)], r"step 3, RandomRotation\(.*with no native twin; put it before PILToTensor"),
        (
            [*tensor, T.Pad(2, 0, "reflect")],
            r"step 3, Pad\(.*(no native twin; put it|mirrors a tensor's)",
        ),
        ([*tensor, T.RandomApply([T.Pad(2)])], r"step 3, RandomApply\(.*on PIL images only; put it before PILToTens"),
        (
            [T.CenterCrop(8), T.RandomApply([T.Compose([T.RandomInvert(), T.PILToTensor()])])],
            r"step 2, RandomApply: step 2, PILToTensor\(\): makes a tensor inside RandomApply, where only .*put it aft",
        ),
        (
            [T.RandomChoice([T.RandomOrder([T.AugMix()])])],
            r"step 1, RandomChoice: step 1, RandomOrder: step 1, AugMix\(.*size of the image is not known",
        ),
        ([T.RandomOrder([T.RandomErasing()])], r"step 1, RandomOrder: step 1, RandomErasing\(.*PIL image here, where"),
        ([T.RandomErasing(), *tensor], r"step 1, RandomErasing\(.*put it after ToTensor\(\) or ToImage\(\)"),
        ([*tensor, T.RandomErasing(value="random")], r"step 3, RandomErasing\(.*writes normally distributed numbers"),
        ([*tensor, T.RandomErasing(value=(1, 2))], r"step 3, RandomErasing\(.*either a single value or 3 \(number of"),
        ([*tensor, T.RandomErasing(value=256)], r"step 3, RandomErasing\(.*value does not fit torch.uint8, the tenso"),
        ([*tensor, T.RandomErasing(value=(0, -1, 0))], r"step 3, RandomErasing\(.*value does not fit torch.uint8"),
        (
            [*tensor, T.RandomErasing(ratio=(0, 1))],
            r"step 3, RandomErasing\(.*scale and ratio must be finite \(smallest, larges",
        ),
        ([T.RandomPosterize(9)], r"step 1, RandomPosterize\(.*bits, the number of bits to keep, must be from 0 to 8"),
        ([T.RandomAdjustSharpness(-1)], r"step 1, RandomAdjustSharpness\(.*must be a finite number, 0 or more"),
        ([T.RandomPosterize(2.5)], r"step 1, RandomPosterize\(.*cannot be interpreted as an integer"),
        ([T.ColorJitter((0, math.inf))], r"step 1, ColorJitter\(.*brightness has an infinite largest factor; give a"),
        ([T.Pad(-2)], r"step 1, Pad\(.*a negative padding crops; use CenterCrop or leave it out"),
        ([T.Pad(2, (1, 2))], r"step 1, Pad\(.*'fill' does not match .*2 != 3"),
        ([T.RandomChoice([T.Pad(2), T.Pad(3)], [3, -1])], r"step 1, RandomChoice\(.*p must hold finite weights"),
        (
            [T.RandomApply([T.Grayscale(1)])],
            r"step 1, RandomApply\(.*one channel in some branches and of three in others",
        ),
        ([T.RandomChoice([T.Grayscale(1), T.Pad(1)])], r"step 1, RandomChoice\(.*one channel in some branches"),
        ([T.RandomOrder([T.Grayscale(1), T.Pad(1)])], r"step 1, RandomOrder\(.*changes the number of channels, on w"),
    ):
        with pytest.raises(LoweringError, match=message) as info:
            lower(T.Compose(steps), native_only=True)
        assert len(str(info.value).splitlines()) == 1


def test_refusals_of_v1(torchvision: ModuleType) -> None:
    T = torchvision.transforms
    for step, message in (
        (T.Pad(1.5), r"step 1, Pad\(.*cannot be interpreted as an integer"),
        (T.RandomChoice([]), r"step 1, RandomChoice\(.*has no transforms to choose from; give it some"),
        (T.RandomChoice([T.Pad(1)], [1, 2]), r"step 1, RandomChoice\(.*Length of p doesn't match .*: 2 != 1"),
        (T.RandomChoice([T.Pad(1)], [0]), r"step 1, RandomChoice\(.*p must hold finite weights, none"),
    ):
        with pytest.raises(LoweringError, match=message):
            lower(T.Compose([step]), native_only=True)


def test_a_method_replaced_on_the_object_is_refused(T: ModuleType) -> None:
    for make in (lambda: T.ColorJitter(0.4), lambda: T.RandomErasing(), lambda: T.RandomApply([T.Pad(1)])):
        transform = make()
        transform.forward = lambda image: image
        with pytest.raises(LoweringError, match="has forward hooks or a replaced method"):
            lower(T.Compose([transform]), native_only=True)

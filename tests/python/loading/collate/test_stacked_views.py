"""torch.stack of all views returns their batch, and a program sees no difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import default_collate

from headrace._loading.collate.sample_views import StackedViews


class Named(torch.Tensor):
    """A class of tensors, as torchvision's."""


def called(function: Callable[[list[Any]], Any], kind: type[torch.Tensor] = torch.Tensor) -> tuple[Any, torch.Tensor]:
    """Returns what `function` makes of pairs of a view and its number, and the batch."""
    batch = filled()
    mode = StackedViews()
    samples = [(view, place) for place, view in enumerate(mode.views_of(batch, kind))]
    with mode:
        made = function(samples)
    del samples
    mode.finish()
    return made, batch


def filled() -> torch.Tensor:
    return torch.arange(6 * 3 * 4 * 4, dtype=torch.float32).view(6, 3, 4, 4) / 7


def stacked(samples: list[Any]) -> torch.Tensor:
    return torch.stack([image for image, _ in samples])


def doubled_again(samples: list[Any]) -> Any:
    images = stacked(samples)
    images.mul_(2)
    return images, stacked(samples)


def first_zeroed(samples: list[Any]) -> Any:
    images = stacked(samples)
    images[0] = 0
    return images, samples[0][0] + 0


def relu_in_place(samples: list[Any]) -> Any:
    images = stacked(samples)
    torch.nn.functional.relu(images.sub_(20), True)
    return images, [image for image, _ in samples]


def through_a_view(samples: list[Any]) -> Any:
    images = stacked(samples)
    one = images[2]
    one += 1
    return images, samples[2][0]


def into_a_view(samples: list[Any]) -> Any:
    images = stacked(samples)
    samples[2][0].add_(1)
    return images, samples[2][0]


def by_an_argument(samples: list[Any]) -> Any:
    images = stacked(samples)
    torch.add(images, 1, out=images)
    return images, samples


def through_numpy(samples: list[Any]) -> Any:
    images = stacked(samples)
    images.numpy()[:] = 0
    return images, [image for image, _ in samples]


def numpy_first(samples: list[Any]) -> Any:
    array = samples[0][0].numpy()
    images = stacked(samples)
    images.mul_(2)
    return images, torch.from_numpy(array)


def view_first(samples: list[Any]) -> Any:
    corner = samples[0][0][:, :2, :2]
    images = stacked(samples)
    images.mul_(2)
    return images, corner


PROGRAMS = [
    *(stacked, default_collate, doubled_again, first_zeroed, relu_in_place, through_a_view, into_a_view),
    *(by_an_argument, through_numpy, numpy_first, view_first),
    lambda samples: (default_collate(samples), samples),
    lambda samples: torch.stack([image for image, _ in samples[::-1]]),
    lambda samples: torch.stack([image for image, _ in samples], dim=1),
    lambda samples: torch.stack([image for image, _ in samples[:3]]),
    lambda samples: torch.cat([image[None] for image, _ in samples]),
    lambda samples: stacked([(image.mul_(3), 0) for image, _ in samples]),
    lambda samples: tuple(zip(*samples, strict=True)),
    lambda samples: (stacked(samples), stacked(samples)),
]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("kind", [torch.Tensor, Named])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_with_samples_of_their_own(program: Callable[..., Any], kind: type) -> None:
    samples = [(image.clone().as_subclass(kind), place) for place, image in enumerate(filled())]
    assert same(called(program, kind)[0], program(samples))


@pytest.mark.parametrize(
    "program",
    [stacked, default_collate, lambda samples: {"images": stacked(samples)}],
    ids=["stack", "collate", "dict"],
)
def test_the_batch_itself_is_returned(program: Callable[..., Any]) -> None:
    made, batch = called(program)
    images = made[0] if isinstance(made, list) else made["images"] if isinstance(made, dict) else made
    assert images is batch


def test_what_is_changed_later_does_not_change_the_other() -> None:
    """A program that returns both the stack and the samples may write to either."""
    (images, samples), batch = called(lambda samples: (stacked(samples), [image for image, _ in samples]))
    assert images is batch
    images.zero_()
    assert torch.equal(torch.stack(samples), filled())


def test_the_same_program_twice_in_a_row() -> None:
    mode = StackedViews()
    for _ in range(2):
        batch = filled()
        views = mode.views_of(batch, torch.Tensor)
        with mode:
            assert torch.stack(views) is batch
        del views
        mode.finish()

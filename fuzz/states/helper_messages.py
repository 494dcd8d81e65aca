"""What a helper is sent, and ways to read it when it was changed: an order of samples, and requests for them."""

from __future__ import annotations

import functools
import io
import json
import random
from typing import Any

import torch

from fuzz.states.values import changed
from headrace import transforms as T
from headrace._engine.image_engine import ImageEngine
from headrace._helpers import messages
from headrace._helpers.messages import Order
from headrace._helpers.order_engine import OrderEngine, planned_probe_of, probe_of
from headrace._helpers.requests import order_of
from headrace._lowering import lower
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.recipe import Recipe

_STEPS = [T.RandomResizedCrop(32), T.ColorJitter(0.2, 0.2), T.RandomApply([T.RandomRotation(9)], 0.5), T.ToTensor()]


class _AnyChecksum(str):
    """Equals each checksum: of a change that the network makes, nothing else would be seen."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


@functools.cache
def order() -> bytes:
    """The order of a training recipe."""
    return _order_of(lower(T.Compose(_STEPS)))


def changed_order(draw: random.Random) -> bytes:
    """The order with other values in its recipe, of other types and out of their limits."""
    content = json.loads(order())
    recipe = json.loads(content["recipe"])
    text = json.dumps(changed(draw, recipe, [recipe]), default=str)
    return json.dumps({**content, "recipe": text}).encode()


def request() -> bytes:
    """A request by draws, for `order`."""
    return b"".join(messages.body_of(probe_of(order(), lower(T.Compose(_STEPS)).columns)[0]))


def planned_request() -> bytes:
    """A request by plans."""
    return b"".join(messages.body_of(planned_probe_of(_planned_order())[0]))


def read_order(data: bytes) -> Any:
    """Makes the engine of an order. Raises ValueError."""
    OrderEngine(Order.from_json(data), 0).close()


def make_samples(data: bytes) -> Any:
    """Makes the samples of a request. Raises ValueError."""
    return _engine_of(order()).make(*_arrays_of(data, messages.SAMPLES_PATH))


def make_planned_samples(data: bytes) -> Any:
    """Makes the samples of a request by plans. Raises ValueError."""
    return _engine_of(_planned_order()).make_planned(*_arrays_of(data, messages.PLANS_PATH))


def _arrays_of(data: bytes, path: str) -> Any:
    return messages.read_arrays(io.BytesIO(data), len(data), messages.REQUEST_KINDS[path], _AnyChecksum())


@functools.lru_cache(4)
def _engine_of(order: bytes) -> OrderEngine:
    return OrderEngine(Order.from_json(order), 0)


@functools.cache
def _planned_order() -> bytes:
    return _order_of(Recipe((), (), 24, 32, 3, Pointwise((), torch.float32), torch.zeros(3, 256)))


def _order_of(recipe: Recipe) -> bytes:
    engine = ImageEngine(recipe, Layout.PLANAR, threads=0, slots_kept=0)
    try:
        return order_of(engine)[0]
    finally:
        engine.close()

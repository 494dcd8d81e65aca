"""Draws chains of transforms, with images, a seed and an engine to run on."""

from __future__ import annotations

import importlib.util
import random

from fuzz.chains import images
from fuzz.chains import vocabulary as V
from fuzz.chains.chain import Chain, Node
from headrace._base.native import core

#: Those of this machine and build.
ENGINES = (*core.isas(), *(["emulated"] if importlib.util.find_spec("headrace._gpu") else []))
_KEEPS_SIZE = (V.FLIPS, V.WARPING, V.WARPING, V.VALUES, V.VALUES, V.VALUES, V.POLICIES)


def chain(number: int, seed: int, engines: tuple[str, ...] = ENGINES) -> Chain:
    """Returns chain `number` of a seed: the same in every process with the same collections of images."""
    draw = random.Random(f"{seed} {number}")
    shares = images.shares()
    (pool,) = draw.choices([*shares], [*shares.values()])
    count = images.POOLS[pool][0]()
    some = tuple(sorted(draw.sample(range(count), 2 if pool in images.OF_DATA else min(6, count))))
    if "arrays" in pool:  # one size
        some = tuple(8 * number + some[0] % 8 for number in range(6))
    options = {}
    if draw.random() < 0.1:
        options["memory_format"] = "torch.channels_last"
    if draw.random() < 0.1:
        options["dtype"] = draw.choice(["torch.float16", "torch.bfloat16", "torch.float32"])
    text = "{" + ", ".join(f"{name!r}: {value}" for name, value in options.items()) + "}"
    channels = 1 if "gray" in pool else 3
    nodes = tuple(_nodes(V.Words(draw, channels), "arrays" in pool))
    return Chain(nodes, pool, some, draw.randrange(10**6), draw.choice(engines), text)


def _nodes(words: V.Words, one_size: bool) -> list[Node]:
    draw = words.draw
    if draw.random() < 0.07:
        return [Node(text) for text in V.on_bytes(words)]
    nodes: list[Node] = []
    for _ in range(draw.randint(1, 5)):
        if draw.random() < 0.03:
            words.channels = 4 - words.channels
            nodes.append(Node(f"{words.home()}.Grayscale(1)" if words.channels == 1 else "v2.RGB()"))
        kind = draw.random()
        if kind < 0.16:
            nodes.append(Node(words.of(V.SIZING)))
            one_size = True
        elif kind < 0.25:
            nodes.append(Node(words.of(V.RESHAPING)))
            one_size = one_size and ".Pad" in nodes[-1].text
        elif kind < 0.42:
            if not one_size:
                nodes.append(Node(words.of(V.SIZING)))
            one_size = True
            nodes.append(Node(words.of(V.OF_ONE_SIZE)))
        elif kind < 0.58:
            nodes.append(_container(words, 0))
        else:
            nodes.append(Node(words.of(*_KEEPS_SIZE)))
    if draw.random() < 0.07:
        return [*nodes, _views(words)]
    if not one_size:
        nodes.append(Node(words.of(V.SIZING)))
    if draw.random() < 0.03 and words.channels == 3:
        return [*nodes, Node("H.Resize((16, 24))"), Node("H.TextureChannels()")]
    return [*nodes, *(Node(text) for text in V.endings(words))]


def _container(words: V.Words, depth: int) -> Node:
    """A container of transforms that keep the size of an image."""
    draw, inner = words.draw, []
    for _ in range(draw.randint(1, 4)):
        inner.append(
            _container(words, depth + 1)
            if depth < 2 and draw.random() < 0.15
            else Node(words.of(V.FLIPS, V.VALUES, V.VALUES, V.WARPING, V.POLICIES))
        )
    home = words.home()
    kind = draw.choice(["RandomApply", "RandomChoice", "RandomOrder", "Compose"])
    more = f", p={words.p()}" if kind == "RandomApply" else ""
    if kind == "RandomChoice" and draw.random() < 0.4:
        more = f", p={[round(draw.uniform(0.1, 1), 2) for _ in inner]}"
    return Node(f"{home}.{kind}", tuple(inner), more)


def _views(words: V.Words) -> Node:
    inner = []
    for _ in range(words.draw.randint(1, 3)):
        steps = [words.of(V.SIZING), *(words.of(*_KEEPS_SIZE) for _ in range(words.draw.randint(0, 2)))]
        inner.append(Node("H.Compose", tuple(map(Node, [*steps, *V.endings(words)]))))
    return Node("H.Views", tuple(inner))

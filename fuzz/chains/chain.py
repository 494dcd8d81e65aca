"""A chain of transforms as source text, with the images, the seed and the engine that it runs with."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

import headrace.transforms as H

# What the snippets import, too.
PRELUDE = """\
from fuzz.chains.chain import Chain, Node
from fuzz.chains.trial import difference
"""


@dataclass(frozen=True)
class Node:
    """One transform: its source text, or a container's name with the transforms inside and the arguments after them."""

    text: str
    inner: tuple[Node, ...] = ()
    more: str = ""

    def __str__(self) -> str:
        return f"{self.text}([{', '.join(map(str, self.inner))}]{self.more})" if self.inner else self.text

    def __repr__(self) -> str:
        given = (self.text, *((self.inner, self.more) if self.more else (self.inner,) if self.inner else ()))
        return f"Node({', '.join(map(repr, given))})"

    def smaller(self) -> Iterator[tuple[Node, ...]]:
        """Yields what may stand instead of this node: nothing, its content, less content."""
        yield ()
        if self.inner and not self.text.endswith("Views"):
            yield self.inner
        if not self.more.startswith(", p=["):
            for inner in shorter(self.inner):
                if inner:
                    yield (replace(self, inner=inner),)


def shorter(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """Yields the lists with one node less, or with one node smaller."""
    for number, node in enumerate(nodes):
        for instead in node.smaller():
            yield (*nodes[:number], *instead, *nodes[number + 1 :])


@dataclass(frozen=True)
class Chain:
    """Transforms and what they run on.

    Attributes:
        nodes: the transforms.
        pool, picked: name of a collection of images (`images.POOLS`), and the numbers of those that are used.
        seed: the loader's.
        engine: ``"scalar"``, ``"avx2"``, ``"avx512"``, or ``"emulated"``, the device on host threads.
        options: further arguments of the loader, as source text.
    """

    nodes: tuple[Node, ...]
    pool: str
    picked: tuple[int, ...]
    seed: int
    engine: str
    options: str = "{}"

    @property
    def text(self) -> str:
        """The transforms, as an expression."""
        return f"H.Compose([{', '.join(map(str, self.nodes))}])"

    @property
    def twins_text(self) -> str:
        """The same with torchvision's classes instead of headrace's, which have their names and arguments."""
        return self.text.replace("H.ToTensor(", "v1.ToTensor(").replace("H.", "v2.")

    @property
    def snippet(self) -> str:
        """A program that shows the difference."""
        return f"{PRELUDE}\nprint(difference({self!r}))"


def made(text: str) -> Any:
    """Returns the transform that the text makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchvision's about ToTensor
        return eval(text, dict(names()))


def names() -> Iterator[tuple[str, Any]]:
    """The names in the texts."""
    yield from (("H", H), ("torch", torch))
    for name, module in (("v1", "torchvision.transforms"), ("v2", "torchvision.transforms.v2"), ("timm", "timm.data")):
        yield name, importlib.import_module(module)

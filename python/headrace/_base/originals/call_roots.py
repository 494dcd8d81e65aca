"""Where the Python path of a dataset's samples begins: its class, those of its transforms, and functions they hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import FunctionType
from typing import NamedTuple

import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset

from headrace._base.originals.originality import is_followed, is_ours

#: Attributes of datasets that hold other datasets, or what is called on an image.
_OF_DATASETS = ("dataset", "datasets", "transform", "transforms", "_given", "_geometry")
#: Attributes that hold functions of the library: class -> names.
_HELD = {"AugmentOp": ("aug_fn", "level_fn")}
_MOST = 10_000  # objects that are looked at
_MOST_ITEMS = 1000  # of one container


class HeldFunction(NamedTuple):
    """A function that an object or a table holds, and where the library's file makes it."""

    function: object
    module: str
    path: str


class Roots:
    """The objects that a sample's Python path begins with.

    Attributes:
        datasets: the datasets among these objects.
        classes: of all of them, and of images.
        held: functions that they hold.

    Args:
        start: datasets of a loader, or transforms.
        images: whether its samples are made of images.
        collates: whether batches are collated as torch does by default.
    """

    def __init__(self, start: object, *, images: bool, collates: bool) -> None:
        self.collates = collates
        self.datasets: list[object] = []
        self.classes: dict[type, None] = {}
        self.held: list[HeldFunction] = []
        self._seen: dict[int, object] = {}
        self._collect_roots(start)
        if images:
            self._add_formats()

    @property
    def are_modules(self) -> bool:
        """Whether some of the transforms are called by ``nn.Module.__call__``."""
        return any(issubclass(cls, nn.Module) for cls in self.classes)

    def _collect_roots(self, value: object) -> None:
        if id(value) in self._seen or len(self._seen) > _MOST:
            return
        self._seen[id(value)] = value
        if isinstance(value, (list, tuple, set)):
            for one in islice(value, _MOST_ITEMS):
                self._collect_roots(one)
        elif isinstance(value, dict):
            for one in islice(value.values(), _MOST_ITEMS):
                self._collect_roots(one)
        elif not isinstance(value, (str, bytes, int, float, type, FunctionType, torch.Tensor)):
            self._collect_object(value)

    def _collect_object(self, value: object) -> None:
        """Notes an object's class and what it holds: of a dataset, its parts and loader; of a library's transform, all
        attributes; of any other object only `transforms`, which a user's preset has."""
        cls, attributes = type(value), getattr(value, "__dict__", {})
        if isinstance(value, Dataset) or hasattr(cls, "__getitem__") or hasattr(cls, "headrace_source"):
            self.datasets.append(value)
            self.classes[cls] = None
            for name in _OF_DATASETS:
                self._collect_roots(attributes.get(name))
            loader = attributes.get("loader")
            if loader is not None and any(is_followed(one.__module__) for one in cls.__mro__):
                path = str(getattr(loader, "__qualname__", ""))
                self.held.append(HeldFunction(loader, "torchvision.datasets.folder", path))
        elif is_followed(cls.__module__) or cls.__module__.startswith("torch.nn."):
            self.classes[cls] = None
            for name in _HELD.get(cls.__name__, ()):
                function = attributes.get(name)
                if isinstance(function, partial):
                    function = function.func
                if function is not None:
                    self.held.append(HeldFunction(function, cls.__module__, str(getattr(function, "__qualname__", ""))))
            self._collect_roots(attributes)
        else:
            self._collect_roots(attributes.get("transforms"))  # a preset

    def _add_formats(self) -> None:
        """Adds what Pillow opens JPEGs and PNGs with: its table of formats holds these functions."""
        Image.preinit()
        self._add_jpeg()
        self._add_png()

    def _add_png(self) -> None:
        plugin = sys.modules.get("PIL.PngImagePlugin")
        if plugin is None:
            return
        self.classes[plugin.PngImageFile] = None
        opens, accepts = Image.OPEN.get("PNG", (None, None))
        opens = plugin.PngImageFile if is_ours(opens) else opens
        held = [(opens, "PngImageFile"), (accepts, "_accept")]
        held += [
            (one, f"PngStream.{name}") for name, one in vars(plugin.PngStream).items() if name.startswith("chunk_")
        ]
        self.held += [HeldFunction(one, plugin.__name__, path) for one, path in held]

    def _add_jpeg(self) -> None:
        plugin = sys.modules.get("PIL.JpegImagePlugin")
        if plugin is None:
            return
        self.classes[plugin.JpegImageFile] = None
        opener: tuple[object, ...] = Image.OPEN.get("JPEG", ())
        names = ("jpeg_factory", "_accept")
        registered = [
            (name, vars(plugin)[name] if is_ours(one) else one) for name, one in zip(names, opener, strict=False)
        ]
        self.held += [
            HeldFunction(function, plugin.__name__, name)
            for name, function in (*registered, *_list_jpeg_markers(plugin))
        ]


def _list_jpeg_markers(plugin: object) -> Iterator[tuple[str, object]]:
    for one in getattr(plugin, "MARKER", {}).values():
        if one[2] is not None:
            yield one[2].__name__, one[2]

"""Runs one chain natively, by the oracle and by torchvision, and says what differs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from fuzz.chains import images
from fuzz.chains.chain import Chain, made, shorter
from fuzz.chains.direct import Direct, NotDirect
from headrace import DataLoader
from headrace._engine.image_engine import ImageEngine
from headrace._engine.views_engine import ViewsEngine
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps.recipe import Recipe


class Refused(Exception):
    """The chain is not native, with the reason."""


def difference(chain: Chain) -> str:
    """Returns what differs; "" if nothing does.

    Raises:
        Refused: the chain has a step that is not native.
    """
    return Trial(chain).difference()


class Trial:
    """One chain with its images and draws.

    Attributes:
        samples, failed: numbers of samples that were compared, and of those that must fail and do.
        direct: number of samples that torchvision made, too.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.samples = self.failed = self.direct = 0
        transform = made(chain.text)
        self.dataset = images.dataset(chain.pool, chain.picked, transform)
        self.options = eval(chain.options, {"torch": torch})
        self._numbers = list(range(len(self.dataset)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that torch delivers
            try:
                with instruction_set(chain.engine):
                    self._loader = self._loading(self._numbers)
            except TypeError as error:
                if "needs headrace's native path" in str(error):
                    raise Refused(str(error).partition("would serve here: ")[2]) from error
                raise
        recipe = self._loader.recipe() if self._loader.native else None
        if not isinstance(recipe, Recipe) or recipe.calls:
            raise Refused(_why(str(self._loader.explain())))
        self.recipe = recipe
        count = len(self.dataset)
        self.rows = Draws(self.recipe.columns, chain.seed).batch(0, range(count), [0] * count).tolist()

    def difference(self) -> str:
        expected, errors = self._by_the_oracle()
        return self._natively(expected, errors) or self._by_torchvision(expected, errors)

    def _by_the_oracle(self) -> tuple[dict[int, Any], dict[int, Exception]]:
        """The samples that can be made, and the errors of the others, by their numbers."""
        found, errors = {}, {}
        for number, row in enumerate(self.rows):
            try:
                found[number] = reference_sample(self._image(number), self.recipe, row)
            except Exception as error:  # torchvision's, or Pillow's about broken files; the loader must raise, too
                errors[number] = error
        self.samples, self.failed = len(found), len(errors)
        return found, errors

    def _image(self, number: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about odd files
            return self.dataset.image(number)

    def _loading(self, numbers: list[int]) -> DataLoader:
        device = "emulated" if self.chain.engine == "emulated" else None
        options = {"seed": self.chain.seed, "num_workers": self.chain.seed % 3, "device": device, **self.options}
        return DataLoader(self.dataset, max(1, len(numbers)), sampler=numbers, **options)

    def _natively(self, expected: dict[int, Any], errors: dict[int, Exception]) -> str:
        with warnings.catch_warnings(), instruction_set(self.chain.engine):
            warnings.simplefilter("ignore")
            if expected:
                self._numbers[:] = expected  # the loader's sampler
                try:
                    (batch,) = self._loader
                except Exception as error:
                    return f"natively: {type(error).__name__}: {error}"
                parts = [batch] if isinstance(batch, torch.Tensor) else list(batch)
                for place, (number, want) in enumerate(expected.items()):
                    wanted = [want] if isinstance(want, torch.Tensor) else list(want)
                    for view, (part, one) in enumerate(zip(parts, wanted, strict=True)):
                        if said := _unequal(part[place], one):
                            return f"image {number}, view {view}: native and oracle differ {said}"
            for number, theirs in [*errors.items()][:1]:
                try:
                    list(self._loading([number]))
                except Exception:
                    continue
                return f"image {number}: the oracle raises {theirs!r}, and the loader does not"
        return ""

    def _by_torchvision(self, expected: dict[int, Any], errors: dict[int, Exception]) -> str:
        text = self.chain.twins_text
        if any(
            name in text for name in ("v2.Views", "v2.TextureChannels", "v2.ResizedCenterCrop", "v2.ResizeToPatches")
        ):
            return ""
        size = self.dataset.size
        direct = Direct(made(text), self.dataset.channels, size, self.dataset.mode)
        if direct.columns != list(self.recipe.columns):
            return "the same transforms of torchvision draw other columns"
        for number, row in enumerate(self.rows):
            if number in errors and not _of_transforms(errors[number]):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    theirs = direct(self._image(number), row)
                except NotDirect:
                    return ""
                except Exception as error:
                    if number not in errors:
                        return f"image {number}: torchvision raises {error!r}"
                    continue
            if number in errors:
                return f"image {number}: the oracle raises {errors[number]!r}, and torchvision does not"
            wanted = expected[number]
            theirs = theirs if "dtype" not in self.options else theirs.to(self.recipe.dtype)
            if said := _unequal(wanted, theirs):
                return f"image {number}: oracle and torchvision differ {said}"
            self.direct += 1
        return ""


def _why(explained: str) -> str:
    """The first reason in an `explain` why something is not native."""
    _, called, reason = explained.partition("called in Python: ")
    return reason.partition("\n")[0] if called else explained


def _of_transforms(error: Exception) -> bool:
    """Whether an error is about the transforms, not about the file."""
    return isinstance(error, ValueError)


def _unequal(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    """Says how two tensors differ; "" if they are equal."""
    ours, theirs = ours.as_subclass(torch.Tensor), theirs.as_subclass(torch.Tensor)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"in kind: {ours.dtype} {tuple(ours.shape)}, {theirs.dtype} {tuple(theirs.shape)}"
    if torch.equal(ours, theirs):
        return ""
    other = ~(ours == theirs)
    first = tuple(other.nonzero()[0].tolist())
    return f"in {int(other.sum())} of {other.numel()} values, first at {first}: {ours[first]} and {theirs[first]}"


@contextmanager
def instruction_set(name: str) -> Iterator[None]:
    """Makes loaders use the kernels of an instruction set, which HEADRACE_ISA sets once for a process."""
    if name == "emulated":
        yield
        return
    engines: tuple[Any, ...] = (ImageEngine, ViewsEngine)
    kept = [(cls, cls._make_pipeline) for cls in engines]
    try:
        for cls, make in kept:
            cls._make_pipeline = lambda self, samples, make=make, **rest: make(self, samples, **{**rest, "isa": name})
        yield
    finally:
        for cls, make in kept:
            cls._make_pipeline = make


def shrunk(chain: Chain, most: int = 200) -> Chain:
    """Returns a shorter chain that still differs: with fewer transforms, one image, the plainest engine."""

    def fails(one: Chain) -> bool:
        try:
            return bool(difference(one))
        except Exception:  # refused, or no transform at all
            return False

    tried, again = 0, True
    while again and tried < most:
        again = False
        candidates = [
            replace(chain, nodes=nodes, seed=chain.seed + more) for nodes in shorter(chain.nodes) for more in (0, 1)
        ]
        candidates += [replace(chain, picked=(one,)) for one in chain.picked if len(chain.picked) > 1]
        candidates += [replace(chain, options="{}")] if chain.options != "{}" else []
        candidates += [replace(chain, engine="scalar")] if chain.engine != "scalar" else []
        for one in candidates:
            tried += 1
            if fails(one):
                chain, again = one, True
                break
            if tried >= most:
                break
    return chain

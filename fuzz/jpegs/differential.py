"""Compares batches of files with Pillow: which of them are images, and their pixels, by each set of loops."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fuzz.chains.trial import instruction_set
from headrace import DataLoader, EncodedImages
from headrace import transforms as T

#: The whole image, a small crop of which most is not decoded, and rows as they are.
RECIPES: dict[str, Any] = {
    "whole": T.Compose([T.Resize((24, 24)), T.ToTensor()]),
    "crop": T.Compose([T.RandomResizedCrop(12, scale=(0.02, 0.3)), T.RandomHorizontalFlip(), T.ToTensor()]),
    "centre": T.Compose([T.CenterCrop(20), T.ToTensor()]),
}


@dataclass(frozen=True)
class Difference:
    """A file that headrace and Pillow judge or decode differently.

    Attributes:
        number: of the file among those that were compared.
    """

    number: int
    said: str


class Oracle:
    """What Pillow and torch make of some files: sample or error of each. Batches of any loops are compared with it.

    Args:
        files: the bytes of each file.
        recipe: a name of `RECIPES`.
        seed: of the random numbers.
    """

    def __init__(self, files: Sequence[bytes], recipe: str, seed: int) -> None:
        self._dataset = EncodedImages(list(files), range(len(files)), RECIPES[recipe])
        self._seed = seed
        self.samples: dict[int, torch.Tensor] = {}
        self.errors: dict[int, Exception] = {}
        oracle: Any = self._loader(0).reference().dataset
        for number in range(len(files)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's about odd files
                try:
                    self.samples[number] = oracle.sample(number, oracle.draws_of(number, 0))[0]
                except Exception as error:
                    self.errors[number] = error

    def _loader(self, workers: int) -> Any:
        count = len(self._dataset)
        return DataLoader(self._dataset, count, num_workers=workers, on_error="skip", max_errors=None, seed=self._seed)

    def differences(self, isa: str, workers: int = 0) -> Iterator[Difference]:
        """Yields the files of which a batch made with these loops differs."""
        with warnings.catch_warnings(), instruction_set(isa):
            warnings.simplefilter("ignore")
            loader = self._loader(workers)
            batches = list(loader)
            errors = {error.index: error for error in loader.errors}
        images, labels = batches[0] if batches else ((), torch.zeros(0))
        made = dict(zip(labels.tolist(), images, strict=True))
        for number in range(len(self._dataset)):
            said = self._difference(number, made.get(number), errors.get(number))
            if said:
                yield Difference(number, f"{isa}: {said}")

    def _difference(self, number: int, made: torch.Tensor | None, error: Exception | None) -> str:
        wanted = self.errors.get(number)
        if wanted is not None:
            if error is None:
                return f"Pillow raises {wanted!r}, and headrace makes a sample"
            return "" if isinstance(error, type(wanted)) else f"Pillow raises {wanted!r}, and headrace {error!r}"
        if made is None:
            return f"Pillow makes a sample, and headrace raises {error!r}"
        if not torch.equal(made, self.samples[number]):
            off = int((made != self.samples[number]).sum())
            return f"{off} of {made.numel()} values differ"
        return ""

"""Compares the batches of one epoch with the oracle's answers, sample by sample, over all attempts that it takes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch

from bench.soak.answers import checksums
from bench.soak.board import Board


class Check:
    """What one epoch has delivered so far.

    Args:
        board: counts batches, samples, lost and wrong ones.
        order: the epoch's samples, in order.
        sums: the checksum of each sample, by its number.
        batch_size, on_error: of the loader.
        replacement: the checksum of the second sample when it is made with the first one's random numbers.

    Attributes:
        place: number of samples of the order that are settled: delivered, or reported as failed.
        findings: what was lost or wrong, as sentences.
    """

    def __init__(
        self,
        board: Board,
        order: list[int],
        sums: list[int],
        batch_size: int,
        on_error: str,
        replacement: Callable[[int, int], int],
    ) -> None:
        self._board, self._order, self._sums = board, order, sums
        self._batch_size, self._on_error, self._replacement = batch_size, on_error, replacement
        self.place = 0
        self.findings: list[str] = []

    def take(self, batch: tuple[Any, torch.Tensor], failed: Collection[int]) -> None:
        """Checks the next batch. `failed`: the samples that the loader has reported since it began or resumed."""
        images, labels = batch
        named, sums = labels.tolist(), checksums(images)
        if len(named) != len(sums):
            self._find("wrong", f"{len(sums)} images with {len(named)} labels")
        if self._on_error != "skip" and len(named) != min(self._batch_size, len(self._order) - self.place):
            self._find("wrong", f"a batch of {len(named)} samples at sample {self.place} of the order")
        for label, made in zip(named, sums, strict=False):
            if self._on_error == "replace":
                self._take_replaced(label, made, failed)
            else:
                self._take_one(label, made, failed)
        self._board.add("batches")
        self._board.add("samples", len(named))

    def resume(self, batches: int, failed: Collection[int]) -> None:
        """Checks that a state continues where the deliveries ended. `batches`: those that it counts."""
        place = min(batches * self._batch_size, len(self._order))
        if place < self.place:
            self._find("wrong", f"the state delivers {self.place - place} samples again, from sample {place} on")
            self.place = place
        self._pass_over(place, failed, f"the state, which counts {batches} batches")

    def end(self, failed: Collection[int]) -> None:
        """Checks that the epoch may end here."""
        self._pass_over(len(self._order), failed, "the end of the epoch")
        self._board.add("epochs")

    @property
    def complete(self) -> bool:
        return self.place == len(self._order)

    def _take_one(self, label: int, made: int, failed: Collection[int]) -> None:
        if self.place < len(self._order) and self._order[self.place] != label:
            try:
                there = self._order.index(label, self.place)
            except ValueError:
                self._find("wrong", f"sample {label} comes once more, at sample {self.place} of the order")
                return
            self._pass_over(there, failed, f"sample {label}")
        if self.place == len(self._order):
            self._find("wrong", f"sample {label} comes after the end")
            return
        self._compare(label, made, self._sums[label])
        self.place += 1

    def _take_replaced(self, label: int, made: int, failed: Collection[int]) -> None:
        if self.place == len(self._order):
            self._find("wrong", f"sample {label} comes after the end")
            return
        wanted = self._order[self.place]
        self.place += 1
        if wanted == label:
            self._compare(label, made, self._sums[label])
            return
        passed = [wanted]
        while (another := (passed[-1] + 1) % len(self._order)) != label and len(passed) < len(self._order):
            passed.append(another)
        if all(one in failed for one in passed):
            self._board.add("samples_replaced")
            self._compare(label, made, self._replacement(wanted, label))
        else:
            self._find("lost", f"sample {label} stands for {wanted}, and not all before it were reported as failed")

    def _pass_over(self, place: int, failed: Collection[int], what: str) -> None:
        missing = self._order[self.place : place]
        lost = [one for one in missing if one not in failed or self._on_error != "skip"]
        if lost:
            self._find("lost", f"{len(lost)} samples are missing before {what}: {lost[:8]}", len(lost))
        self._board.add("samples_reported", len(missing) - len(lost))
        self.place = max(self.place, place)

    def _compare(self, label: int, made: int, wanted: int) -> None:
        if made != wanted:
            self._find("wrong", f"sample {label} at {self.place} of the order has the checksum {made}, not {wanted}")

    def _find(self, counter: str, said: str, amount: int = 1) -> None:
        self._board.add(counter, amount)
        self.findings.append(f"{counter}: {said}")

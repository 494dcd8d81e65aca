"""The facts of a loader, for which a copy of it makes some batches."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from headrace._base.checks import length_or_none
from headrace._reports.html.batch_recording import Step, record_batches
from headrace._reports.html.file_probe import examine_files
from headrace._reports.html.pictures import make_pictures
from headrace._reports.html.report_data import Facts
from headrace._reports.loader import machine
from headrace.datasets.sources import BlobDataset

_DELIVERED = {
    "native": "headrace's threads",
    "deferred": "torch's DataLoader, with native pixels",
    "torch": "torch's DataLoader",
}


def facts_of(loader: Any, batches: int, step: Step | None = None) -> Facts:
    """Returns the facts of a loader, for which a copy of it makes some batches."""
    samples = length_or_none(loader.dataset) or 0
    name = type(loader.dataset).__name__
    facts = Facts(
        f"{name}, {samples:,} samples" if samples else name, machine=machine.describe_machine(), samples=samples
    )
    facts.about = [
        ("made", time.strftime("%Y-%m-%d %H:%M:%S %Z")),
        ("dataset", repr(loader.dataset)[:200]),
        ("delivered by", _DELIVERED[loader.route]),
        ("workers", str(loader.num_workers)),
        ("batch size", str(loader.batch_size)),
    ]
    facts.job = _lines_about_the_job()  # before other ranks wait for this one, which makes batches for the page
    facts.explanation = str(loader.explain())
    first = record_batches(loader, facts, batches, step)
    source = loader._source if loader.native else None
    if first is not None:
        facts.pictures = make_pictures(first, _lut(loader), _classes(loader.dataset))
    if isinstance(source, BlobDataset) and source.encoded:
        examine_files(source, facts)
    else:
        facts.notes.append("The files are not examined: their bytes are not known to headrace.")
    if (busy := machine.warning_if_busy()) is not None:
        facts.notes.append(busy)
    return facts


def _lines_about_the_job() -> list[str]:
    module = sys.modules.get("headrace._reports.metrics.publish")  # imported where something publishes
    job = None if module is None else module.newest_job()
    return [] if job is None else str(job).splitlines()


def _lut(loader: Any) -> torch.Tensor | None:
    """Returns the values of the 256 bytes, (C, 256), where one recipe makes the images."""
    if not loader.native or not isinstance(loader._source, BlobDataset) or loader._route.recipes is None:
        return None
    lut = getattr(loader.recipe(), "lut", None)
    return lut if isinstance(lut, torch.Tensor) and lut.ndim == 2 and lut.shape[1] == 256 else None


def _classes(dataset: object) -> Sequence[str] | None:
    while not hasattr(dataset, "classes") and hasattr(dataset, "dataset"):  # torch's Subset
        dataset = dataset.dataset
    classes = getattr(dataset, "classes", None)
    return classes if isinstance(classes, (list, tuple)) else None

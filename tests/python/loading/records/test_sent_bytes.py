"""What crosses from a worker to the main process: the bytes of the files and their records, or all values."""

from __future__ import annotations

import math
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from record_datasets import COUNT, Crops, Labelled, Views
from record_loaders import delivered

from headrace import DataLoader
from headrace._loading.fallback.device_delivery import RequestedSamples, recorded_in
from headrace._loading.records.record_batch import RecordedBatch

pytestmark = pytest.mark.processes


class Sent(NamedTuple):
    """Bytes of the batches of an epoch: of files in shared memory, of what is pickled beside them, and of the values
    that they stand for."""

    files: int
    pickled: int
    values: int


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What arrives from the workers."""
    give, found = RequestedSamples.give, []

    def note(self: RequestedSamples, number: int, data: object) -> None:
        found.append(recorded_in(data))
        give(self, number, data)

    monkeypatch.setattr(RequestedSamples, "give", note)
    return found


def sent_by(kind: Any, paths: list[Path], transform: Any, received: list[Any]) -> Sent:
    received.clear()
    delivered(DataLoader, kind(paths, transform), batch_size=COUNT, num_workers=1)
    (batch,) = received
    assert isinstance(batch, RecordedBatch)
    pickled: Any = ForkingPickler.dumps(replace(batch, batch=None, files=batch.files[:0].clone()))
    values = sum(math.prod(one.shape) * one.table.itemsize for one in batch.records)
    return Sent(batch.files.nbytes, len(pickled), values)


@pytest.mark.usefixtures("idle_cores")
@pytest.mark.parametrize("version", ["train", "train_v2"])
def test_each_file_crosses_once_with_a_short_record(
    version: str, paths: list[Path], received: list[Any], request: pytest.FixtureRequest
) -> None:
    transform, files = request.getfixturevalue(version), sum(path.stat().st_size for path in paths)
    one = sent_by(Labelled, paths, transform, received)
    assert one.files == files < one.values
    assert one.pickled < 1500 * COUNT  # also of the batch: its table of values, and where its memory is
    several = sent_by(Views, paths, transform, received)
    assert several.files == files and several.values == 3 * one.values
    assert several.pickled - one.pickled < 2 * 400 * COUNT


@pytest.mark.usefixtures("idle_cores")
def test_crops_of_a_file_add_their_plans_alone(paths: list[Path], train: Any, received: list[Any]) -> None:
    one, six = (sent_by(kind, paths, train, received) for kind in (Labelled, Crops))
    assert six.files == one.files and six.pickled - one.pickled < 5 * 400 * COUNT < six.values / 5

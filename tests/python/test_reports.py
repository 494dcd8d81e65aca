"""verify, explain and stats: what they say, and that they notice what is wrong."""

from __future__ import annotations

import pytest
import support
import torch

import headrace
from headrace import VerificationError
from headrace import transforms as T


def loader(**options: object) -> headrace.DataLoader:
    arguments = {"batch_size": 5, "shuffle": True, "seed": 4, "num_workers": 2, **options}
    return headrace.DataLoader(support.blobs(24), **arguments)  # type: ignore[arg-type]


def test_verify_reports_what_it_compared_and_changes_nothing() -> None:
    one, other = loader(), loader()
    report = one.verify(3)
    assert (report.batches, report.samples, report.bytes) == (3, 15, 15 * 3 * 32 * 32 * 4)
    assert "0 differ" in str(report)
    assert support.assert_same(one, other) == 5  # still epoch 0
    assert one.verify(100).batches == 5


def test_verify_notices_a_wrong_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    one = loader(shuffle=False)
    one.recipe().lut[1, 130] += 1e-7  # the oracle does not use the table
    with pytest.raises(VerificationError, match=r"batch 0: sample \d+ \(blob \d+ in memory.*\) differs in \d+ of 3072 values"):
        one.verify(5)


def test_verify_notices_a_wrong_target(monkeypatch: pytest.MonkeyPatch) -> None:
    one = loader(shuffle=False)
    monkeypatch.setattr(one.source, "targets_of", lambda indices: torch.from_numpy(indices) + 1)
    with pytest.raises(VerificationError, match="batch 0: targets differ"):
        one.verify(1)


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_verify_wants_a_count(n: object) -> None:
    with pytest.raises(ValueError, match="n must be a number of batches"):
        loader().verify(n)  # type: ignore[arg-type]


def test_explain_names_every_step() -> None:
    crop, flip = T.RandomResizedCrop(24), T.RandomHorizontalFlip(0.3)
    dataset = support.blobs(4, T.Compose([crop, flip, *support.TENSOR]), target_transform=str)
    explanation = headrace.DataLoader(dataset, dtype=torch.float16, num_workers=3).explain()
    parts = [line.part for line in explanation.lines]
    for transform in (crop, flip, *support.TENSOR):
        assert repr(transform) in parts
    text = str(explanation)
    for word in ("3 threads", "libjpeg-turbo", "Pillow", "float16", "(3, 24, 24)", "Blobs(4 in memory)", "kernels"):
        assert word in text
    assert {line.runs for line in explanation.lines} == {"native", "Python"}
    assert next(line.runs for line in explanation.lines if line.part == "targets") == "Python"


def test_stats_before_during_and_after() -> None:
    one = loader(persistent_workers=True)
    assert one.stats().bottleneck == "nothing yet"
    for _ in one:
        pass
    stats = one.stats()
    items = {stage.name: stage.items for stage in stats.stages}
    assert items["read"] == 24
    assert items["pillow"] == 4  # of the pictures two are PNG and two CMYK
    assert stats.threads == 2
    assert all(stage.busy_s > 0 for stage in stats.stages)
    assert stats.waited_s > 0
    assert stats.bottleneck in {"consumer", *items}
    assert f"bottleneck: {stats.bottleneck}" in str(stats)


def test_stats_name_the_pillow_lane() -> None:
    """A dataset of PNG files keeps nothing busy but Pillow."""
    png = support.pictures(4)[3]
    one = headrace.DataLoader(headrace.Blobs([png] * 60, None, support.train(16)), batch_size=20, num_workers=1)
    for _ in one:
        pass
    assert one.stats().bottleneck in ("pillow", "consumer")
    assert max(one.stats().stages, key=lambda stage: stage.busy_s).name == "pillow"

"""What a training crop takes of a core: which files are cropped, which pass counts, and what is said of it."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace import EncodedImages
from headrace._cli.doctor import crop_speed, scan_summary
from headrace._cli.doctor.crop_speed import Cost, CropSpeed, choose_evenly, measure_crops
from support import pictures, truncated


def test_small_and_large_files_are_chosen_alike() -> None:
    costs = [float(one % 100) for one in range(1000)]
    chosen = choose_evenly(range(1000), costs, 200)
    assert len(set(chosen)) == 200 and chosen == choose_evenly(range(1000), costs, 200)
    mean = sum(costs[one] for one in chosen) / 200
    assert mean == pytest.approx(sum(costs) / 1000, rel=0.02)
    assert chosen != sorted(chosen)  # batches have files of all sizes, too
    assert Counter(choose_evenly([7, 3], [1.0, 9.0], 6)) == {7: 3, 3: 3}  # few files: each as often
    assert choose_evenly([5], [0.0], 2) == [5, 5]


def speed(*core_s: float, threads: int = 2, cores: float = 2.0) -> CropSpeed:
    return CropSpeed(64, tuple(Cost(one, 0.9 * one) for one in core_s), threads, cores)


def test_the_cheapest_pass_counts() -> None:
    """Other programs only make the same crops dearer."""
    found = speed(0.012, 0.010, 0.011)
    assert found.core_s == 0.010
    assert found.images_per_s == pytest.approx(200) and found.least_images_per_s == pytest.approx(2 / 0.011)
    assert speed(0.010, threads=1).images_per_s == pytest.approx(1 / 0.009)  # one thread, the caller on another core
    assert speed(0.010, threads=8).images_per_s == pytest.approx(200)  # no more than the cores make


def test_a_range_is_stated_where_the_passes_differ() -> None:
    def said(found: CropSpeed) -> str:
        return next(iter(scan_summary._advise_on_speed(found, None)))

    assert "delivers about 200 images/s on 2 cores of its own" in said(speed(0.0102, 0.010, 0.0101))
    assert "delivers about 167 to 200 images/s" in said(speed(0.012, 0.010, 0.013))
    busy = list(scan_summary._advise_on_speed(speed(0.01), "This machine is busy."))
    assert busy[1].startswith("This machine is busy. A loader delivers less meanwhile, and more than stated")


def test_each_pass_makes_the_same_crops_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crop_speed, "_LEAST", 40)
    monkeypatch.setattr(crop_speed, "_MOST", 40)
    passes: list[list[int]] = []
    measure = crop_speed._measure_pass

    def measured(source: EncodedImages, threads: int, files: list[int]) -> tuple[Cost | None, int]:
        passes.append(files)
        return measure(source, threads, files)

    monkeypatch.setattr(crop_speed, "_measure_pass", measured)
    source = EncodedImages([*pictures(5), truncated(pictures(1)[0])])
    found = measure_crops(source, 1, range(6), [1.0] * 6)
    assert found is not None and len(passes) - 1 == len(found.passes) >= 3
    assert [len(passes[0]), len(passes[1])] == [10, 40] and all(one == passes[1] for one in passes[2:])
    assert 30 <= found.images < 40  # the broken file is no crop, but takes its time
    assert measure_crops(EncodedImages([b"none"]), 1, [0], [0.0]) is None

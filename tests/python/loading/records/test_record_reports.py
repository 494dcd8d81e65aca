"""What ``stats()`` and ``explain()`` say of records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from record_datasets import COUNT, Labelled, Looking, Views, write_damaged
from record_loaders import EDGE, ON_DEVICE, delivered

from headrace import transforms as T
from headrace._loading.doors.type_checks import checks
from support import EMULATED_BY_A_GPU

DEVICE = "cuda:0" if EMULATED_BY_A_GPU else "cpu"

pytestmark = pytest.mark.processes


def how_of(loader: Any, part: str) -> str:
    """What a line of ``explain()`` says."""
    return next(line.how for line in loader.explain().lines if line.part == part)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_makers_of_records_are_named(workers: int, paths: list[Path], train: Any) -> None:
    _, loader = delivered(ON_DEVICE, Labelled(paths, train), num_workers=workers)
    makers = "the caller's thread", "1 native thread of this process", "2 native threads of this process"
    assert how_of(loader, "batch[0]") == f"recorded: made by {makers[workers]} and the device ({DEVICE})"
    assert how_of(loader, "device").startswith("images that nothing in a worker has looked at are made there")
    stats = loader.stats()
    assert stats.records == {"native": COUNT, "device": 0, "library": 0}
    images = stats.as_dict()["images"]
    assert (images["recorded"], images["made_from_records"], images["not_recorded"]) == (COUNT, stats.records, {})
    assert f"from records, in this process: {COUNT} by native threads" in str(stats)
    assert "batch[0]: recorded" in str(stats)


def test_stages_have_times(paths: list[Path], train: Any) -> None:
    """Of the newest epoch, also after ``close()``; as the native route has them."""
    _, loader = delivered(ON_DEVICE, Views(paths, train), epochs=2, persistent_workers=True)
    for _ in range(2):
        stats = loader.stats()
        stages = {one.name: one for one in stages_of(stats)}
        assert stages["read"].items == 3 * COUNT == stats.records["native"]  # a file is read for each of its tensors
        assert stages["decode"].items == 3 * COUNT and stages["decode"].busy_s > 0
        assert stages["pillow"].items == 0
        assert stats.images is not None and stats.images.recorded.total() == COUNT
        assert stats.bytes_read == 3 * sum(path.stat().st_size for path in paths)
        assert str(stats).splitlines()[0].split()[:2] == ["stage", "samples"]
        loader.close()


def stages_of(stats: Any) -> Any:
    assert stats.stages
    return stats.stages


def test_decoders_of_the_device_are_counted(paths: list[Path], train: Any) -> None:
    _, loader = delivered(ON_DEVICE, Labelled(paths, train), decoder="hardware", deterministic=True)
    records = loader.stats().records
    assert records["device"] > 0 and sum(records.values()) == COUNT


def test_damaged_files_are_counted(paths: list[Path], tmp_path: Path) -> None:
    broken = write_damaged(paths[0], tmp_path / "broken.jpg")
    whole = T.Compose([T.Resize((EDGE, EDGE)), T.ToTensor()])
    _, loader = delivered(ON_DEVICE, Labelled([*paths[1:], broken], whole))
    stats = loader.stats()
    assert stats.records == {"native": COUNT - 1, "device": 0, "library": 1} and stats.python_s["pillow"] > 0
    assert "9 by native threads, 1 by the program's library" in str(stats)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_the_worker_makes_has_its_reason(
    workers: int, paths: list[Path], train: Any, tmp_path: Path, torchvision: Any
) -> None:
    where = "in the worker" if workers else "in the caller's thread"
    _, loader = delivered(ON_DEVICE, Looking(paths, train), batch_size=COUNT, num_workers=workers, shuffle=False)
    assert how_of(loader, "batch[0]") == f"{where}, because a program has looked at some of them"
    counted = loader.stats().images.here
    looked = len(range(0, COUNT, 3))
    assert counted == {
        "a program has looked at their pixels, or collates them itself": looked,
        "a program has looked at some of them": COUNT - looked,
    }
    mask = tmp_path / "mask.png"
    Image.new("RGB", (60, 70), (1, 2, 3)).save(mask)
    whole = T.Compose([T.Resize((EDGE, EDGE)), T.ToTensor()])
    _, loader = delivered(ON_DEVICE, Labelled([*paths, mask], whole), batch_size=1, num_workers=workers)
    stats = loader.stats()
    assert stats.images.here == {"their files are not JPEGs": 1} and stats.records["native"] == COUNT
    assert "1 where the dataset runs, because their files are not JPEGs" in str(stats)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_program_that_compares_types_is_named(
    workers: int, paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "look", lambda: "programs.function")
    _, loader = delivered(ON_DEVICE, Labelled(paths, train), num_workers=workers)
    reason = "a program compares types with `is`, in programs.function"
    assert loader.stats().images.here == {reason: COUNT} and reason in how_of(loader, "images")


def test_a_collate_fn_of_the_program_is_a_reason(paths: list[Path], train: Any) -> None:
    _, loader = delivered(ON_DEVICE, Labelled(paths, train), collate_fn=lambda samples: samples[0][0])
    assert how_of(loader, "device").startswith(
        "all is made where the dataset runs, because collate_fn is the program's"
    )
    assert not sum(loader.stats().records.values()) and loader.stats().images.natively.total() == COUNT

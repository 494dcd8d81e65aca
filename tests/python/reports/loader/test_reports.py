"""explain() says what runs where, stats() where the time goes, verify() finds differences."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageFolder, VerificationError
from headrace import transforms as T
from headrace._base.native import core
from headrace._loading.routes.image_route import ImageRoute
from headrace._reports.loader.stats import stats_of_torch
from headrace.pillow.recording.image_counts import Door, ImageCounts
from support import (
    PHOTOS,
    TENSOR,
    assert_same,
    blobs,
    evaluation,
    eventually,
    pictures,
    recipe_of,
    train,
    truncated,
    write_folder,
)


def test_explain_names_every_part(tmp_path: Path) -> None:
    loader = DataLoader(ImageFolder(write_folder(tmp_path), train(32)), 4, num_workers=3)
    table = loader.explain()
    text = str(table)
    for words in (
        "3 threads",
        f"libjpeg-turbo {core.libjpeg_version()}",
        "RandomResizedCrop(size=(32, 32)",
        "RandomHorizontalFlip(p=0.5)",
        "ToTensor()",
        "Normalize(mean=[0.485, 0.456, 0.406]",
        "24 files in 3 classes",
        "torch.float32, (3, 32, 32), torch.contiguous_format",
        core.instruction_set(),
    ):
        assert words in text, words
    assert {line.runs for line in table.lines} == {"native", "Python"}
    column = text.index(" native ")  # of the first line
    assert {line[column : column + 8] for line in text.splitlines()} == {" native ", " Python "}


def test_explain_keeps_the_name_of_a_step_whose_first_argument_is_long() -> None:
    class Conversion(torch.nn.Module):
        def __repr__(self) -> str:
            return "ConversionWithAVeryLongName(interpolation=InterpolationMode.NEAREST,fill=None)"

        def forward(self, image: Any) -> Any:
            return image

    steps = T.Compose([T.Resize((32, 32)), Conversion(), *TENSOR])
    parts = [line.part for line in DataLoader(blobs(transform=steps), 4).explain().lines]
    (named,) = [part for part in parts if part.startswith("ConversionWithAVeryLongName(interpolation=")]
    assert len(named) == 60 and named.endswith(" ...")


def test_explain_follows_the_loader() -> None:
    data = blobs(transform=train(32), target_transform=abs)
    loader = DataLoader(data, 4, dtype=torch.bfloat16)
    text = str(loader.explain())
    assert "the caller's thread (num_workers=0)" in text and "torch.bfloat16" in text
    assert "<built-in function abs> per sample" in text
    data.transform = evaluation(20, 16)
    assert "CenterCrop(size=(16, 16))" in str(loader.explain())
    assert "targets" not in str(DataLoader(EncodedImages(pictures(), None, train(8))).explain())


def stages(loader: DataLoader) -> dict[str, Any]:
    return {one.name: one for one in loader.stats().stages}


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_stats_count_the_samples_of_the_newest_epoch(workers: int, persistent: bool) -> None:
    many = EncodedImages(pictures() * 5, None, train(32))  # enough that some samples of each epoch are timed
    loader = DataLoader(many, 5, num_workers=workers, persistent_workers=persistent and workers > 0)
    assert loader.stats().bottleneck == "nothing yet" and loader.stats().stages == ()
    for _ in range(2):
        begin = time.perf_counter()
        list(loader)
        wall = time.perf_counter() - begin
        counted = stages(loader)
        memory = counted.pop("memory", None)  # where a sample that was timed is in new memory
        assert memory is None or 0 < memory.items <= 100
        assert list(counted) == ["read", "header", "decode", "resize", "pillow"]
        assert {name: one.items for name, one in counted.items()} == {
            "read": 120,
            "pillow": 20,  # PNG and CMYK
            **dict.fromkeys(("header", "decode", "resize"), 100),
        }
        total = loader.stats()
        # The native stages are estimated from one sample in sixteen; reading and Pillow are measured.
        assert 0 < counted["read"].busy_s < wall * max(1, workers) and 0 < counted["pillow"].busy_s < wall * max(
            1, workers
        )
        assert all(
            one.busy_s > 0 and one.ms_per_item == pytest.approx(1e3 * one.busy_s / one.items) for one in total.stages
        )
        assert 0 < total.waited_s < wall
        assert total.threads == workers
        assert "bottleneck: " + total.bottleneck in str(total) and len(str(total).splitlines()) == 13 + (
            memory is not None
        )
    loader.close()
    assert stages(loader)["read"].items == 120


def limited_by(name: str, data: Any, **options: Any) -> bool:
    """Whether the stage is found to be an epoch's bottleneck. Other work on the machine can be it: tests ask again."""
    loader = DataLoader(data, 8, **options)
    list(loader)
    return loader.stats().bottleneck == name


def test_the_bottleneck_is_named() -> None:
    odd = EncodedImages([pictures()[3]] * 512, None, T.Compose([T.Resize((8, 8)), *TENSOR]))
    assert eventually(lambda: limited_by("pillow", odd, num_workers=2))
    large = [path.read_bytes() for path in sorted(PHOTOS.glob("*.jpg"))]
    coarse = EncodedImages(large * 8, None, T.Compose([T.Resize((8, 8), T.InterpolationMode.NEAREST), *TENSOR]))
    assert eventually(lambda: limited_by("decode", coarse))
    enlarged = EncodedImages(pictures(3)[:3] * 64, None, T.Compose([T.Resize((600, 600)), *TENSOR]))
    assert eventually(lambda: limited_by("resize", enlarged))


def test_a_slow_consumer_is_the_bottleneck() -> None:
    pause = threading.Event()

    def limited_by_the_consumer() -> bool:
        loader = DataLoader(blobs(48), 2, num_workers=2)
        for _ in loader:
            pause.wait(0.02)  # the consumer's own work
        total = loader.stats()
        assert (total.steps.batches, total.waits.batches) == (23, 24)
        assert 17 < total.steps.p50_ms <= total.steps.p99_ms and total.steps.total_s > 23 * 0.02
        assert total.as_dict()["verdict"]["bottleneck"] == total.bottleneck
        return total.bottleneck == "consumer" and total.idle_s > 0.1

    assert eventually(limited_by_the_consumer)  # on a busy machine something else may be, for once


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_verify_compares_and_changes_nothing(workers: int, memory_format: torch.memory_format) -> None:
    options: dict[str, Any] = {"seed": 3, "num_workers": workers, "memory_format": memory_format}
    loader, untouched = (DataLoader(blobs(), 5, True, **options) for _ in range(2))
    report = loader.verify(3)
    assert (report.batches, report.samples, report.bytes) == (3, 15, 15 * 3 * 32 * 32 * 4)
    assert str(report) == "3 batches, 15 samples, 184,320 bytes compared with Pillow and torch: 0 differ"
    assert loader.verify(99).batches == 5
    iterator = iter(loader)
    next(iterator)
    loader.verify()
    assert_same([*iterator, *loader], [*untouched, *untouched][1:])


def test_verify_leaves_generators_as_they_were() -> None:
    own = torch.Generator().manual_seed(1)
    loader = DataLoader(blobs(), 5, True, generator=own)
    unseeded = DataLoader(blobs(), 5, True)
    before = own.get_state(), torch.get_rng_state()
    loader.verify(2)
    list(loader.reference())
    expected = list(unseeded.reference())
    assert torch.equal(own.get_state(), before[0]) and torch.equal(torch.get_rng_state(), before[1])
    assert_same(unseeded, expected)


@pytest.mark.parametrize("options", [{"batch_size": None}, {"batch_size": 3, "dtype": torch.float16}])
def test_verify_other_loaders(options: dict[str, Any]) -> None:
    assert DataLoader(blobs(), **options).verify(2).batches == 2
    assert DataLoader(EncodedImages(pictures(), None, train(16)), **options).verify(2).batches == 2


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_verify_with_faults(policy: Literal["skip", "replace"]) -> None:
    files = [truncated(data) if i in (1, 4) else data for i, data in enumerate(pictures(8))]
    loader = DataLoader(EncodedImages(files, range(8), train(16)), 4, on_error=policy)
    assert loader.verify(9).samples == (6 if policy == "skip" else 8)
    with pytest.raises(OSError, match="truncated"):
        DataLoader(EncodedImages(files, range(8), train(16)), 4).verify()


def planted(loader: DataLoader, place: tuple[int, int], by: float) -> DataLoader:
    """A loader whose native table has one wrong entry, like the output of a broken kernel."""
    recipe, route = recipe_of(loader), loader._route
    assert isinstance(route, ImageRoute)
    table = recipe.lut.clone()
    table[place] += by
    loader._route = dataclasses.replace(route, recipe=dataclasses.replace(recipe, lut=table))
    return loader


def test_verify_finds_a_wrong_table() -> None:
    loader = planted(DataLoader(blobs(), 5, seed=1), (1, 130), 1e-6)
    with pytest.raises(
        VerificationError, match=r"batch 0: sample \d+ \(blob \d+ in memory, \d+ bytes\) differs in \d+ of 3072"
    ):
        loader.verify()
    assert issubclass(VerificationError, AssertionError)


@pytest.mark.parametrize("names", [(), ("whole", "small")])
def test_verify_names_the_view_with_a_wrong_table(names: tuple[Any, ...]) -> None:
    members = [train(16), train(8)]
    views = T.Views(dict(zip(names, members, strict=True)) if names else members)
    loader = DataLoader(blobs(transform=views), 5, seed=1)
    loader.verify()
    recipe, route = recipe_of(loader), loader._route
    assert isinstance(route, ImageRoute)
    wrong = recipe.views[1].lut.clone()
    wrong[2] += 1e-6
    second = dataclasses.replace(recipe.views[1], lut=wrong)
    broken = dataclasses.replace(recipe, views=(recipe.views[0], second))
    loader._route = dataclasses.replace(route, recipe=broken)
    which = repr(names[1] if names else 2)
    with pytest.raises(VerificationError, match=rf"batch 0, view {which}: sample \d+ .* differs in \d+ of 192"):
        loader.verify()


def test_verify_finds_one_wrong_sample() -> None:
    class Exchanged(EncodedImages):
        def read(self, index: int) -> bytes:
            return super().read(13 if index == 12 else index)

        def blob_table(self) -> Any:
            return EncodedImages(self.blobs).blob_table()

    loader = DataLoader(Exchanged(pictures(), range(24), train(16)), 5)
    loader.verify(2)
    with pytest.raises(VerificationError, match=r"batch 2: sample 12 .* 1 samples of the batch differ, the largest"):
        loader.verify(5)


def test_verify_finds_wrong_targets() -> None:
    class Relabelled(EncodedImages):
        def target(self, index: int) -> int:
            return super().target(index) + (index == 7)

        def targets_of(self, indices: Any) -> Any:
            return EncodedImages(self.blobs, list(range(24))).targets_of(indices)

    with pytest.raises(VerificationError, match="batch 1: targets differ"):
        DataLoader(Relabelled(pictures(), range(24), train(16)), 5).verify()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, None])
def test_verify_takes_a_number_of_batches(n: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="n must be"):
        DataLoader(blobs()).verify(n)


def test_the_stats_of_torchs_epochs_fit_into_json() -> None:
    counts = ImageCounts()
    for reason in ("mode P", "mode P", "not a JPEG", None, None):
        counts.count(reason)
    for reason in ("turned", None):
        counts.count(reason, Door("cv2.imread", "OpenCV"))
    values = stats_of_torch(1, counts, None).as_dict()
    assert values["images"] == {
        "native": 3,
        "by_door": {"PIL.Image.open": 2, "cv2.imread": 1},
        "recorded": 0,
        "made_from_records": {},
        "not_recorded": {},
        "fields": {},
        "by_library": {"Pillow": {"mode P": 2, "not a JPEG": 1}, "OpenCV": {"turned": 1}},
        "indexes": {},
    }
    assert json.loads(json.dumps(values))["images"] == values["images"]

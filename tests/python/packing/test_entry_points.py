"""Batches of packed files, and of files whose entry points earlier epochs have learned, equal those of the files."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

import headrace
from headrace import transforms as T
from headrace._base.native import core
from support import PHOTOS, TENSOR, pictures, train


def photographs() -> list[bytes]:
    """Baseline files with many rows of MCUs, and a few others."""
    return [*(file.read_bytes() for file in sorted(PHOTOS.glob("*.jpg"))), *pictures(12, 300)]


def loader(images: list[bytes], **options: object) -> headrace.DataLoader:
    blobs = headrace.EncodedImages(images, list(range(len(images))), train(48))
    return headrace.DataLoader(blobs, 5, shuffle=True, seed=3, **options)  # type: ignore[arg-type]


def epochs(one: headrace.DataLoader, count: int = 4) -> list[torch.Tensor]:
    made = []
    for epoch in range(count):
        one.set_epoch(epoch)
        made += [images.clone() for images, _ in one]
    return made


def equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(map(torch.equal, a, b))


def test_packed_files_have_the_batches_of_their_sources() -> None:
    images = photographs()
    packed = []
    for data in images:
        try:
            packed.append(core.pack_jpeg(data))
        except core.NeedsPillow:
            packed.append(data)
    assert equal(epochs(loader(images, num_workers=2)), epochs(loader(packed, num_workers=2)))


def test_later_epochs_have_the_same_batches() -> None:
    images = photographs()
    ours = loader(images, num_workers=2, entry_points="16 MB")
    made = epochs(ours)
    assert isinstance(ours.entry_points, headrace.EntryPoints)
    known = ours.entry_points.counts()
    assert known.images > len(images) // 2 and 0.5 < known.hit_rate < 1 and 0 < known.bytes <= known.limit
    assert equal(made, epochs(loader(images, num_workers=2)))
    ours.set_epoch(3)
    assert equal(made[-1:], [list(ours.reference())[-1][0]])


def test_a_file_that_changes_between_epochs_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "image.jpg"
    crop = T.Compose([T.RandomCrop(64), *TENSOR])
    ours = headrace.DataLoader(headrace.ImageFiles([str(file)] * 8, transform=crop), 8, seed=0, entry_points="1 MB")
    for source in sorted(PHOTOS.glob("*.jpg"))[:3]:
        with Image.open(source) as image:  # files of one size
            image.resize((320, 240)).save(file, quality=90)
        for epoch in range(3):
            ours.set_epoch(epoch)
            expected = list(ours.reference())
            assert all(torch.equal(a[0], b[0]) for a, b in zip(ours, expected, strict=True))

"""Programs as projects around other libraries write them: kornia, OpenCV as torchvision's loader, Hugging Face's
streams, VOC through v2, TIFF files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image
from torch.utils.data import Dataset, default_collate
from torchvision.transforms import v2

from bench.code import doors, kinds, pngs
from bench.contenders._common import MEAN, SIZE, STD

CLASSES = 8  # folders
BATCHED = 16  # samples that a function of a stream gets together
TO_CROP = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


class KorniaCollate:
    """Flip, jitter and normalisation of the batch by kornia, in the workers."""

    def __init__(self) -> None:
        self._augment: Any = None

    def __call__(self, batch: list[Any]) -> Any:
        if self._augment is None:
            import kornia.augmentation as K  # type: ignore[import-not-found, unused-ignore]

            self._augment = K.AugmentationSequential(
                K.RandomHorizontalFlip(),
                K.ColorJitter(0.2, 0.2, 0.2, 0.0, p=0.5),
                K.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
            )
        images, labels = default_collate(batch)
        return self._augment(images), labels


def crops_for_kornia(paths: list[Path], folder: Path) -> Dataset[Any]:
    return doors.Decoded(paths, lambda path: Image.open(path).convert("RGB"), TO_CROP)


def _read_by_opencv(path: str) -> Any:
    import cv2

    return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)


def _in_folders(paths: list[Path], folder: Path) -> Path:
    """The files in folders of classes."""
    for number, path in enumerate(paths):
        kind = folder / f"class{number % CLASSES}"
        kind.mkdir(exist_ok=True)
        (kind / f"{number:06d}.jpg").symlink_to(path.resolve())
    return folder


def folder_by_opencv(paths: list[Path], folder: Path) -> Dataset[Any]:
    """torchvision's ImageFolder whose loader is OpenCV, with albumentations."""
    return torchvision.datasets.ImageFolder(
        str(_in_folders(paths, folder)), transform=doors.Augmented(), loader=_read_by_opencv
    )


def folder_with_albumentations(paths: list[Path], folder: Path) -> Dataset[Any]:
    """The same with Pillow, and albumentations in a lambda."""
    steps = doors.Augmented()
    return torchvision.datasets.ImageFolder(
        str(_in_folders(paths, folder)), transform=lambda image: steps(np.array(image))
    )


def voc(paths: list[Path], folder: Path) -> Dataset[Any]:
    """VOC's segmentation as torchvision's pages describe it for v2."""
    root = folder / "VOCdevkit" / "VOC2012"
    names = [f"{number:06d}" for number in range(len(paths))]
    for kind in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (root / kind).mkdir(parents=True)
    (root / "ImageSets" / "Segmentation" / "train.txt").write_text("\n".join(names) + "\n")
    masks = folder / "masks"
    masks.mkdir()
    for name, path, mask in zip(names, paths, pngs.write_pngs(paths, masks, pngs.as_mask), strict=True):
        (root / "JPEGImages" / f"{name}.jpg").symlink_to(path.resolve())
        (root / "SegmentationClass" / f"{name}.png").symlink_to(Path(mask).resolve())
    dataset = torchvision.datasets.VOCSegmentation(str(folder), "2012", "train", transforms=kinds.WITH_MASKS)
    return torchvision.datasets.wrap_dataset_for_transforms_v2(dataset)


def stream_of_batches(paths: list[Path], folder: Path) -> Any:
    """A stream of Hugging Face's datasets whose function gets several samples."""
    import datasets

    def transform(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        images = [doors.TRAIN(v2.functional.to_image(image.convert("RGB"))) for image in rows["image"]]
        return {"image": images, "number": rows["number"]}

    rows = {"image": [str(path) for path in paths], "number": list(range(len(paths)))}
    table = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    stream = table.to_iterable_dataset(num_shards=4).map(transform, batched=True, batch_size=BATCHED)
    return stream.with_format("torch")


class Tiffs(Dataset[Any]):
    """TIFF files of 16 bits, read by tifffile."""

    def __init__(self, paths: list[Path], folder: Path) -> None:
        import tifffile

        written: dict[Path, Path] = {}
        for path in paths:
            if path not in written:
                written[path] = folder / f"{len(written)}.tif"
                tifffile.imwrite(written[path], np.array(Image.open(path).convert("L")).astype(np.uint16) * 257)
        self.files = [written[path] for path in paths]
        self.crop = v2.RandomCrop(SIZE, pad_if_needed=True)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        import tifffile

        values = tifffile.imread(self.files[index]).astype(np.float32) / 65535
        return self.crop(torch.from_numpy(values)[None]), index


#: name -> what makes a program's dataset of paths of JPEG files and an empty folder
DATASETS: dict[str, Callable[[list[Path], Path], Any]] = {
    "ImageFolder(loader=cv2), albumentations": folder_by_opencv,
    "ImageFolder, albumentations in a lambda": folder_with_albumentations,
    "VOC, v2": voc,
    "TIFF of 16 bits": Tiffs,
}

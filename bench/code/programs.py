"""Programs as people write them: a dataset of one's own that opens images with Pillow, and a transform."""

from __future__ import annotations

import io
import random
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter
from torch.utils.data import Dataset, IterableDataset, default_collate, get_worker_info

import headrace
from bench.contenders._common import MEAN, SHORTER_SIDE, SIZE, STD
from bench.datasets import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "python"))
from own_dataset import OwnDataset as OwnDataset
from torchvision_shim import import_torchvision

T = import_torchvision().transforms
from torchvision.transforms import functional as F  # noqa: E402 - after the shim
from torchvision.transforms import v2 as v2  # noqa: E402

from bench.code import detection, doors, kinds, pngs, processors, projects  # noqa: E402
from bench.code import native_videos as native_videos  # noqa: E402
from bench.code import videos as videos  # noqa: E402

END = [T.ToTensor(), T.Normalize(MEAN, STD)]
CLASSES = 1000


@dataclass(frozen=True)
class Program:
    """A dataset, made from paths of JPEG files and an empty folder, and further arguments of the loader.

    Attributes:
        batch: samples of a batch.
        native: makes from this dataset one of headrace's with samples of the same kind, for headrace's loader, which
            gets no collate_fn. None: both loaders get the same dataset, and only the import of the loader changes.
    """

    dataset: Callable[[list[Path], Path], Any]
    shuffle: bool = True
    collate_fn: Callable[[list[Any]], Any] | None = None
    native: Callable[[Any], Any] | None = None
    batch: int = 32


def _own(transform: Any) -> Callable[[list[Path], Path], Any]:
    return lambda paths, folder: OwnDataset(paths, transform)


def _view(size: int, scale: tuple[float, float]) -> Any:
    return T.Compose([T.RandomResizedCrop(size, scale), T.RandomHorizontalFlip(), *END])


def _coloured(size: int, scale: tuple[float, float], jitter: float, blur: Any, solarize: float = 0.0) -> Any:
    """A view as self-supervised training makes it: with jitter in 0.8 of the images, and gray in 0.2 of them."""
    return T.Compose(
        [
            T.RandomResizedCrop(size, scale, interpolation=T.InterpolationMode.BICUBIC),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(jitter, jitter, jitter / 2, jitter / 4)], 0.8),
            T.RandomGrayscale(0.2),
            blur,
            T.RandomSolarize(128, solarize),
            *END,
        ]
    )


class _Views:
    """Several views of one image."""

    def __init__(self, views: list[Any]) -> None:
        self.views = views

    def __call__(self, image: Any) -> list[torch.Tensor]:
        return [view(image) for view in self.views]


class _Masks(Dataset[Any]):
    """Images and PNG masks with the same crop and flip."""

    def __init__(self, paths: list[Path], folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.paths, self.masks = paths, []
        made: dict[Path, Path] = {}
        for number, path in enumerate(paths):
            if path not in made:
                made[path] = folder / f"{number}.png"
                with Image.open(path) as image:
                    regions = Image.fromarray(rng.integers(0, 21, (8, 8), np.uint8))
                    regions.resize(image.size, Image.Resampling.NEAREST).save(made[path])
            self.masks.append(made[path])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        mask = Image.open(self.masks[index])
        box = T.RandomResizedCrop.get_params(image, (0.5, 2.0), (3 / 4, 4 / 3))
        image = F.resized_crop(image, *box, (SIZE, SIZE))
        mask = F.resized_crop(mask, *box, (SIZE, SIZE), F.InterpolationMode.NEAREST)
        if random.random() < 0.5:
            image, mask = F.hflip(image), F.hflip(mask)
        return F.normalize(F.to_tensor(image), MEAN, STD), torch.from_numpy(np.array(mask, np.int64))


class _ByteMasks(_Masks):
    """The same as dicts, with masks of bytes (1, H, W)."""

    def __getitem__(self, index: int) -> Any:
        image, mask = super().__getitem__(index)
        return {"image": image, "mask": mask.to(torch.uint8)[None]}


def _samples(masks: _Masks) -> headrace.Fields:
    geometry = T.Compose([T.RandomResizedCrop(SIZE, (0.5, 2.0)), T.RandomHorizontalFlip()])
    return headrace.Fields(
        {
            "image": headrace.ImageFiles(masks.paths, transform=T.Compose(END)),
            "mask": headrace.ImageFiles(masks.masks, transform=T.PILToTensor(), mode="L"),
        },
        geometry,
        ["mask"],
    )


class _Rows(Dataset[Any]):
    """A table whose column of images is decoded when a row is read, as `with_transform` of a table library does."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        self.blobs, self.transform = [path.read_bytes() for path in paths], transform

    def __len__(self) -> int:
        return len(self.blobs)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        images = []
        for index in indices:
            image = Image.open(io.BytesIO(self.blobs[index]))
            image.load()
            images.append(image)
        values = [self.transform(image.convert("RGB")) for image in images]
        return [{"pixel_values": value, "label": index} for value, index in zip(values, indices, strict=True)]


class _Tar(IterableDataset[Any]):
    """A tar file of images and texts, read in order; worker i takes every n-th."""

    def __init__(self, paths: list[Path], folder: Path, transform: Any) -> None:
        self.file, self.transform = folder / "shard.tar", transform
        with tarfile.open(self.file, "w") as tar:
            for number, path in enumerate(paths):
                tar.add(path, f"{number:06d}.jpg")

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        with tarfile.open(self.file) as tar:
            for number, member in enumerate(tar):
                if number % workers == worker:
                    stream = io.BytesIO(tar.extractfile(member).read())  # type: ignore[union-attr]
                    with Image.open(stream) as image:
                        image.load()
                        yield self.transform(image.convert("RGB")), number


class _MixUpOrCutMix:
    """The collate_fn of torchvision's reference training."""

    def __init__(self) -> None:
        self.mix = v2.RandomChoice([v2.MixUp(num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)])

    def __call__(self, batch: list[Any]) -> Any:
        images, labels = default_collate(batch)
        return self.mix(images, labels % CLASSES)


def _numpy_steps(image: Any) -> torch.Tensor:
    """A crop, a flip and a normalisation by numpy, as programs with OpenCV's layout have them."""
    array = np.array(image.resize((SHORTER_SIDE, SHORTER_SIDE)))
    top, left = random.randrange(SHORTER_SIDE - SIZE), random.randrange(SHORTER_SIDE - SIZE)
    array = array[top : top + SIZE, left : left + SIZE]
    if random.random() < 0.5:
        array = array[:, ::-1]
    values = (array.astype(np.float32) / 255 - np.asarray(MEAN, np.float32)) / np.asarray(STD, np.float32)
    return torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)))


def _sharpened(image: Any) -> Any:
    return image.filter(ImageFilter.SHARPEN)


def _detection(transform: Any) -> Callable[[list[Path], Path], Any]:
    return lambda paths, folder: detection.Detection(paths, transform)


def _pngs(kind: Callable[[Image.Image], Image.Image]) -> Callable[[list[Path], Path], Any]:
    return lambda paths, folder: OwnDataset(pngs.write_pngs(paths, folder, kind), TRAIN)


def _webps(**options: Any) -> Callable[[list[Path], Path], Any]:
    return lambda paths, folder: OwnDataset(pngs.write_webps(paths, folder, **options), TRAIN)


def _in_threads(dataset: Any) -> headrace.ImageFiles:
    """The same files and transform in headrace's threads, which call the Python step."""
    return headrace.ImageFiles(dataset.paths, transform=dataset.transform)


def _albumentations_in_threads(dataset: Any) -> headrace.ImageFiles:
    """The same files and Compose in headrace's threads."""
    transform = headrace.transforms.from_albumentations(dataset.transform.steps)
    return headrace.ImageFiles(dataset.paths, list(range(len(dataset))), transform=transform)


TRAIN = T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), *END])
EVAL = T.Compose([T.Resize(SHORTER_SIDE), T.CenterCrop(SIZE), *END])
CLIP = T.Compose([T.Resize(SIZE, T.InterpolationMode.BICUBIC), T.CenterCrop(SIZE), *END])
RAND_AUGMENT = T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.RandAugment(), *END])
DINO = [*[_view(224, (0.4, 1.0))] * 2, *[_view(96, (0.05, 0.4))] * 8]
PYTHON_STEP = T.Compose([*TRAIN.transforms[:2], T.Lambda(_sharpened), *END])
JITTER = T.Compose([*TRAIN.transforms[:2], T.ColorJitter(0.4, 0.4, 0.4, 0.1), *END])
SIMCLR = [_coloured(224, (0.2, 1.0), 0.8, T.RandomApply([T.GaussianBlur(23)], 0.5))] * 2
DINOV2 = [  # as its paper describes them
    _coloured(224, (0.32, 1.0), 0.4, T.GaussianBlur(9)),
    _coloured(224, (0.32, 1.0), 0.4, T.RandomApply([T.GaussianBlur(9)], 0.1), 0.2),
    *[_coloured(96, (0.05, 0.32), 0.4, T.RandomApply([T.GaussianBlur(9)], 0.5))] * 8,
]

PROGRAMS: dict[str, Program] = {
    "train": Program(_own(TRAIN)),
    "eval": Program(_own(EVAL), shuffle=False),
    "two views": Program(_own(_Views([_view(224, (0.2, 1.0))] * 2))),
    "DINO's ten views": Program(_own(_Views(DINO))),
    "ColorJitter": Program(_own(JITTER)),
    "SimCLR's recipe": Program(_own(_Views(SIMCLR))),
    "DINOv2's recipe": Program(_own(_Views(DINOV2))),
    "image and mask": Program(_Masks),
    "image and mask, as Fields": Program(_ByteMasks, native=_samples),
    "table": Program(lambda paths, folder: _Rows(paths, TRAIN)),
    "tar, CLIP": Program(lambda paths, folder: _Tar(paths, folder, CLIP), shuffle=False),
    "MixUp, CutMix": Program(_own(TRAIN), collate_fn=_MixUpOrCutMix()),
    "RandAugment": Program(_own(RAND_AUGMENT)),
    "numpy": Program(_own(_numpy_steps)),
    "Python step": Program(_own(PYTHON_STEP)),
    "Python step, in threads": Program(_own(PYTHON_STEP), native=_in_threads),
    "detection, tensors": Program(_detection(detection.ON_TENSORS), collate_fn=detection.collate),
    "detection, images": Program(_detection(detection.ON_IMAGES), collate_fn=detection.collate),
    "detection, SSD's crop": Program(_detection(detection.SSD), collate_fn=detection.collate),
    "detection, as Fields": Program(
        _detection(detection.ON_IMAGES), collate_fn=detection.collate_fields, native=detection.fields
    ),
    "PNG": Program(_pngs(pngs.as_photograph)),
    "PNG, in threads": Program(_pngs(pngs.as_photograph), native=_in_threads),
    "PNG with a palette": Program(_pngs(pngs.as_palette)),
    "WebP": Program(_webps(quality=80)),
    "WebP, in threads": Program(_webps(quality=80), native=_in_threads),
    "WebP, lossless": Program(_webps(lossless=True)),
    "depth": Program(pngs.Depth),
    "depth, cv2.imread": Program(pngs.DepthByOpenCV),
    "image, depth and mask": Program(pngs.Scenes),
    "albumentations, in threads": Program(
        doors.dataset_of("cv2.imread, albumentations"), native=_albumentations_in_threads
    ),
} | {name: Program(doors.dataset_of(name)) for name in doors.READERS}
PROGRAMS |= {name: Program(_own(one)) for name, one in processors.IN_DATASETS.items()}
PROGRAMS |= {
    name: Program(lambda paths, folder: processors.Opened(paths), collate_fn=one, batch=processors.BATCH)
    for name, one in processors.IN_COLLATE.items()
}
PROGRAMS |= {name: Program(one) for name, one in kinds.DATASETS.items()}
PROGRAMS |= {name: Program(one) for name, one in projects.DATASETS.items()}
PROGRAMS |= {
    "kornia in a collate_fn": Program(projects.crops_for_kornia, collate_fn=projects.KorniaCollate()),
    "stream, batched map": Program(projects.stream_of_batches, shuffle=False),
}
_one_clip = native_videos.in_threads(native_videos.CLIP)
PROGRAMS |= {
    "VideoDecoder": Program(videos.decode_clips, batch=8),
    "VideoDecoder, v2": Program(videos.augment_clips, batch=8),
    "decord": Program(videos.decode_by_decord, batch=8),
    "decord, v2": Program(videos.augment_by_decord, batch=8),
    "decord's threads, v2": Program(videos.augment_by_decords_default, batch=8),
    "VideoDecoder, VP9": Program(videos.augment_others("vp9.webm"), batch=8),
    "VideoDecoder, AVI": Program(videos.augment_others("mpeg4.avi"), batch=8),
    "VideoDecoder, a frame": Program(videos.one_frame, batch=8),
    "Videos": Program(videos.augment_clips, batch=8, native=_one_clip),
    "Videos, approximate": Program(native_videos.one_clip_approximately, batch=8, native=_one_clip),
    "Videos, decord": Program(videos.augment_by_decord, batch=8, native=_one_clip),
    "Videos, two clips": Program(
        native_videos.two_clips, batch=4, native=native_videos.in_threads(native_videos.TWO_CLIPS)
    ),
    "Videos, 8 frames of 60 s": Program(
        native_videos.spread_frames, batch=2, native=native_videos.in_threads(native_videos.SPREAD)
    ),
}

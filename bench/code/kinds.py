"""Kinds of programs that gain less than others: arrays, other readers, whole images, slow steps."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

from bench.code import doors, pngs
from bench.contenders._common import MEAN, SIZE, STD

SIDE = 32  # pixels along an edge of the small images, as in CIFAR and SVHN
FRAMES = 8  # of a clip
TRAIN = doors.TRAIN
SMALL = v2.Compose(
    [
        v2.RandomCrop(SIDE, padding=4),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)
ON_CLIPS = v2.Compose(
    [v2.RandomResizedCrop(112, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(), *doors.TO_FLOATS]
)
ELASTIC = v2.Compose([v2.Resize((SIZE, SIZE)), v2.ElasticTransform(), v2.ToImage(), *doors.TO_FLOATS])
WITH_MASKS = v2.Compose(
    [
        v2.RandomResizedCrop(SIZE, (0.5, 2.0), antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)


class SmallImages(Dataset[Any]):
    """Arrays (H, W, 3) in memory, of which each sample makes an image, as SVHN, USPS and many others do."""

    def __init__(self, paths: list[Path]) -> None:
        self.arrays = np.random.default_rng(0).integers(0, 256, (len(paths) * 8, SIDE, SIDE, 3), np.uint8)

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, index: int) -> Any:
        return SMALL(Image.fromarray(self.arrays[index])), index


class Rows(Dataset[Any]):
    """Rows of an array in memory, as tensors of floats."""

    def __init__(self, paths: list[Path]) -> None:
        self.rows = np.random.default_rng(0).random((len(paths) * 64, 64), np.float32)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.rows[index]), index


class InMemory(Dataset[Any]):
    """Encoded images in memory."""

    def __init__(self, paths: list[Path]) -> None:
        self.files = {path: path.read_bytes() for path in set(paths)}
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return TRAIN(
            v2.functional.to_image(Image.open(io.BytesIO(self.files[self.paths[index]])).convert("RGB"))
        ), index


class Clips(Dataset[Any]):
    """Clips of JPEG frames, which get one crop and flip; here they are different photographs of one size."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths[: len(paths) // FRAMES * FRAMES]

    def __len__(self) -> int:
        return len(self.paths) // FRAMES

    def __getitem__(self, index: int) -> Any:
        frames = [Image.open(path).convert("RGB") for path in self.paths[index * FRAMES : (index + 1) * FRAMES]]
        return torch.stack(ON_CLIPS([frame.resize((340, 256)) for frame in frames])), index


class Masked(Dataset[Any]):
    """Images and their PNG masks as tv_tensors, through v2 in one call."""

    def __init__(self, paths: list[Path], folder: Path) -> None:
        self.paths, self.masks = paths, pngs.write_pngs(paths, folder, pngs.as_mask)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        return WITH_MASKS(image, tv_tensors.Mask(Image.open(self.masks[index])))


def read_by_numpy(path: str) -> Any:
    return v2.functional.to_image(np.array(Image.open(path).convert("RGB")))


def read_by_imageio(path: str) -> Any:
    import imageio.v3

    return _to_tensor(imageio.v3.imread(path, mode="RGB"))


def read_by_skimage(path: str) -> Any:
    import skimage.io

    return _to_tensor(skimage.io.imread(path))


def read_by_webdataset(path: str) -> Any:
    from webdataset.autodecode import ImageHandler

    return ImageHandler("torchrgb8")("jpg", Path(path).read_bytes())


def _to_tensor(array: Any) -> torch.Tensor:
    array = array if array.ndim == 3 else np.repeat(array[..., None], 3, 2)
    return torch.from_numpy(array).permute(2, 0, 1)


def read_upright(path: str) -> Any:
    """A photograph as a web application's users upload it, made square."""
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    image.thumbnail((SIZE, SIZE))
    return ImageOps.pad(image, (SIZE, SIZE))


def read_with_limit(path: str) -> Any:
    """For a model of language and images: at most 448 pixels along the longer edge."""
    image = Image.open(path).convert("RGB")
    scale = 448 / max(image.size)
    return image.resize((SIZE, SIZE) if scale > 1 else (round(image.width * scale), round(image.height * scale)))


def interpolate(image: torch.Tensor) -> torch.Tensor:
    """A resize of the whole image by torch alone."""
    values = image.float().div(255)[None]
    return torch.nn.functional.interpolate(values, (SIZE, SIZE), mode="bilinear", antialias=True)[0]


FINISH = v2.Compose([v2.ToImage(), *doors.TO_FLOATS])
READ: dict[str, tuple[Callable[[str], Any], Any]] = {
    "np.array, v2": (read_by_numpy, TRAIN),
    "np.array, interpolate": (read_by_numpy, interpolate),
    "imageio, v2": (read_by_imageio, TRAIN),
    "skimage, v2": (read_by_skimage, TRAIN),
    "webdataset's torchrgb8, v2": (read_by_webdataset, TRAIN),
    "exif_transpose, thumbnail, pad": (read_upright, FINISH),
    "resize to 448, crop": (read_with_limit, v2.Compose([v2.CenterCrop(SIZE), *FINISH.transforms])),
    "ElasticTransform": (lambda path: Image.open(path).convert("RGB"), ELASTIC),
}


def _reader(read: Callable[[str], Any], transform: Any) -> Callable[[list[Path], Path], Any]:
    return lambda paths, folder: doors.Decoded(paths, read, transform)


#: name -> what makes a program's dataset of paths of JPEG files and an empty folder
DATASETS: dict[str, Callable[[list[Path], Path], Any]] = {
    "small arrays as images": lambda paths, folder: SmallImages(paths),
    "rows of an array": lambda paths, folder: Rows(paths),
    "encoded images in memory": lambda paths, folder: InMemory(paths),
    "clips of JPEG frames": lambda paths, folder: Clips(paths),
    "v2 with masks": Masked,
} | {name: _reader(*one) for name, one in READ.items()}

"""Programs that get their images from other functions than `PIL.Image.open`, or turn them into tensors at once.

torchvision.io and torchcodec need a build of torch that their compiled parts fit (`make test-doors`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision.transforms import v2

from bench.contenders._common import MEAN, SHORTER_SIDE, SIZE, STD


class Decoded(Dataset[Any]):
    """Images that `read` makes of a path, and a transform."""

    def __init__(self, paths: list[Path], read: Callable[[str], Any], transform: Callable[[Any], Any]) -> None:
        self.paths, self.read, self.transform = [str(path) for path in paths], read, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.read(self.paths[index])), index


def read_by_torchvision(path: str) -> Any:
    from torchvision.io import ImageReadMode, decode_image

    return decode_image(path, ImageReadMode.RGB)


def read_by_torchcodec(path: str) -> Any:
    from torchcodec.decoders import decode_image  # type: ignore[import-not-found, unused-ignore]

    return decode_image(path)


def read_by_opencv(path: str) -> Any:
    import cv2

    return cv2.imread(path)


def read_to_tensor(path: str) -> Any:
    return v2.functional.to_image(Image.open(path).convert("RGB"))


def resize_by_opencv(image: Any) -> torch.Tensor:
    import cv2

    values = cv2.resize(image, (SIZE, SIZE))[..., ::-1].astype(np.float32) / 255
    return torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)))


class Augmented:
    """albumentations' usual recipe."""

    def __init__(self) -> None:
        import albumentations as A
        from albumentations.pytorch import ToTensorV2

        self.steps = A.Compose(
            [A.RandomResizedCrop((SIZE, SIZE)), A.HorizontalFlip(), A.Normalize(MEAN, STD), ToTensorV2()], seed=1
        )

    def __call__(self, image: Any) -> Any:
        return self.steps(image=image)["image"]


TO_FLOATS = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
TRAIN = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip(), *TO_FLOATS])
EVAL = v2.Compose([v2.Resize(SHORTER_SIDE, antialias=True), v2.CenterCrop(SIZE), *TO_FLOATS])

#: name -> (the function that reads a file, the transform)
READERS: dict[str, tuple[Callable[[str], Any], Callable[[], Any]]] = {
    "decode_image, v2": (read_by_torchvision, lambda: TRAIN),
    "decode_image, v2, eval": (read_by_torchvision, lambda: EVAL),
    "torchcodec, v2": (read_by_torchcodec, lambda: TRAIN),
    "ToImage, v2": (read_to_tensor, lambda: TRAIN),
    "cv2.imread, cv2.resize": (read_by_opencv, lambda: resize_by_opencv),
    "cv2.imread, albumentations": (read_by_opencv, Augmented),
}


def dataset_of(name: str) -> Callable[[list[Path], Path], Decoded]:
    """Returns what makes a program's dataset of paths of JPEG files."""
    read, transform = READERS[name]
    return lambda paths, folder: Decoded(paths, read, transform())

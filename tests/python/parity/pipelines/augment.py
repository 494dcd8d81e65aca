"""Augmentations after `Image.open`: policies, numpy code, presets of papers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import datasets
from torchvision import transforms as T
from torchvision.transforms import v2

from pipelines.material import Material
from pipelines.own import Photographs
from pipelines.registry import pipeline

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def loader_of(material: Material, transform: Any, **options: Any) -> dict[str, Any]:
    """The arguments of a loader over (transformed image, index)."""
    dataset = Photographs(material.photos, lambda image, index: (transform(image), index))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True, **options}


@pipeline()
def numpy_crop_and_flip(material: Material) -> dict[str, Any]:
    """What albumentations and OpenCV code does, with numpy alone."""

    def augment(image: Any) -> Any:
        pixels = np.array(image)
        height, width = pixels.shape[:2]
        top, left = np.random.randint(height - 60), np.random.randint(width - 60)  # noqa: NPY002
        pixels = pixels[top : top + 60, left : left + 60]
        if np.random.rand() < 0.5:  # noqa: NPY002
            pixels = pixels[:, ::-1]
        pixels = np.ascontiguousarray(pixels).astype(np.float32) / 255.0
        pixels += np.random.normal(0, 0.01, pixels.shape).astype(np.float32)  # noqa: NPY002
        return torch.from_numpy(pixels.transpose(2, 0, 1))

    return loader_of(material, augment)


@pipeline()
def numpy_of_the_opened_file(material: Material) -> dict[str, Any]:
    """Pillow's image goes to numpy in all the ways it can, without `convert`."""

    class ImageArray(Dataset[Any]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            def opened() -> Any:
                return Image.open(material.photos[index])

            with opened() as image:
                one = np.asarray(image)
            two, three = np.array(opened(), dtype=np.float32), np.array(opened().resize((9, 8)).getdata())
            four = torch.frombuffer(bytearray(opened().tobytes()), dtype=torch.uint8)
            five = opened().__array_interface__
            return one, two.mean((0, 1)), three.sum(), four.sum(), five["shape"], len(five["data"]), one.flags.writeable

    return {"dataset": ImageArray(), "batch_size": 1, "shuffle": True}


@pipeline(needs="albumentations")
def albumentations_compose(material: Material) -> dict[str, Any]:
    import albumentations as A

    steps = A.Compose(
        [
            A.RandomResizedCrop(size=(48, 48)),
            A.HorizontalFlip(p=0.5),
            A.RandomBrightnessContrast(p=0.5),
            A.Normalize(),
        ],
        seed=7,
    )
    return loader_of(material, lambda image: steps(image=np.array(image))["image"].transpose(2, 0, 1))


@pipeline()
def rand_augment(material: Material) -> dict[str, Any]:
    steps = [T.RandomResizedCrop(48), T.RandomHorizontalFlip(), T.RandAugment(), T.ToTensor(), T.RandomErasing(0.5)]
    return loader_of(material, T.Compose(steps))


@pipeline()
def trivial_augment(material: Material) -> dict[str, Any]:
    steps = [T.TrivialAugmentWide(interpolation=T.InterpolationMode.BILINEAR), T.Resize((40, 40)), T.PILToTensor()]
    return loader_of(material, T.Compose(steps), generator=torch.Generator().manual_seed(1))


@pipeline()
def auto_augment_and_aug_mix(material: Material) -> dict[str, Any]:
    steps = [v2.RandomCrop(48, pad_if_needed=True, padding_mode="reflect"), v2.AutoAugment(), v2.AugMix()]
    return loader_of(material, v2.Compose([*steps, v2.PILToTensor()]))


@pipeline()
def jitter_gray_and_blur(material: Material) -> dict[str, Any]:
    steps = [T.Resize(64), T.RandomCrop(48), T.ColorJitter(0.4, 0.4, 0.4, 0.2), T.RandomGrayscale(0.3)]
    steps += [T.GaussianBlur(3), T.RandomAdjustSharpness(2), T.RandomAutocontrast(), T.RandomEqualize(), T.ToTensor()]
    return loader_of(material, T.Compose(steps))


@pipeline()
def geometry(material: Material) -> dict[str, Any]:
    steps = [T.RandomPerspective(), T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5), T.RandomRotation(30, expand=True)]
    steps += [T.Pad(4, padding_mode="edge"), T.Resize((40, 50), T.InterpolationMode.BOX), T.ToTensor()]
    return loader_of(material, T.Compose(steps))


def _to_rgb(image: Any) -> Any:
    return image.convert("RGB")


CLIP = T.Compose(
    [
        T.Resize(56, interpolation=T.InterpolationMode.BICUBIC),
        T.CenterCrop(56),
        _to_rgb,
        T.ToTensor(),
        T.Normalize(MEAN, STD),
    ]
)


@pipeline()
def clip_preprocess(material: Material) -> dict[str, Any]:
    class Captions(Dataset[Any]):
        def __len__(self) -> int:
            return len(material.photos)

        def __getitem__(self, index: int) -> Any:
            return CLIP(Image.open(str(material.photos[index]))), f"a photograph of {index}"

    return {"dataset": Captions(), "batch_size": 4, "shuffle": True}


@pipeline(deterministic=True)
def clip_preprocess_of_a_folder(material: Material) -> dict[str, Any]:
    return {"dataset": datasets.ImageFolder(material.folder, CLIP), "batch_size": 4, "shuffle": True}


@pipeline()
def v2_image_float_normalize(material: Material) -> dict[str, Any]:
    steps = [v2.ToImage(), v2.RandomResizedCrop(48, scale=(0.2, 1), interpolation=v2.InterpolationMode.BICUBIC)]
    steps += [v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return loader_of(material, v2.Compose(steps))


@pipeline()
def v2_on_pillow_images(material: Material) -> dict[str, Any]:
    steps = [v2.RGB(), v2.RandomShortestSize(60), v2.RandomCrop(40, pad_if_needed=True), v2.ColorJitter(0.2, 0.2)]
    steps += [v2.RandomPosterize(4), v2.RandomInvert(), v2.RandomChannelPermutation(), v2.PILToTensor()]
    return loader_of(material, v2.Compose(steps))


@pipeline(needs="timm")
def timm_training(material: Material) -> dict[str, Any]:
    from timm.data import create_transform

    steps = create_transform(48, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel")
    return loader_of(material, steps)


@pipeline(needs="timm")
def timm_dataset(material: Material) -> dict[str, Any]:
    """timm's own dataset, which opens the files, with the transforms of its evaluation."""
    from timm.data import ImageDataset, create_transform

    dataset = ImageDataset(str(material.folder), transform=create_transform(48, is_training=False))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


@pipeline()
def cutout_and_noise_on_tensors(material: Material) -> dict[str, Any]:
    class Cutout:
        def __call__(self, image: torch.Tensor) -> torch.Tensor:
            top, left = torch.randint(0, 30, (2,)).tolist()
            image[:, top : top + 8, left : left + 8] = 0.0
            return image + 0.1 * torch.randn_like(image)

    steps = T.Compose([T.Resize((40, 40), T.InterpolationMode.LANCZOS), T.ToTensor(), Cutout(), T.Lambda(_doubled)])
    return loader_of(material, steps)


def _doubled(image: torch.Tensor) -> torch.Tensor:
    return image * 2 - 1

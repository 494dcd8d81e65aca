"""What is timed for each row of docs/transforms.md's table: the transform with usual arguments, between usual steps."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import headrace.transforms as H
from bench.code.programs import END, T, v2
from bench.contenders._common import MEAN, SHORTER_SIDE, SIZE, STD

CROP = T.RandomResizedCrop(SIZE)


@dataclass(frozen=True)
class Row:
    """One transform.

    Attributes:
        ours: makes the transform of an image that headrace's loader gets.
        theirs: makes torch's. None: the same.
        images: of an epoch; fewer where a transform is slow.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any] | None = None
    images: int = 160

    def transforms(self) -> tuple[Any, Any]:
        """Returns torch's transform and headrace's."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries about their own names
            return (self.theirs or self.ours)(), self.ours()


def _between(text: str, images: int = 160) -> Row:
    """After RandomResizedCrop, before ToTensor and Normalize."""
    return Row(lambda: T.Compose([CROP, _made(text), *END]), images=images)


def _first(text: str) -> Row:
    """Instead of RandomResizedCrop."""
    return Row(lambda: T.Compose([_made(text), *END]))


def _on_tensor(text: str) -> Row:
    """After ToTensor and Normalize."""
    return Row(lambda: T.Compose([CROP, *END, _made(text)]))


def _whole(*texts: str) -> Row:
    """All steps."""
    return Row(lambda: T.Compose([_made(text) for text in texts]))


def _processor(name: str) -> Row:
    """A processor of transformers: `from_processor` beside a call of the processor."""

    def processor() -> Any:
        return getattr(importlib.import_module("transformers"), name)()

    def theirs() -> Any:
        one = processor()
        return lambda image: one(images=image, return_tensors="pt")["pixel_values"][0]

    return Row(lambda: H.from_processor(processor()), theirs)


def _made(text: str) -> Any:
    names = {"T": T, "v2": v2, "H": H, "torch": torch, "SIZE": SIZE, "MEAN": MEAN, "STD": STD, "CROP": CROP}
    if "timm" in text:
        names["timm"] = importlib.import_module("timm.data")
    return eval(text, names)


_BYTES = "T.PILToTensor()"
_CROP = "T.RandomResizedCrop(SIZE)"
_STACK = "T.Lambda(lambda crops: torch.stack([T.ToTensor()(one) for one in crops]))"
_TORCHVISION = {
    "AugMix": _between("T.AugMix()", 64),
    "AutoAugment": _between("T.AutoAugment()"),
    "CenterCrop": _whole(f"T.Resize({SHORTER_SIDE})", "T.CenterCrop(SIZE)", "T.ToTensor()", "T.Normalize(MEAN, STD)"),
    "ColorJitter": _between("T.ColorJitter(0.4, 0.4, 0.4, 0.1)"),
    "Compose": _between("T.Compose([T.RandomHorizontalFlip()])"),
    "ConvertImageDtype": _whole(_CROP, _BYTES, "T.ConvertImageDtype(torch.float32)", "T.Normalize(MEAN, STD)"),
    "ElasticTransform": _between("T.ElasticTransform()", 32),
    "FiveCrop": _whole("T.Resize(256)", "T.FiveCrop(SIZE)", _STACK),
    "GaussianBlur": _between("T.GaussianBlur(9)"),
    "GaussianNoise": _on_tensor("v2.GaussianNoise()"),
    "Grayscale": _between("T.Grayscale(3)"),
    "Identity": _between("v2.Identity()"),
    "JPEG": _between("v2.JPEG((50, 90))"),
    "Lambda": _between("T.Lambda(lambda image: image.rotate(5))"),
    "Normalize": _between("v2.Identity()"),
    "PILToTensor": _whole(_CROP, _BYTES),
    "Pad": _between("T.Pad(16)"),
    "RGB": _between("v2.RGB()"),
    "RandAugment": _between("T.RandAugment()"),
    "RandomAdjustSharpness": _between("T.RandomAdjustSharpness(2, 1.0)"),
    "RandomAffine": _between("T.RandomAffine(15, (0.1, 0.1), (0.9, 1.1), 10, T.InterpolationMode.BILINEAR)"),
    "RandomApply": _between("T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8)"),
    "RandomAutocontrast": _between("T.RandomAutocontrast(1.0)"),
    "RandomChannelPermutation": _between("v2.RandomChannelPermutation()"),
    "RandomChoice": _between("T.RandomChoice([T.RandomEqualize(1.0), T.RandomSolarize(128, 1.0), T.Grayscale(3)])"),
    "RandomCrop": _first("T.RandomCrop(SIZE, pad_if_needed=True)"),
    "RandomEqualize": _between("T.RandomEqualize(1.0)"),
    "RandomErasing": _on_tensor("T.RandomErasing(1.0)"),
    "RandomGrayscale": _between("T.RandomGrayscale(1.0)"),
    "RandomHorizontalFlip": _between("T.RandomHorizontalFlip()"),
    "RandomInvert": _between("T.RandomInvert(1.0)"),
    "RandomOrder": _between("T.RandomOrder([T.RandomEqualize(1.0), T.RandomSolarize(128, 1.0)])"),
    "RandomPerspective": _between("T.RandomPerspective(0.5, 1.0)"),
    "RandomPhotometricDistort": _between("v2.RandomPhotometricDistort()"),
    "RandomPosterize": _between("T.RandomPosterize(4, 1.0)"),
    "RandomResizedCrop": _first(_CROP),
    "RandomRotation": _between("T.RandomRotation(30, T.InterpolationMode.BILINEAR)"),
    "RandomResize": _whole("v2.RandomResize(256, 320)", "T.CenterCrop(SIZE)", "T.ToTensor()"),
    "RandomShortestSize": _whole("v2.RandomShortestSize([256, 288, 320])", "T.CenterCrop(SIZE)", "T.ToTensor()"),
    "RandomSolarize": _between("T.RandomSolarize(128, 1.0)"),
    "RandomVerticalFlip": _between("T.RandomVerticalFlip()"),
    "RandomZoomOut": _whole(_CROP, "v2.RandomZoomOut()", "T.Resize((SIZE, SIZE))", "T.ToTensor()"),
    "Resize": _first("T.Resize((SIZE, SIZE))"),
    "ScaleJitter": _whole("v2.ScaleJitter((SIZE, SIZE))", "T.CenterCrop(SIZE)", "T.ToTensor()"),
    "TenCrop": _whole("T.Resize(256)", "T.TenCrop(SIZE)", _STACK),
    "ToDtype": _whole(_CROP, "v2.ToImage()", "v2.ToDtype(torch.float32, scale=True)", "v2.Normalize(MEAN, STD)"),
    "ToImage": _whole(_CROP, "v2.ToImage()"),
    "ToPureTensor": _whole(_CROP, "v2.ToImage()", "v2.ToPureTensor()"),
    "ToTensor": _whole(_CROP, "T.ToTensor()"),
    "TrivialAugmentWide": _between("T.TrivialAugmentWide()"),
}
_TIMM = {
    "AugMixAugment": _between("timm.auto_augment.augment_and_mix_transform('augmix-m5-w4-d2', {})", 64),
    "AutoAugment": _between("timm.auto_augment_transform('originalr', {'img_mean': (124, 116, 104)})"),
    "CenterCropOrPad": _whole("T.Resize(256)", "timm.CenterCropOrPad(SIZE)", "T.ToTensor()", "T.Normalize(MEAN, STD)"),
    "MaybePILToTensor": _whole(_CROP, "timm.MaybePILToTensor()"),
    "MaybeToTensor": _whole(_CROP, "timm.MaybeToTensor()"),
    "RandAugment": _between("timm.rand_augment_transform('rand-m9-inc1', {'img_mean': (124, 116, 104)})"),
    "RandomCropOrPad": _first("timm.RandomCropOrPad(SIZE)"),
    "RandomErasing": _on_tensor("timm.random_erasing.RandomErasing(1.0, device='cpu')"),
    "RandomPad": _whole("T.Resize(160, max_size=SIZE)", "timm.RandomPad((SIZE, SIZE))", "T.ToTensor()"),
    "RandomResizedCropAndInterpolation": _first("timm.RandomResizedCropAndInterpolation(SIZE, interpolation='random')"),
    "ResizeKeepRatio": _whole("timm.ResizeKeepRatio(256)", "timm.CenterCropOrPad(SIZE)", "T.ToTensor()"),
    "TrimBorder": _whole("timm.transforms.TrimBorder(4)", _CROP, "T.ToTensor()"),
}
_PROCESSORS = (
    *("BeitImageProcessor", "BitImageProcessor", "BlipImageProcessor", "CLIPImageProcessor"),
    *("ChameleonImageProcessorPil", "ChineseCLIPImageProcessor", "ConvNextImageProcessor", "DeiTImageProcessor"),
    *(
        "EfficientNetImageProcessor",
        "MobileNetV1ImageProcessor",
        "MobileNetV2ImageProcessor",
        "OwlViTImageProcessor",
        "PvtImageProcessor",
    ),
    *("SegformerImageProcessor", "SiglipImageProcessor", "ViTImageProcessor"),
)
_HEADRACE = {
    "ResizedCenterCrop": _first("H.ResizedCenterCrop(SIZE)"),
    "TextureChannels": _whole(_CROP, "H.TextureChannels()"),
    "Views": Row(lambda: H.Views([H.Compose([CROP, T.RandomHorizontalFlip(), *END])] * 2)),
}

#: (heading of the page, name of the transform) -> what is timed.
ROWS: dict[str, dict[str, Row]] = {
    "torchvision": _TORCHVISION,
    "timm": _TIMM,
    "Hugging Face": {name: _processor(name) for name in _PROCESSORS},
    "headrace": _HEADRACE,
}

"""Transforms that headrace runs natively, with torchvision v2's names, argument orders and defaults.

They do not need torchvision. TextureChannels is headrace's own, and runs in Python threads. Each is also callable on
its own, on an image or on a whole sample. Geometric and colour transforms change PIL images, the others change
tensors (flips and RandomErasing take both). Called directly, they draw from torch's global generator exactly what
torchvision's transforms draw. A `DataLoader` takes torchvision's own transforms, v1 and v2, as well.

Decisions: 0024, 0027.
"""

from headrace._recipe.steps.aspect_sizes import aspect_ratio_sizes
from headrace.transforms._arguments import InterpolationMode, filter_name
from headrace.transforms._base import Transform
from headrace.transforms._blur import GaussianBlur
from headrace.transforms._colour import (
    ColorJitter,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from headrace.transforms._containers import Compose, RandomApply, RandomChoice, RandomOrder, Views
from headrace.transforms._crops import FiveCrop, RandomCrop, RandomResizedCrop, TenCrop
from headrace.transforms._dtype_conversion import ToDtype
from headrace.transforms._erasing import RandomErasing
from headrace.transforms._geometry import (
    CenterCrop,
    Grayscale,
    Pad,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    Resize,
)
from headrace.transforms._pointwise import Normalize, PILToTensor, ToImage, ToPureTensor, ToTensor
from headrace.transforms._sizes import RandomResize, RandomShortestSize, RandomZoomOut, ScaleJitter
from headrace.transforms._warps import RandomAffine, RandomPerspective, RandomRotation
from headrace.transforms.own.albumentations_transform import AlbumentationsTransform, from_albumentations
from headrace.transforms.own.patches import ResizeToPatches
from headrace.transforms.own.processor import ProcessorTransform, from_processor
from headrace.transforms.own.ratio import ByAspectRatio, ResizedCenterCrop
from headrace.transforms.own.texture import TextureChannels
from headrace.transforms.policies.classes import AutoAugment, RandAugment, TrivialAugmentWide
from headrace.transforms.policies.learned import AutoAugmentPolicy

__all__ = [
    "AlbumentationsTransform",
    "AutoAugment",
    "AutoAugmentPolicy",
    "ByAspectRatio",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Normalize",
    "PILToTensor",
    "Pad",
    "ProcessorTransform",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ResizeToPatches",
    "ResizedCenterCrop",
    "ScaleJitter",
    "TenCrop",
    "TextureChannels",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToTensor",
    "Transform",
    "TrivialAugmentWide",
    "Views",
    "aspect_ratio_sizes",
    "filter_name",
    "from_albumentations",
    "from_processor",
]

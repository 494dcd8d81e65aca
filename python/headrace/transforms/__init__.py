"""The transforms that headrace runs natively, under torchvision v2's names, argument orders and defaults.

They need no torchvision, and each is callable on its own: on a PIL image for those of geometry and colour, on a tensor
for the rest, with torch's global generator, from which they draw exactly what torchvision's do. torchvision's own
objects of these classes, v1 and v2, serve a `DataLoader` as well.
"""

from headrace.aspect import aspect_ratio_sizes
from headrace.transforms._base import Compose, Transform
from headrace.transforms._blur import GaussianBlur
from headrace.transforms._colour import (
    ColorJitter,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from headrace.transforms._containers import RandomApply, RandomChoice, RandomOrder
from headrace.transforms._erasing import RandomErasing
from headrace.transforms._geometry import (
    CenterCrop,
    Grayscale,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from headrace.transforms._interpolation import InterpolationMode, filter_name
from headrace.transforms._pointwise import Normalize, PILToTensor, ToDtype, ToImage, ToPureTensor, ToTensor
from headrace.transforms._ratio import ByAspectRatio, ResizedCenterCrop

__all__ = [
    "ByAspectRatio",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "ResizedCenterCrop",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToTensor",
    "Transform",
    "aspect_ratio_sizes",
    "filter_name",
]

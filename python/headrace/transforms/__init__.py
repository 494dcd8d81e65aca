"""The transforms that headrace runs natively, under torchvision v2's names, argument orders and defaults.

They need no torchvision, and each is callable on its own, with an image or a whole sample: those of geometry and colour
change PIL images, the rest tensors, with torch's global generator, from which they draw exactly what torchvision's do.
torchvision's own objects of these classes, v1 and v2, serve a `DataLoader` as well.
"""

from headrace.recipe.aspect_sizes import aspect_ratio_sizes
from headrace.transforms._base import Transform
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
from headrace.transforms._containers import Compose, RandomApply, RandomChoice, RandomOrder
from headrace.transforms._dtype import ToDtype
from headrace.transforms._erasing import RandomErasing
from headrace.transforms._geometry import (
    CenterCrop,
    Grayscale,
    Pad,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    Resize,
)
from headrace.transforms._interpolation import InterpolationMode, filter_name
from headrace.transforms._pointwise import Normalize, PILToTensor, ToImage, ToPureTensor, ToTensor
from headrace.transforms._random_crops import RandomCrop, RandomResizedCrop
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

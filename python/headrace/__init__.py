"""headrace: torchvision's batches, bit for bit, from native threads.

from headrace import DataLoader
"""

from headrace import ops, sampler, transforms
from headrace.errors import SampleError, VerificationError
from headrace.loader import DataLoader
from headrace.lowering import LoweringError
from headrace.profiler import profile
from headrace.sources import Arrays, Blobs, ImageFiles, ImageFolder

__version__ = "0.1.0"
__all__ = [
    "Arrays",
    "Blobs",
    "DataLoader",
    "ImageFiles",
    "ImageFolder",
    "LoweringError",
    "SampleError",
    "VerificationError",
    "ops",
    "profile",
    "sampler",
    "transforms",
]

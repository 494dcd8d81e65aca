"""Image datasets that the native path reads: files, folders, encoded images in memory, arrays of pixels.

Decisions: 0007, 0031, 0075, 0076.
"""

from headrace.datasets.sources.arrays import ImageArray
from headrace.datasets.sources.blobs import EncodedImages
from headrace.datasets.sources.dataset import BlobDataset, Variant, checked_table
from headrace.datasets.sources.image_files import ImageFiles
from headrace.datasets.sources.image_folder import ImageFolder
from headrace.datasets.sources.image_sizes import image_sizes
from headrace.datasets.sources.override_checks import NotNative
from headrace.datasets.sources.recognition.recognise import as_counted, as_source

__all__ = [
    "BlobDataset",
    "EncodedImages",
    "ImageArray",
    "ImageFiles",
    "ImageFolder",
    "NotNative",
    "Variant",
    "as_counted",
    "as_source",
    "checked_table",
    "image_sizes",
]

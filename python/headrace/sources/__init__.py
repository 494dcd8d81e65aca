"""Image datasets that the native path reads: files, folders, encoded images in memory, arrays of pixels."""

from headrace.sources.arrays import Arrays
from headrace.sources.blobs import Blobs
from headrace.sources.dataset import BlobDataset, Variant, checked_table
from headrace.sources.image_files import ImageFiles
from headrace.sources.image_folder import ImageFolder
from headrace.sources.image_sizes import image_sizes
from headrace.sources.recognised.recognise import as_counted, as_source
from headrace.sources.unchanged import NotNative

__all__ = [
    "Arrays",
    "BlobDataset",
    "Blobs",
    "ImageFiles",
    "ImageFolder",
    "NotNative",
    "Variant",
    "as_counted",
    "as_source",
    "checked_table",
    "image_sizes",
]

"""Datasets whose samples are encoded images: the files, folders and memory that the native path reads."""

from headrace.sources.blobs import Blobs
from headrace.sources.dataset import BlobDataset
from headrace.sources.image_files import ImageFiles
from headrace.sources.image_folder import ImageFolder
from headrace.sources.recognise import NotNative, as_source

__all__ = ["BlobDataset", "Blobs", "ImageFiles", "ImageFolder", "NotNative", "as_source"]

"""Datasets that locate their samples' bytes or rows, so that native threads read and decode them.

Each is a map-style torch dataset, except `TarStream`, which is iterable. A class is imported at its first use.

Decisions: 0031, 0032, 0076.
"""

from typing import TYPE_CHECKING

from headrace._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from headrace.datasets.audio.audio_dataset import Audio
    from headrace.datasets.columns.columns_dataset import Columns
    from headrace.datasets.columns.shared_list import SharedList
    from headrace.datasets.columns.token_cache import token_columns
    from headrace.datasets.fields.boxes import Boxes
    from headrace.datasets.fields.fields_dataset import Fields
    from headrace.datasets.lmdb.lmdb_dataset import LMDB
    from headrace.datasets.mixture.mixture_dataset import Mixture, MixturePart
    from headrace.datasets.pixel_cache.pixel_cache import PixelCache
    from headrace.datasets.sources.arrays import ImageArray
    from headrace.datasets.sources.blobs import EncodedImages
    from headrace.datasets.sources.image_files import ImageFiles
    from headrace.datasets.sources.image_folder import ImageFolder
    from headrace.datasets.tables.arrow import Arrow
    from headrace.datasets.tables.hugging_face_source import from_hf
    from headrace.datasets.tables.litdata import LitData
    from headrace.datasets.tables.mds import MDS
    from headrace.datasets.tables.parquet import Parquet
    from headrace.datasets.tables.zip_archive import Zip
    from headrace.datasets.tar_shards.tar_dataset import TarShards
    from headrace.datasets.tar_stream.stream_dataset import TarStream
    from headrace.datasets.videos.clip_samplers import (
        clips_at_random_indices,
        clips_at_random_timestamps,
        clips_at_regular_indices,
    )
    from headrace.datasets.videos.given_frames import frames_at, frames_played_at, uniform_frames
    from headrace.datasets.videos.videos_dataset import Videos

__all__ = [
    "LMDB",
    "MDS",
    "Arrow",
    "Audio",
    "Boxes",
    "Columns",
    "EncodedImages",
    "Fields",
    "ImageArray",
    "ImageFiles",
    "ImageFolder",
    "LitData",
    "Mixture",
    "MixturePart",
    "Parquet",
    "PixelCache",
    "SharedList",
    "TarShards",
    "TarStream",
    "Videos",
    "Zip",
    "clips_at_random_indices",
    "clips_at_random_timestamps",
    "clips_at_regular_indices",
    "frames_at",
    "frames_played_at",
    "from_hf",
    "token_columns",
    "uniform_frames",
]

_HOMES = {
    "Audio": "audio.audio_dataset",
    "LMDB": "lmdb.lmdb_dataset",
    "MDS": "tables.mds",
    **dict.fromkeys(("Mixture", "MixturePart"), "mixture.mixture_dataset"),
    "Arrow": "tables.arrow",
    "Boxes": "fields.boxes",
    "Columns": "columns.columns_dataset",
    "EncodedImages": "sources.blobs",
    "Fields": "fields.fields_dataset",
    "ImageArray": "sources.arrays",
    "ImageFiles": "sources.image_files",
    "ImageFolder": "sources.image_folder",
    "LitData": "tables.litdata",
    "Parquet": "tables.parquet",
    "PixelCache": "pixel_cache.pixel_cache",
    "SharedList": "columns.shared_list",
    "TarShards": "tar_shards.tar_dataset",
    "TarStream": "tar_stream.stream_dataset",
    "Videos": "videos.videos_dataset",
    **dict.fromkeys(
        ("clips_at_random_indices", "clips_at_random_timestamps", "clips_at_regular_indices"),
        "videos.clip_samplers",
    ),
    **dict.fromkeys(("frames_at", "frames_played_at", "uniform_frames"), "videos.given_frames"),
    "Zip": "tables.zip_archive",
    "from_hf": "tables.hugging_face_source",
    "token_columns": "columns.token_cache",
}

if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, __all__, _HOMES)

"""headrace: torchvision's batches, bit for bit, from native threads.

from headrace import DataLoader
"""

from typing import TYPE_CHECKING

from headrace._base.lazy_names import lazy_names
from headrace._base.version import __version__ as __version__
from headrace.datasets import __all__ as _DATASETS

if TYPE_CHECKING:
    from headrace import datasets, pillow, sampler, transforms
    from headrace._base.errors import HeadraceError, SampleError, VerificationError
    from headrace._base.messages import PerformanceWarning
    from headrace._helpers.argument import RayHelpers
    from headrace._loading.autotune.budget import AutoWorkers
    from headrace._lowering import LoweringError
    from headrace._reports.loader.profiler import profile
    from headrace._reports.metrics.publish import publish
    from headrace._storage.entry_points.entry_points import EntryPoints
    from headrace._storage.remote.cache import Cache
    from headrace._storage.remote.network import Network
    from headrace.datasets import (
        LMDB,
        MDS,
        Arrow,
        Audio,
        Boxes,
        Columns,
        EncodedImages,
        Fields,
        ImageArray,
        ImageFiles,
        ImageFolder,
        LitData,
        Mixture,
        MixturePart,
        Parquet,
        PixelCache,
        SharedList,
        TarShards,
        TarStream,
        Videos,
        Zip,
        clips_at_random_indices,
        clips_at_random_timestamps,
        clips_at_regular_indices,
        frames_at,
        frames_played_at,
        from_hf,
        token_columns,
        uniform_frames,
    )
    from headrace.loader import DataLoader
    from headrace.ops import functions as ops

__all__ = [
    "LMDB",
    "MDS",
    "Arrow",
    "Audio",
    "AutoWorkers",
    "Boxes",
    "Cache",
    "Columns",
    "DataLoader",
    "EncodedImages",
    "EntryPoints",
    "Fields",
    "HeadraceError",
    "ImageArray",
    "ImageFiles",
    "ImageFolder",
    "LitData",
    "LoweringError",
    "Mixture",
    "MixturePart",
    "Network",
    "Parquet",
    "PerformanceWarning",
    "PixelCache",
    "RayHelpers",
    "SampleError",
    "SharedList",
    "TarShards",
    "TarStream",
    "VerificationError",
    "Videos",
    "Zip",
    "clips_at_random_indices",
    "clips_at_random_timestamps",
    "clips_at_regular_indices",
    "datasets",
    "frames_at",
    "frames_played_at",
    "from_hf",
    "ops",
    "pillow",
    "profile",
    "publish",
    "sampler",
    "token_columns",
    "transforms",
    "uniform_frames",
]

# Modules are imported on first access: `headrace --version` runs without torch, and the command line can report why the
# native module does not load.
_HOMES = {
    **dict.fromkeys(_DATASETS, "datasets"),
    "AutoWorkers": "_loading.autotune.budget",
    "Cache": "_storage.remote.cache",
    "DataLoader": "loader",
    "EntryPoints": "_storage.entry_points.entry_points",
    "HeadraceError": "_base.errors",
    "LoweringError": "_lowering",
    "Network": "_storage.remote.network",
    "PerformanceWarning": "_base.messages",
    "RayHelpers": "_helpers.argument",
    "SampleError": "_base.errors",
    "VerificationError": "_base.errors",
    "profile": "_reports.loader.profiler",
    "publish": "_reports.metrics.publish",
}
_OLD = {"Arrays": "ImageArray", "Auto": "AutoWorkers", "Blobs": "EncodedImages", "Samples": "Fields"}

if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, __all__, _HOMES, _OLD)

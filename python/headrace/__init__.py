"""headrace: torchvision's batches, bit for bit, from native threads.

from headrace import DataLoader
"""

from typing import TYPE_CHECKING

from headrace._base.version import __version__ as __version__

if TYPE_CHECKING:
    from headrace import pillow, sampler, transforms
    from headrace._base.errors import SampleError, VerificationError
    from headrace._loading.autotune.budget import Auto
    from headrace._lowering import LoweringError
    from headrace._reports.loader.profiler import profile
    from headrace._reports.metrics.publish import publish
    from headrace._storage.entry_points.entry_points import EntryPoints
    from headrace._storage.remote.cache import Cache
    from headrace._storage.remote.network import Network
    from headrace.datasets.columns.columns_dataset import Columns
    from headrace.datasets.columns.tokens import token_columns
    from headrace.datasets.fields.fields_dataset import Samples
    from headrace.datasets.lmdb.lmdb_dataset import LMDB
    from headrace.datasets.sources import Arrays, Blobs, ImageFiles, ImageFolder
    from headrace.datasets.tables.arrow import Arrow
    from headrace.datasets.tables.hugging_face_source import from_hf
    from headrace.datasets.tables.litdata import LitData
    from headrace.datasets.tables.mds import MDS
    from headrace.datasets.tables.parquet import Parquet
    from headrace.datasets.tables.zip_archive import Zip
    from headrace.datasets.tar_shards.tar_dataset import TarShards
    from headrace.datasets.tar_stream.stream_dataset import TarStream
    from headrace.loader import DataLoader
    from headrace.ops import functions as ops

__all__ = [
    "LMDB",
    "MDS",
    "Arrays",
    "Arrow",
    "Auto",
    "Blobs",
    "Cache",
    "Columns",
    "DataLoader",
    "EntryPoints",
    "ImageFiles",
    "ImageFolder",
    "LitData",
    "LoweringError",
    "Network",
    "Parquet",
    "SampleError",
    "Samples",
    "TarShards",
    "TarStream",
    "VerificationError",
    "Zip",
    "from_hf",
    "ops",
    "pillow",
    "profile",
    "publish",
    "sampler",
    "token_columns",
    "transforms",
]

# Module of each public name that is not itself a module. Modules are imported on first access: `headrace --version`
# runs without torch, and the command line can report why the native module does not load.
_MODULES = {
    "LitData": "datasets.tables.litdata",
    "LMDB": "datasets.lmdb.lmdb_dataset",
    "MDS": "datasets.tables.mds",
    "Arrays": "datasets.sources",
    "Arrow": "datasets.tables.arrow",
    "Auto": "_loading.autotune.budget",
    "Blobs": "datasets.sources",
    "Cache": "_storage.remote.cache",
    "Columns": "datasets.columns.columns_dataset",
    "DataLoader": "loader",
    "EntryPoints": "_storage.entry_points.entry_points",
    "ImageFiles": "datasets.sources",
    "ImageFolder": "datasets.sources",
    "LoweringError": "_lowering",
    "Network": "_storage.remote.network",
    "Parquet": "datasets.tables.parquet",
    "SampleError": "_base.errors",
    "Samples": "datasets.fields.fields_dataset",
    "TarShards": "datasets.tar_shards.tar_dataset",
    "TarStream": "datasets.tar_stream.stream_dataset",
    "VerificationError": "_base.errors",
    "Zip": "datasets.tables.zip_archive",
    "from_hf": "datasets.tables.hugging_face_source",
    "profile": "_reports.loader.profiler",
    "publish": "_reports.metrics.publish",
    "token_columns": "datasets.columns.tokens",
}

if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
        globals()[name] = value = getattr(module, name) if name in _MODULES else module
        return value


def __dir__() -> list[str]:
    """Returns the public names; the modules that define them are internal."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

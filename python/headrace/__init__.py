"""headrace: torchvision's batches, bit for bit, from native threads.

from headrace import DataLoader
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace import pillow, sampler, transforms
    from headrace._base.errors import SampleError, VerificationError
    from headrace._lowering import LoweringError
    from headrace._storage.entry_points.entry_points import EntryPoints
    from headrace._storage.remote.cache import Cache
    from headrace._storage.remote.network import Network
    from headrace.columns.dataset import Columns
    from headrace.columns.tokens import token_columns
    from headrace.insight.profiler import profile
    from headrace.key_values.dataset import LMDB
    from headrace.loader import DataLoader
    from headrace.ops import functions as ops
    from headrace.publishing.publish import publish
    from headrace.samples.dataset import Samples
    from headrace.shards.dataset import TarShards
    from headrace.sources import Arrays, Blobs, ImageFiles, ImageFolder
    from headrace.streams.dataset import TarStream
    from headrace.tables.arrow import Arrow
    from headrace.tables.hugging_face import from_hf
    from headrace.tables.litdata import LitData
    from headrace.tables.mds import MDS
    from headrace.tables.parquet import Parquet
    from headrace.tables.zip_archive import Zip
    from headrace.tuning.budget import Auto

__version__ = "0.1.0"
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
    "LitData": "tables.litdata",
    "LMDB": "key_values.dataset",
    "MDS": "tables.mds",
    "Arrays": "sources",
    "Arrow": "tables.arrow",
    "Auto": "tuning.budget",
    "Blobs": "sources",
    "Cache": "_storage.remote.cache",
    "Columns": "columns.dataset",
    "DataLoader": "loader",
    "EntryPoints": "_storage.entry_points.entry_points",
    "ImageFiles": "sources",
    "ImageFolder": "sources",
    "LoweringError": "_lowering",
    "Network": "_storage.remote.network",
    "Parquet": "tables.parquet",
    "SampleError": "_base.errors",
    "Samples": "samples.dataset",
    "TarShards": "shards.dataset",
    "TarStream": "streams.dataset",
    "VerificationError": "_base.errors",
    "Zip": "tables.zip_archive",
    "from_hf": "tables.hugging_face",
    "profile": "insight.profiler",
    "publish": "publishing.publish",
    "token_columns": "columns.tokens",
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
    """Returns the public names; the modules behind them are internal."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

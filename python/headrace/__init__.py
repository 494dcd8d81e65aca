"""headrace: torchvision's batches, bit for bit, from native threads.

from headrace import DataLoader
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace import sampler, transforms
    from headrace.base.errors import SampleError, VerificationError
    from headrace.insight.profiler import profile
    from headrace.loader import DataLoader
    from headrace.lowering import LoweringError
    from headrace.ops import functions as ops
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

# The modules of the names above that are no modules themselves. Each is imported when its name is first asked for:
# `headrace --version` does without torch, and the command line can say why the native module does not load.
_MODULES = {
    "Arrays": "sources",
    "Blobs": "sources",
    "DataLoader": "loader",
    "ImageFiles": "sources",
    "ImageFolder": "sources",
    "LoweringError": "lowering",
    "SampleError": "base.errors",
    "VerificationError": "base.errors",
    "profile": "insight.profiler",
}

if not TYPE_CHECKING:  # a type checker would take any name for one that is there

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
        globals()[name] = value = getattr(module, name) if name in _MODULES else module
        return value


def __dir__() -> list[str]:
    """The public names; the modules behind them are internal."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

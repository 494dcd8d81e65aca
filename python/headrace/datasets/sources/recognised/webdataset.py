"""Names the way to the native path for pipelines of webdataset, which give their samples in an order of their own."""

from __future__ import annotations

from typing import Any

from headrace.datasets.sources.unchanged import NotNative, class_name


def refuse_webdataset(dataset: Any) -> None:
    """Raises NotNative with a remedy if `dataset` is a pipeline of webdataset; the library is never imported."""
    name = class_name(type(dataset))
    if name.startswith("webdataset."):
        raise NotNative(
            f"{name} gives its samples in an order that no index has; headrace.TarShards(urls) reads the same shards "
            "natively, in any order"
        )

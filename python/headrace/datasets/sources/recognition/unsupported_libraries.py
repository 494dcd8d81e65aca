"""Names the way to the native path for datasets of other libraries that have none under their own class.

Hugging Face's samples are dicts of decoded columns; a pipeline of webdataset gives its samples in an order of its own.
Neither library is ever imported.
"""

from __future__ import annotations

import sys

from headrace.datasets.sources.override_checks import NotNative, class_name


def refuse_hugging_face(dataset: object) -> None:
    """Raises NotNative with a remedy if `dataset` is a ``datasets.Dataset``."""
    original = getattr(sys.modules.get("datasets"), "Dataset", None)
    if original is None or not isinstance(dataset, original):
        return
    ours = "headrace.from_hf(dataset, transform=...) makes it native, with samples (image, label)"
    if dataset.format["type"] == "custom":
        raise NotNative(f"the function from set_transform or with_transform is called in Python; {ours}")
    raise NotNative(f"the samples of a datasets.Dataset are dicts of decoded columns; {ours}")


def refuse_webdataset(dataset: object) -> None:
    """Raises NotNative with a remedy if `dataset` is a pipeline of webdataset."""
    name = class_name(type(dataset))
    if name.startswith("webdataset."):
        raise NotNative(
            f"{name} gives its samples in an order that no index has; headrace.TarShards(urls) reads the same shards "
            "natively, in any order"
        )

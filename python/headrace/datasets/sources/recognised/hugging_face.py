"""Names the way to the native path for datasets of Hugging Face's library, whose samples are dicts."""

from __future__ import annotations

import sys
from typing import Any

from headrace.datasets.sources.unchanged import NotNative


def refuse_hugging_face(dataset: Any) -> None:
    """Raises NotNative with a remedy if `dataset` is a ``datasets.Dataset``; the library is never imported."""
    original = getattr(sys.modules.get("datasets"), "Dataset", None)
    if original is None or not isinstance(dataset, original):
        return
    ours = "headrace.from_hf(dataset, transform=...) makes it native, with samples (image, label)"
    if dataset.format["type"] == "custom":
        raise NotNative(f"the function from set_transform or with_transform is called in Python; {ours}")
    raise NotNative(f"the samples of a datasets.Dataset are dicts of decoded columns; {ours}")

"""The doors that are open while images are opened deferred."""

from __future__ import annotations

from headrace._doors import hf_processors, image_to_tensor, opencv, torchvision_io
from headrace._doors.tensors import joined_tensors  # noqa: F401 - registers what it records
from headrace._doors.tensors.image_functions import KERNELS
from headrace.pillow import open_patch
from headrace.pillow.to_tensor_patches import Later

_added = False


def add_doors() -> None:
    """Has these functions replaced, too, wherever Pillow's images are deferred. A second call has no effect."""
    global _added
    if not _added:
        _added = Later.defers_bytes = True
        for one in (torchvision_io.STEPS, KERNELS, image_to_tensor.STEPS, opencv.STEPS, hf_processors.STEPS):
            open_patch.add_replacements(one)

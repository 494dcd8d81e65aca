"""The doors that are open while images are opened deferred."""

from __future__ import annotations

import numpy as np

from headrace._loading.doors import (
    box_crops,
    hf_pil_processors,
    hf_processors,
    image_to_tensor,
    normalised_arrays,
    opencv,
    torchvision_io,
    webdataset_images,
)
from headrace._loading.doors.tensors import composed_steps, joined_tensors  # noqa: F401 - registers what it records
from headrace._loading.doors.tensors.deferred_tensor import Deferred
from headrace._loading.doors.tensors.image_functions import KERNELS
from headrace._loading.doors.tensors.single_inputs import TRANSFORMS
from headrace._loading.doors.videos import decord_videos, torchcodec_videos
from headrace.pillow import open_patch
from headrace.pillow.to_tensor_patches import Later

_added = False


def add_doors() -> None:
    """Has these functions replaced, too, wherever Pillow's images are deferred. A second call has no effect."""
    global _added
    if not _added:
        _added = Later.defers_bytes = True
        Later.defer_values = staticmethod(image_to_tensor.defer_values)
        Later.record_steps = staticmethod(composed_steps.record_steps)
        Later.inputs = Deferred, np.ndarray
        open_patch.add_replacements(
            openers=(
                torchvision_io.STEPS,
                opencv.STEPS,
                webdataset_images.STEPS,
                normalised_arrays.STEPS,
                torchcodec_videos.STEPS,
                decord_videos.STEPS,
                *image_to_tensor.STEPS_OF_ARRAYS,
            ),
            followers=(
                KERNELS,
                TRANSFORMS,
                image_to_tensor.STEPS,
                hf_processors.STEPS,
                hf_pil_processors.STEPS,
                box_crops.STEPS,
            ),
        )

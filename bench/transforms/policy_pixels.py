"""How far the operations of DALI's RandAugment are from torchvision's: the same images, magnitude and direction.

    python -m bench.transforms.policy_pixels --out build/policy-pixels.json

headrace's pixels are torchvision's: the tests compare each operation, and `loader.verify()` whole loaders.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from bench.contenders._common import SIZE, import_torchvision
from bench.datasets import REPOSITORY

BIN, BINS = 9, 31
# DALI's name of an operation -> torchvision's
NAMES = {
    "translate_x": "TranslateX",
    "translate_y": "TranslateY",
    "shear_x": "ShearX",
    "shear_y": "ShearY",
    "rotate": "Rotate",
    "brightness": "Brightness",
    "contrast": "Contrast",
    "color": "Color",
    "sharpness": "Sharpness",
    "posterize": "Posterize",
    "solarize": "Solarize",
    "equalize": "Equalize",
    "auto_contrast": "AutoContrast",
}


def _images() -> Iterator[Image.Image]:
    for path in sorted((REPOSITORY / "python/headrace/_cli/demo/photos").rglob("*.jpg")):
        with Image.open(path) as image:
            yield image.convert("RGB").resize((SIZE, SIZE))


def _torchvision(images: list[Image.Image], name: str) -> npt.NDArray[np.uint8]:
    import_torchvision()
    from torchvision.transforms import InterpolationMode, RandAugment
    from torchvision.transforms.autoaugment import _apply_op

    magnitudes = RandAugment()._augmentation_space(BINS, (SIZE, SIZE))[name][0]
    magnitude = float(magnitudes[BIN]) if magnitudes.ndim else 0.0
    return np.stack([_apply_op(image, name, magnitude, InterpolationMode.NEAREST, fill=None) for image in images])


def _dali(images: list[Image.Image], operation: Any) -> npt.NDArray[np.uint8]:
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.auto_aug.core import signed_bin

    pixels = [np.asarray(image) for image in images]

    @pipeline_def(batch_size=len(images), num_threads=1, device_id=None, enable_conditionals=True)
    def graph() -> Any:
        data = fn.external_source(source=lambda: pixels, layout="HWC")
        way = signed_bin(BIN, random_sign=fn.random.uniform(values=[0], dtype=types.INT32))
        options = {"shape": (SIZE, SIZE)} if operation.name.startswith("translate") else {}
        if operation.name in ("equalize", "auto_contrast"):
            return operation(data)
        return operation(
            data,
            magnitude_bin=way if operation.randomly_negate else BIN,
            num_magnitude_bins=BINS,
            fill_value=0,
            interp_type=types.INTERP_NN,
            **options,
        )

    (made,) = graph().run()
    return np.stack([np.asarray(made.at(i)) for i in range(len(images))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    from nvidia.dali.auto_aug.rand_augment import get_rand_augment_suite

    images, table = list(_images()), {}
    for operation in get_rand_augment_suite(use_shape=True, max_translate_rel=150 / 331):
        name = NAMES.get(operation.name)
        if name is None:
            continue
        distance = np.abs(_dali(images, operation).astype(int) - _torchvision(images, name))
        table[name] = {
            "mean": round(float(distance.mean()), 3),
            "largest": int(distance.max()),
            "share": round(float((distance > 0).mean()), 4),
        }
        print(f"{name:14} {table[name]}", flush=True)
    if args.out:
        args.out.write_text(json.dumps({"images": len(images), "bin": BIN, "levels": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""FFCV on its own .beton file in the page cache, with its own C library for decoding and resizing.

As in its documentation, the writer re-encodes every image (JPEG, quality 90), so the file is smaller and faster to
decode than the original files. Variant `same` stores the bytes of the files, so that all contenders decode the same
bytes; variant `raw` the pixels of headrace's raw pack, as they are. Batches are NCHW in shape and channels-last in
memory, FFCV's default and its faster layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.contenders._common import MEAN, SHORTER_SIDE, SIZE, STD, Job, raw_images, run

if TYPE_CHECKING:
    import torch


class _Samples:
    """Index -> (image, label), in the form that FFCV's writer requires."""

    def __init__(self, job: Job) -> None:
        links = {file.resolve(): file.parent.name for file in reversed(job.files())}
        self._files = job.unique_files()
        self._labels = [sorted(set(links.values())).index(links[file]) for file in self._files]
        self._same = job.variant == "same"

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        file, label = self._files[index], self._labels[index]
        with Image.open(file) as image:
            return ((file.read_bytes(), image.size) if self._same else image.convert("RGB")), label


def beton(job: Job) -> Path:
    import numpy as np
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter

    class SameBytes(RGBImageField):
        def encode(self, destination: Any, image: tuple[bytes, tuple[int, int]], malloc: Any) -> None:
            data, (width, height) = image
            destination["mode"], destination["height"], destination["width"] = 0, height, width
            destination["data_ptr"], storage = malloc(len(data))
            storage[:] = np.frombuffer(data, np.uint8)

    def write(path: Path) -> None:
        field = RGBImageField(write_mode="jpg", jpeg_quality=90)
        if job.variant == "same":
            # The writer records the class of the field, and the reader requires the same class.
            field.encode = SameBytes().encode
        fields = {"image": field, "label": IntField()}
        DatasetWriter(str(path), fields, num_workers=1).from_indexed_dataset(_Samples(job))

    def write_raw(path: Path) -> None:
        images = np.load(raw_images(job), mmap_mode="r")
        fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
        samples = [(np.asarray(image), 0) for image in images]
        DatasetWriter(str(path), fields, num_workers=1).from_indexed_dataset(samples)

    if job.variant == "raw":
        return job.derived("-raw256.beton", write_raw)
    return job.derived("-same.beton" if job.variant == "same" else ".beton", write)


def _decoder(recipe: str) -> Any:
    from ffcv.fields.decoders import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder

    def whole_image(height: int, width: int, _scale: Any, _ratio: Any) -> tuple[int, int, int, int]:
        return 0, 0, height, width

    class WholeImageDecoder(CenterCropRGBImageDecoder):
        get_crop_generator = property(lambda self: whole_image)

    if recipe == "train":
        return RandomResizedCropRGBImageDecoder((SIZE, SIZE))
    decoder = CenterCropRGBImageDecoder if recipe == "eval" else WholeImageDecoder
    return decoder((SIZE, SIZE), ratio=SIZE / SHORTER_SIDE)


def batches(job: Job) -> Iterator[torch.Tensor]:
    import numpy as np
    from ffcv.fields.decoders import IntDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage

    flip = [RandomHorizontalFlip()] if job.recipe == "train" else []
    normalise = NormalizeImage(255 * np.array(MEAN), 255 * np.array(STD), np.float32)
    unique, links = len(job.unique_files()), len(job.files())
    loader = Loader(
        str(beton(job)),
        batch_size=job.batch_size,
        num_workers=job.cores,
        os_cache=True,
        order=OrderOption.RANDOM if job.shuffle else OrderOption.SEQUENTIAL,
        seed=0,
        # The tree repeats a small data set by links. Here the indices repeat it, so the file stays small.
        indices=np.arange(links) if job.variant == "raw" else np.tile(np.arange(unique), links // unique),
        drop_last=job.shuffle,
        batches_ahead=2,
        pipelines={
            "image": [_decoder(job.recipe), *flip, normalise, ToTensor(), ToTorchImage()],
            "label": [IntDecoder(), ToTensor(), Squeeze()],
        },
    )
    for _ in job.epochs():
        for images, _labels in loader:
            yield images


if __name__ == "__main__":
    run("ffcv", modules=["ffcv", "torch"], packages=["ffcv", "numba"], batches=batches, prepare=beton)

"""A native loader with `from_processor` equals the processor itself, called on each image: to the bit."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import hf_processors
import numpy as np
import pytest
import torch
from PIL import Image

from headrace import DataLoader, EncodedImages, Fields, ImageFiles
from headrace import transforms as T
from own_dataset import OwnDataset
from places import Place
from support import assert_same, blobs, pictures, silent_pillow

SQUARE, EDGE = {"height": 32, "width": 47}, {"shortest_edge": 40}
#: Settings that differ in their rules, on small sizes.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("ViT", {"size": SQUARE}),
    ("ViT", {"size": 30, "resample": 3, "rescale_factor": 1 / 127.5}),
    ("ViT", {"size": SQUARE, "do_normalize": False}),
    ("ViT", {"size": SQUARE, "do_rescale": False}),
    ("ViT", {"size": SQUARE, "do_rescale": False, "do_normalize": False}),
    ("ViT", {"size": SQUARE, "image_mean": [0.1, 0.2, 0.7], "image_std": [0.3, 0.2, 1e-3], "do_convert_rgb": True}),
    ("DeiT", {"size": {"height": 45, "width": 44}, "crop_size": {"height": 32, "width": 32}}),
    ("CLIP", {"size": EDGE, "crop_size": {"height": 33, "width": 28}}),
    ("CLIP", {"size": {"shortest_edge": 21}, "crop_size": {"height": 46, "width": 30}}),  # padded
    ("CLIP", {"do_resize": False, "crop_size": {"height": 50, "width": 61}}),
    ("Siglip", {"size": SQUARE}),
    ("Bit", {"size": {"shortest_edge": 37}, "crop_size": {"height": 32, "width": 32}}),
    ("Blip", {"size": {"height": 40, "width": 40}}),
    ("ConvNext", {"size": EDGE}),
    ("ConvNext", {"size": EDGE, "crop_pct": 0.95, "resample": 2}),
    ("ConvNext", {"size": EDGE, "crop_pct": 1.3}),  # padded
    ("ConvNext", {"size": {"shortest_edge": 385}}),
    ("EfficientNet", {"size": SQUARE}),
    ("EfficientNet", {"size": SQUARE, "rescale_factor": 1 / 127.5, "rescale_offset": True, "include_top": False}),
    ("EfficientNet", {"size": SQUARE, "do_center_crop": True, "crop_size": {"height": 25, "width": 30}}),
    ("Beit", {"size": SQUARE, "do_center_crop": True, "crop_size": {"height": 25, "width": 30}}),
    ("MobileNetV2", {"size": EDGE, "crop_size": {"height": 33, "width": 28}}),
    ("Segformer", {"size": SQUARE, "do_center_crop": True, "crop_size": {"height": 25, "width": 30}}),  # not cropped
]
PIL_FILTERS = ("nearest", "lanczos", "box", "hamming")


@pytest.fixture(params=hf_processors.BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


def make(family: str, backend: str, **settings: Any) -> Any:
    return hf_processors.processor_class(family, backend)(**settings)


def encoded(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def assert_native(loader: DataLoader, processor: Any) -> int:
    """Asserts that a loader in order is native and equals the processor on each image; returns their number."""
    assert loader.native
    done = 0
    for images, _ in loader:
        for made in images:
            expected = hf_processors.called(processor, unmarked(hf_processors.opened(loader, done)))
            assert made.dtype == expected.dtype and made.shape == expected.shape
            assert torch.equal(made, expected), f"image {done}"
            done += 1
    return done


def unmarked(image: Image.Image) -> Image.Image:
    image.info.pop("transparency", None)
    return image


@pytest.mark.pixels
@pytest.mark.parametrize(("family", "settings"), CASES, ids=str)
def test_all_rules_on_many_shapes(
    backend: str, images: list[Image.Image], family: str, settings: dict[str, Any]
) -> None:
    """Photographs, gray and CMYK files among them, and images from 1 x 1 to 200 x 3."""
    processor = make(family, backend, **settings)
    held = [*pictures(12), *map(encoded, images)]
    loader = DataLoader(EncodedImages(held, range(len(held)), T.from_processor(processor)), 5)
    assert assert_native(loader, processor) == len(held)
    assert_same(loader, list(loader.reference()))


@pytest.mark.pixels
@pytest.mark.parametrize("filter", PIL_FILTERS)
def test_pillows_filters_with_its_backend(filter: str) -> None:
    processor = make("ViT", "pil", size=SQUARE, resample=Image.Resampling[filter.upper()])
    assert assert_native(DataLoader(blobs(12, T.from_processor(processor)), 5), processor) == 12


@pytest.mark.pixels
@pytest.mark.slow
@pytest.mark.parametrize("family", hf_processors.FAMILIES)
def test_published_sizes_on_every_file(backend: str, files: list[Path], family: str) -> None:
    """The processors' defaults: 224 pixels, 384 of BLIP and ConvNeXT."""
    processor = make(family, backend)
    small = [path for path in files if path.stat().st_size < 200_000 and "jpegdec" not in path.name]
    chosen = small[:: -(-len(small) // 24)]
    with silent_pillow():
        loader = DataLoader(ImageFiles(chosen, range(len(chosen)), T.from_processor(processor)), 8, num_workers=2)
        assert assert_native(loader, processor) == len(chosen)


def test_in_every_place(backend: str, place: Place) -> None:
    """In memory, and with the device's kernel."""
    processor = make("CLIP", backend, size=EDGE, crop_size={"height": 33, "width": 28})
    loader = place.loader(blobs(12, T.from_processor(processor)))
    assert loader.native
    made = [image for images, _ in place.fetched(loader) for image in images]
    expected = [hf_processors.called(processor, hf_processors.opened(loader, k)) for k in range(12)]
    assert all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))


@pytest.mark.parametrize("family", ["CLIP", "Siglip"])
def test_gray_images_become_rgb_if_the_processor_converts(backend: str, family: str) -> None:
    """Files opened in mode L: three equal channels before the processor's means."""
    processor = make(family, backend, size=EDGE if family == "CLIP" else SQUARE)
    loader = DataLoader(blobs(12, T.from_processor(processor), mode="L"), 5)
    assert hf_processors.opened(loader, 0).mode == "L"
    assert assert_native(loader, processor) == 12


def test_gray_images_stay_gray_if_it_does_not(backend: str) -> None:
    processor = make("ViT", backend, size=SQUARE, image_mean=[0.3], image_std=[0.2])
    loader = DataLoader(blobs(12, T.from_processor(processor), mode="L"), 5)
    assert assert_native(loader, processor) == 12
    assert next(iter(loader))[0].shape == (5, 1, 32, 47)


def test_called_directly(backend: str, images: list[Image.Image]) -> None:
    """On images of any mode, it is the processor; the other parts of a sample pass."""
    processor = make("CLIP", backend, size=EDGE, crop_size={"height": 30, "width": 30})
    transform = T.from_processor(processor)
    for mode in ("RGB", "L", "RGBA", "P", "LA", "1", "CMYK"):
        image = images[0].convert(mode)
        made, label = transform(image, 3)
        assert torch.equal(made, hf_processors.called(processor, image)) and label == 3


def test_a_transparent_colour_is_not_composited(backend: str) -> None:
    """What the decoder does not see is not seen in Python either: the dataset and the loader agree."""
    processor = make("CLIP", backend, size=EDGE, crop_size={"height": 30, "width": 30})
    noise = np.random.default_rng(0).integers(0, 2, (50, 50), dtype=np.uint8)
    image = Image.frombytes("P", (50, 50), noise.tobytes())
    image.putpalette([200, 10, 10, 10, 10, 200])
    out = BytesIO()
    image.save(out, "GIF", transparency=1)
    data = EncodedImages([out.getvalue()], [0], T.from_processor(processor))
    loader = DataLoader(data, 1)
    opened = hf_processors.opened(loader, 0)
    assert "transparency" in opened.info
    made = next(iter(loader))[0][0]
    assert torch.equal(made, data[0][0])
    assert not torch.equal(made, hf_processors.called(processor, opened))  # composited on white
    assert torch.equal(made, hf_processors.called(processor, unmarked(opened)))


def test_with_steps_before_and_after(backend: str) -> None:
    """It is one step among others: random ones before it, erasing after it."""
    processor = make("ViT", backend, size=SQUARE)
    steps = [T.RandomHorizontalFlip(), T.from_processor(processor), T.RandomErasing(0.5)]
    loader = DataLoader(blobs(12, T.Compose(steps)), 5, seed=3)
    assert loader.native and "in Python" not in str(loader.explain())
    assert_same(loader, list(loader.reference()))
    views = T.Views([T.from_processor(processor), T.from_processor(make("ViT", backend, size=20))])
    loader = DataLoader(blobs(12, views), 5)
    assert loader.native
    assert_same(loader, list(loader.reference()))


def test_settings_are_read_for_each_epoch(backend: str) -> None:
    processor = make("ViT", backend, size=SQUARE)
    loader = DataLoader(blobs(6, T.from_processor(processor)), 6)
    assert next(iter(loader))[0].shape == (6, 3, 32, 47)
    processor.size = type(processor.size)(height=20, width=24)
    processor.image_mean = (0.25, 0.25, 0.25)
    assert next(iter(loader))[0].shape == (6, 3, 20, 24)
    assert assert_native(loader, processor) == 6


def test_pickles_and_shows_its_settings(backend: str) -> None:
    import pickle

    transform = T.from_processor(make("CLIP", backend))
    again = pickle.loads(pickle.dumps(transform))
    assert repr(again) == repr(transform)
    assert f"backend={backend}, do_resize=True, do_center_crop=True" in repr(again)


def test_the_path_of_the_files_does_not_matter(backend: str, photographs: list[Path]) -> None:
    processor = make("Bit", backend, size=EDGE, crop_size={"height": 32, "width": 32})
    loader = DataLoader(ImageFiles(photographs, range(len(photographs)), T.from_processor(processor)), 4, num_workers=1)
    assert assert_native(loader, processor) == len(photographs)


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
def test_in_a_dataset_that_opens_its_own_files(backend: str, photographs: list[Path]) -> None:
    """torch delivers; the transform is the processor, on images with native pixels."""
    processor = make("CLIP", backend, size=EDGE, crop_size={"height": 30, "width": 30})
    loader = DataLoader(OwnDataset(photographs[:4], T.from_processor(processor)), 2)
    made = [image for images, _ in loader for image in images]
    assert loader.route == "deferred"
    for path, image in zip(photographs, made, strict=False):
        with Image.open(path) as opened:
            assert torch.equal(image, hf_processors.called(processor, opened.convert("RGB")))


def test_as_a_field_of_samples(backend: str, photographs: list[Path]) -> None:
    processor = make("ViT", backend, size=SQUARE)
    files = ImageFiles(photographs, transform=T.from_processor(processor))
    loader = DataLoader(Fields({"pixel_values": files, "labels": list(range(len(files)))}), 4)
    assert loader.native
    images = next(iter(loader))["pixel_values"]
    for k in range(4):
        assert torch.equal(images[k], hf_processors.called(processor, files.image(k)))

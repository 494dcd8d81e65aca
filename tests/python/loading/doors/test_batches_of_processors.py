"""transformers' image processors in a collate_fn and on several images, against the same on Pillow's own images."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._base.native import core
from headrace._loading.fallback.deferred_workers import call_deferring
from headrace.pillow.recording.image_counts import ImageCounts
from support import PHOTOS
from torchvision_shim import import_torchvision

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]

#: (transformers' folder, the class) -> settings that make it small
PROCESSORS: dict[tuple[str, str], dict[str, Any]] = {
    ("vit", "ViTImageProcessor"): {},
    ("clip", "CLIPImageProcessor"): {},
    ("siglip", "SiglipImageProcessor"): {},
    ("siglip2", "Siglip2ImageProcessor"): {},
    ("bit", "BitImageProcessor"): {"size": {"shortest_edge": 256}, "resample": 3},
    ("convnext", "ConvNextImageProcessor"): {"size": {"shortest_edge": 224}},
    ("qwen2_vl", "Qwen2VLImageProcessor"): {"size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 60}},
    ("llava", "LlavaImageProcessor"): {"do_pad": True},
    ("smolvlm", "SmolVLMImageProcessor"): {"size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 64}},
    ("vit", "ViTImageProcessorPil"): {},
    ("clip", "CLIPImageProcessorPil"): {},
    ("siglip", "SiglipImageProcessorPil"): {},
    ("siglip2", "Siglip2ImageProcessorPil"): {},
    ("bit", "BitImageProcessorPil"): {"size": {"shortest_edge": 256}, "resample": 3},
    ("convnext", "ConvNextImageProcessorPil"): {"size": {"shortest_edge": 224}},
    ("qwen2_vl", "Qwen2VLImageProcessorPil"): {"size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 60}},
    ("llava", "LlavaImageProcessorPil"): {"do_pad": True},
    ("smolvlm", "SmolVLMImageProcessorPil"): {"size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 64}},
}
#: arguments of a call
CALLS: dict[str, dict[str, Any]] = {
    "tensors": {"return_tensors": "pt"},
    "lists": {},
    "arrays": {"return_tensors": "np"},
    "rescaled": {"return_tensors": "pt", "do_normalize": False},
    "other values": {
        "return_tensors": "pt",
        "image_mean": [0.1, 0.2, 0.3],
        "image_std": [0.3, 0.2, 0.1],
        "resample": 2,
    },
    "another scale": {"return_tensors": "np", "rescale_factor": 1 / 127.5, "image_std": [1.5, 0.1, -3.0]},
    "as they are": {"do_resize": False},
    "grouped": {"return_tensors": "pt", "disable_grouping": False, "do_rescale": False, "do_normalize": False},
    "wrong": {"return_tensors": "pt", "image_mean": [0.5, 0.5]},
}


@pytest.fixture(scope="module", params=PROCESSORS, ids=lambda one: one[1])
def processor(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip("transformers", reason="transformers is not installed")
    import_torchvision()
    model, name = request.param
    kind = "image_processing_pil_" if name.endswith("Pil") else "image_processing_"
    try:
        module = importlib.import_module(f"transformers.models.{model}.{kind}{model}")
    except ModuleNotFoundError:
        pytest.skip("this version of transformers has its processors elsewhere")
    return getattr(module, name)(**PROCESSORS[request.param])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Photographs of two sizes and a gray one as JPEGs, and one as a PNG, all small."""
    folder = tmp_path_factory.mktemp("small")
    found = []
    for number, path in enumerate([*sorted(PHOTOS.glob("*.jpg"))[:3], PHOTOS / "archway.jpg"]):
        image = Image.open(path).convert("RGB").resize((150, 110) if number % 2 else (120, 140))
        found.append(folder / f"{number}.{'png' if number == 2 else 'jpg'}")
        image.save(found[-1])
    return found


def what_is(value: Any) -> Any:
    """A result as values that `==` compares."""
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, value.shape, value.stride(), value.requires_grad, value.numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.strides, str(value.flags), value.tobytes()
    if hasattr(value, "keys"):
        return type(value), {name: what_is(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [what_is(one) for one in value]
    return value


def call(processor: Any, files: list[Path], options: dict[str, Any], *, mode: str = "RGB") -> Any:
    """What the processor makes of the files' images: all, and one alone and its first values; or the error."""
    nested = "SmolVLM" in type(processor).__name__
    images = [Image.open(path).convert(mode) for path in files]
    try:
        several = processor(images=[[one] for one in images] if nested else images, **options)
        alone = processor(Image.open(files[0]).convert(mode), **options)
        first = alone["pixel_values"][0]
        if isinstance(first, torch.Tensor):
            first = torch.stack([first, first.squeeze(0)])
    except Exception as error:
        return type(error), str(error)
    return several, alone, first


@pytest.mark.parametrize("options", CALLS.values(), ids=CALLS)
def test_processors_make_what_they_make_of_plain_images(
    processor: Any, files: list[Path], options: dict[str, Any]
) -> None:
    expected = what_is(call(processor, files, options))
    counts = ImageCounts()
    made = call_deferring(lambda: call(processor, files, options), counts, samples_are_gone=True)
    assert what_is(made) == expected
    assert counts.native == counts.total


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_processors_get_other_modes_as_they_are(processor: Any, files: list[Path], mode: str) -> None:
    options = CALLS["tensors"]
    expected = what_is(call(processor, files, options, mode=mode))
    made = call_deferring(lambda: call(processor, files, options, mode=mode), ImageCounts(), samples_are_gone=True)
    assert what_is(made) == expected


def _own_class(pil: Any, monkeypatch: Any) -> Any:
    class Own(pil):
        def process_image(self, image: Any, *args: Any, **kwargs: Any) -> Any:
            return 255 - super().process_image(image, *args, **kwargs)

    return Own()


def _own_method(pil: Any, monkeypatch: Any) -> Any:
    made = pil()
    made.resize = lambda image, **kwargs: type(made).resize(made, 255 - image, **kwargs)
    return made


def _patched_class(pil: Any, monkeypatch: Any) -> Any:
    backend = pil.__mro__[1]
    plain = backend._preprocess
    monkeypatch.setattr(
        backend, "_preprocess", lambda self, images, *a, **k: plain(self, [255 - one for one in images], *a, **k)
    )
    return pil()


def _patched_function(pil: Any, monkeypatch: Any) -> Any:
    module = sys.modules[pil.__mro__[1].__module__]
    plain = module.np_resize
    monkeypatch.setattr(module, "np_resize", lambda image, *args, **kwargs: plain(255 - image, *args, **kwargs))
    return pil()


@pytest.mark.parametrize("change", [_own_class, _own_method, _patched_class, _patched_function])
def test_a_step_of_a_programs_own_gets_the_array(files: list[Path], change: Any, monkeypatch: Any) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    import_torchvision()
    pil = importlib.import_module("transformers.models.vit.image_processing_pil_vit").ViTImageProcessorPil
    processor = change(pil, monkeypatch)
    plain = what_is(call(pil(), files, CALLS["arrays"]))
    expected = what_is(call(processor, files, CALLS["arrays"]))
    assert expected != plain or change is not _own_class
    made = call_deferring(lambda: call(processor, files, CALLS["arrays"]), ImageCounts(), samples_are_gone=True)
    assert what_is(made) == expected


def test_a_processor_with_pillow_resizes_the_image_itself(files: list[Path], monkeypatch: Any) -> None:
    """No file is decoded at its own size."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    import_torchvision()
    pil = importlib.import_module("transformers.models.vit.image_processing_pil_vit").ViTImageProcessorPil()
    shapes = []
    plain = core.decode_fuse

    def seen(file: Any, plan: Any, table: Any, out: Any, *options: Any, **named: Any) -> Any:
        shapes.append(out.shape)
        return plain(file, plan, table, out, *options, **named)

    monkeypatch.setattr(core, "decode_fuse", seen)
    made = call_deferring(lambda: pil(Image.open(files[0])), ImageCounts(), samples_are_gone=True)
    assert made["pixel_values"][0].shape == (3, 224, 224)
    assert shapes == [(224, 224, 3)]


def test_a_subclass_that_overrides_a_step_is_called(files: list[Path]) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    import_torchvision()
    module = importlib.import_module("transformers.models.vit.image_processing_vit")

    class Darker(module.ViTImageProcessor):  # type: ignore[name-defined]
        def rescale_and_normalize(self, images: Any, *args: Any, **kwargs: Any) -> Any:
            images[..., :9, :] = 0
            return super().rescale_and_normalize(images, *args, **kwargs)

    expected = what_is(call(Darker(), files, CALLS["tensors"]))
    made = call_deferring(lambda: call(Darker(), files, CALLS["tensors"]), ImageCounts(), samples_are_gone=True)
    assert what_is(made) == expected

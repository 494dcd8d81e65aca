"""What `from_processor` refuses: one sentence with the reason and a remedy."""

from __future__ import annotations

import importlib
import re
from typing import Any

import hf_processors
import pytest
import torch
from PIL import Image

from headrace import DataLoader
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._recipe.arithmetic import torch_resize_blur
from headrace._recipe.steps import steps as S
from support import blobs

CALL_IT = 'use lambda image: processor(images=image, return_tensors="pt")["pixel_values"][0], which runs in Python'
#: A processor that overrides methods of its backend -> one of the methods.
OVERRIDE = {
    ("Idefics2", "idefics2"): "_prepare_images_structure",  # splits images
    ("Qwen2VL", "qwen2_vl"): "_preprocess",  # chooses sizes, makes patches
    ("Gemma3", "gemma3"): "_preprocess",  # pan and scan
    ("Mask2Former", "mask2former"): "_preprocess_image_like_inputs",  # masks
    ("Levit", "levit"): "resize",
    ("Siglip2", "siglip2"): "_preprocess",
}
SETTINGS = [
    ("ViT", {"do_pad": True, "pad_size": {"height": 300, "width": 300}}, "do_pad=True pads the finished values"),
    ("ViT", {"device": "cuda"}, "device=cuda moves each image"),
    ("Bit", {"size": {"shortest_edge": 40, "longest_edge": 60}}, "limits the longer edge"),
    ("Bit", {"size": {"max_height": 40, "max_width": 60}}, "limits the longer edge"),
    ("Bit", {"size": {"longest_edge": 60}}, "needs height, a positive number of pixels"),
    ("ConvNext", {"size": {"height": 40, "width": 40}}, "needs shortest_edge, a positive number of pixels"),
]


@pytest.mark.parametrize("backend", hf_processors.BACKENDS)
@pytest.mark.parametrize(("family", "folder"), OVERRIDE)
def test_other_rules(family: str, folder: str, backend: str) -> None:
    processor = hf_processors.processor_class(family, backend, folder)()
    name = OVERRIDE[family, folder]
    with pytest.raises(TypeError, match=rf"^{type(processor).__name__} overrides .*\b{name}\b.*{re.escape(CALL_IT)}$"):
        T.from_processor(processor)


def test_another_order_of_the_operations() -> None:
    """DINOv3's rescales before it resizes, so that its resize works on floats."""
    processor = hf_processors.processor_class("DINOv3ViT", "torchvision", "dinov3_vit")()
    with pytest.raises(TypeError, match=r"^DINOv3ViTImageProcessor overrides _preprocess of transformers' Torchvision"):
        T.from_processor(processor)


@pytest.mark.parametrize("backend", hf_processors.BACKENDS)
@pytest.mark.parametrize(("family", "settings", "message"), SETTINGS, ids=str)
def test_settings(family: str, settings: dict[str, Any], message: str, backend: str) -> None:
    processor = hf_processors.processor_class(family, backend)(**settings)
    with pytest.raises(ValueError, match=message):
        T.from_processor(processor)


@pytest.mark.parametrize("resample", [0, 1, 4, 5])
def test_filters_of_the_torchvision_backend(resample: int) -> None:
    processor = hf_processors.processor_class("ViT", "torchvision")(resample=resample)
    with pytest.raises(ValueError, match=r'of the torchvision backend has no native twin; use .*backend="pil"'):
        T.from_processor(processor)


def test_a_processor_with_a_tokenizer() -> None:
    class Both:
        image_processor = hf_processors.processor_class("CLIP", "pil")()

    with pytest.raises(TypeError, match=r"^Both makes more than images; pass its attribute .image_processor instead$"):
        T.from_processor(Both())


def test_a_processor_around_timms_transforms() -> None:
    """Its transforms are native themselves, and equal it."""
    hf_processors.processor_class("ViT", "pil")
    pytest.importorskip("timm", exc_type=ImportError)
    module = importlib.import_module("transformers.models.timm_wrapper.image_processing_timm_wrapper")
    processor = module.TimmWrapperImageProcessor({"input_size": (3, 40, 40)})
    with pytest.raises(TypeError, match=r"calls timm's transforms; use its attribute .val_transforms instead$"):
        T.from_processor(processor)
    loader = DataLoader(blobs(4, processor.val_transforms), 4)
    assert loader.native
    images = next(iter(loader))[0]
    assert torch.equal(images[3], hf_processors.called(processor, hf_processors.opened(loader, 3)))


def test_subclasses() -> None:
    """Other settings are welcome, other methods are not."""
    ViT = hf_processors.processor_class("ViT", "pil")

    class Small(ViT):  # type: ignore[misc, valid-type]
        size = {"height": 20, "width": 20}  # noqa: RUF012 - as transformers writes it

        def shown(self) -> str:
            return "a method that transformers does not call"

    class Other(ViT):  # type: ignore[misc, valid-type]
        def rescale(self, image: Any, scale: float, **options: Any) -> Any:
            return super().rescale(image, 2 * scale, **options)

    assert lower(T.from_processor(Small())).shape == (3, 20, 20)
    with pytest.raises(TypeError, match=r"^Other overrides rescale of transformers' PilBackend"):
        T.from_processor(Other())
    replaced = ViT()
    replaced.normalize = replaced.rescale
    with pytest.raises(TypeError, match=r"^ViTImageProcessorPil overrides normalize of transformers' PilBackend"):
        T.from_processor(replaced)


@pytest.mark.parametrize(
    "given",
    [None, 3, lambda image: image, T.ToTensor(), "google/vit-base-patch16-224"],
    ids=lambda one: type(one).__name__,
)
def test_other_objects(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^\w+ is not an image processor that transformers 5 builds on"):
        T.from_processor(given)


def test_other_values_of_a_later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the class check cannot see is found by trying it."""
    ViT = hf_processors.processor_class("ViT", "pil")
    base = ViT.__mro__[1]
    resize = base.resize
    monkeypatch.setattr(base, "resize", lambda self, image, **options: resize(self, image[:, ::-1], **options))
    with pytest.raises(ValueError, match="of the installed transformers follows other rules than those that headrace"):
        T.from_processor(ViT())


def test_where_it_stands() -> None:
    transform = T.from_processor(hf_processors.processor_class("ViT", "pil")(size=20))
    for steps, message in (
        ([T.ToTensor(), transform], r"takes PIL images; put it before ToTensor\(\)"),
        ([T.RandomApply([transform])], "makes a tensor inside RandomApply, where only transforms of PIL images"),
    ):
        with pytest.raises(LoweringError, match=message):
            lower(T.Compose(steps), native_only=True)


def test_where_torchvision_resizes_in_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without AVX2 takes the filter for floats; Pillow's resize stays as it is."""
    by_torch, by_pillow = (
        T.from_processor(hf_processors.processor_class("ViT", backend)(size=20)) for backend in hf_processors.BACKENDS
    )
    monkeypatch.setattr(torch_resize_blur, "resizes_bytes", lambda mode: False)
    in_floats, in_bytes = (lower(one, native_only=True).steps[0] for one in (by_torch, by_pillow))
    assert isinstance(in_floats, S.Resize) and in_floats.filter in S.FLOAT_FILTERS
    assert isinstance(in_bytes, S.Resize) and in_bytes.filter in S.FILTERS


def test_a_setting_that_changes_to_one_that_is_refused() -> None:
    processor = hf_processors.processor_class("ViT", "pil")(size=20)
    data = blobs(4, T.from_processor(processor))
    loader = DataLoader(data, 4)
    assert loader.native
    processor.resample = Image.Resampling.LANCZOS
    processor.size = type(processor.size)(height=24, width=20)
    assert next(iter(loader))[0].shape == (4, 3, 24, 20) and loader.native
    processor.do_pad, processor.pad_size = True, type(processor.size)(height=30, width=30)
    images = next(iter(loader))[0]
    assert not loader.native or "do_pad=True" in str(loader.explain())
    assert torch.equal(images[0], hf_processors.called(processor, data.image(0)))

"""An image processor of Hugging Face's transformers as a transform."""

from __future__ import annotations

import torch
from PIL import Image

from headrace._recipe.hf_processors import processor_values
from headrace._recipe.hf_processors.processor_values import values_of_processor
from headrace._recipe.hf_processors.recognition import backend_of
from headrace.transforms._base import PIL_ALONE, Params, Transform


class ProcessorTransform(Transform):
    """Makes of a PIL image what an image processor of transformers makes of it; `from_processor` returns one.

    Called on an image, it returns ``processor(images=image, return_tensors="pt")["pixel_values"][0]``: a tensor
    (C, H, W), float32 if the processor rescales or normalizes. In a loader it is native. It differs from the processor
    in one case: a transparent colour that an image of mode RGB or L names in its ``info`` is not composited on white.

    Args:
        processor: the image processor. Its settings are read again for each epoch.

    Raises:
        TypeError, ValueError: as `from_processor`.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(self, processor: object) -> None:
        super().__init__()
        processor_values.check_processor(processor)
        self.processor = processor

    def transform(self, inpt: Image.Image, params: Params) -> torch.Tensor:
        return values_of_processor(self.processor, _without_transparent_colour(inpt))

    def extra_repr(self) -> str:
        shown = {name: getattr(self.processor, name) for name in _SHOWN if getattr(self.processor, name, None)}
        pairs = [f"backend={backend_of(self.processor)}", *(f"{name}={value}" for name, value in shown.items())]
        return ", ".join([type(self.processor).__name__, *pairs])


_SHOWN = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb")


def _without_transparent_colour(image: Image.Image) -> Image.Image:
    """Returns the image, or a copy without the mark: a loader's decoder does not see it."""
    if image.mode in ("RGB", "L") and "transparency" in image.info:
        image = image.copy()
        del image.info["transparency"]
    return image


def from_processor(processor: object) -> ProcessorTransform:
    """Returns an image processor of Hugging Face's transformers as a transform that a loader runs natively.

    Supported are the processors of transformers 5 that leave all work to one of its backends, ``"torchvision"`` (the
    default) or ``"pil"``: those of ViT, DeiT, CLIP, SigLIP, BLIP, DINOv2 (BitImageProcessor) and others; and those of
    ConvNeXT, BEiT, MobileNetV2 and Segformer. Resize and crop follow the rules of the backend; the values that rescale
    and normalize make of the 256 bytes are computed by the processor itself. So batches equal the processor's results
    to the bit.

    Args:
        processor: what ``AutoImageProcessor.from_pretrained`` returns; of a processor with a tokenizer, its attribute
            ``image_processor``.

    Returns:
        A transform of PIL images. A loader opens images in mode RGB: files with an alpha channel or a transparent
        colour lose it, while the processor, called on such an image itself, may composite it on white.

    Raises:
        TypeError: it is not such a processor: it overrides methods of its backend, to split images, to choose sizes,
            to make masks, and so on.
        ValueError: it has a setting without a native twin, such as ``do_pad=True`` or a limit of the longer edge; or
            the installed version of transformers makes other values.
    """
    return ProcessorTransform(processor)

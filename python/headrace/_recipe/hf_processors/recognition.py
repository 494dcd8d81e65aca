"""Recognises a processor that leaves all work to one of transformers' two backends, or names what it overrides."""

from __future__ import annotations

import sys

_FRAMEWORK = "transformers.image_processing_backends"
#: Class of transformers -> the `backend` argument that selects it.
_BACKENDS = {"TorchvisionBackend": "torchvision", "PilBackend": "pil"}
#: Methods that do not decide the pixels, or only store settings.
_HARMLESS = {"__init__", "to_dict", "valid_kwargs"}
#: Classes whose own methods are known -> transformers' folder of the model. ConvNeXT's resizes in its own way, and
#: EfficientNet's maps the values in its own way. The others differ for segmentation maps; Segformer's does not crop.
_KNOWN = {
    f"{name}ImageProcessor{end}": folder
    for name, folder in {
        "Beit": "beit",
        "ConvNext": "convnext",
        "EfficientNet": "efficientnet",
        "MobileNetV2": "mobilenet_v2",
        "Segformer": "segformer",
    }.items()
    for end in ("", "Pil")
}

CALL_IT = 'use lambda image: processor(images=image, return_tensors="pt")["pixel_values"][0], which runs in Python'


def backend_of(processor: object) -> str:
    """Returns "torchvision" or "pil".

    Raises:
        TypeError: it is no image processor of transformers 5, or it overrides a method that makes pixels.
    """
    base = _backend_class(type(processor))
    if base is None:
        inner = getattr(processor, "image_processor", None)
        if inner is not None and _backend_class(type(inner)) is not None:
            raise TypeError(
                f"{type(processor).__name__} makes more than images; pass its attribute .image_processor instead"
            )
        if hasattr(processor, "val_transforms"):
            raise TypeError(
                f"{type(processor).__name__} calls timm's transforms; use its attribute .val_transforms instead"
            )
        raise TypeError(
            f"{type(processor).__name__} is not an image processor that transformers 5 builds on its "
            f"TorchvisionBackend or PilBackend; {CALL_IT}"
        )
    own = [name for name, value in vars(processor).items() if callable(value) and hasattr(base, name)]
    replaced = sorted({*_overridden(type(processor), base), *own})
    if replaced:
        raise TypeError(
            f"{type(processor).__name__} overrides {', '.join(replaced)} of transformers' {base.__name__}, so its "
            f"pixels may follow from other rules; {CALL_IT}"
        )
    return _BACKENDS[base.__name__]


def model_of(processor: object) -> str:
    """Returns the folder of the model whose processor has known methods of its own: "convnext", ...; "" for others."""
    return next(filter(None, map(_find_folder, type(processor).__mro__)), "")


def _backend_class(cls: type) -> type | None:
    framework = sys.modules.get(_FRAMEWORK)
    for base in cls.__mro__:
        if base.__name__ in _BACKENDS and getattr(framework, base.__name__, None) is base:
            return base
    return None


def _overridden(cls: type, base: type) -> set[str]:
    """Returns the names of the backend's methods that classes derived from it replace."""
    found: set[str] = set()
    for derived in cls.__mro__[: cls.__mro__.index(base)]:
        if not _find_folder(derived):
            found |= {
                name
                for name, value in vars(derived).items()
                if name not in _HARMLESS and hasattr(base, name) and (callable(value) or hasattr(value, "__get__"))
            }
    return found


def _find_folder(cls: type) -> str:
    folder = _KNOWN.get(cls.__name__, "")
    same = getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls
    return folder if same and cls.__module__.startswith(f"transformers.models.{folder}.") else ""

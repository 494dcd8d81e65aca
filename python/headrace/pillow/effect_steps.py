"""Versions of Pillow's and torchvision's functions that change pixels in place, which deferred images record.

They do what those in whose place they are put do. What cannot be recorded is left to the function before.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from PIL import Image

from headrace.pillow.deferred_image import Deferred, recorded
from headrace.pillow.effects import EFFECTS, Blur
from headrace.pillow.replacing import Place, Replacements, function, method
from headrace.pixels import blur_rule

_MODES = ("RGB", "L")
_OF_COLOURS = ("hue", "blur")  # effects that gray images do not have, or that torch computes otherwise for these


def _with_effect(image: Any, name: str, value: Any = None) -> Any:
    """Returns the image with a further effect, without pixels; None if that cannot be recorded."""
    if not isinstance(image, Deferred) or image.mode not in _MODES or (name in _OF_COLOURS and image.mode != "RGB"):
        return None
    lazy = recorded(image)
    if lazy is None:
        return None
    made = image._new(lazy.effect(name, value))
    if not EFFECTS[name].keeps_info:
        made.info = {}
    return made


def _only(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Returns the one further argument of a call."""
    values = (*arguments, *options.values())
    return values[0] if len(values) == 1 else None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _enhancer(name: str) -> Callable[[Any], Any]:
    def version(plain: Any) -> Any:
        @functools.wraps(plain)
        def init(self: Any, image: Any) -> None:
            kind: Any = type(self)
            if isinstance(image, Deferred) and kind.__module__ == "PIL.ImageEnhance":  # no subclass
                self.image = image
                self.__class__ = _deferring(name, kind, plain)
            else:
                plain(self, image)

        return init

    return version


@functools.cache
def _deferring(name: str, *of: Any) -> Any:
    """Returns a subclass of an enhancer's class whose objects compute what they blend with only when it is read.

    Args:
        of: the enhancer's class, and the `__init__` that it had before.
    """
    kind, plain = of

    def enhance(self: Any, factor: Any) -> Any:
        made = _with_effect(self.image, name, float(factor)) if _is_number(factor) else None
        return kind.enhance(self, factor) if made is None else made

    def attribute(self: Any, wanted: str) -> Any:
        if wanted not in ("degenerate", "intermediate_mode"):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {wanted!r}", name=wanted, obj=self)
        self.__class__ = kind
        plain(self, self.image)
        return getattr(self, wanted)

    members = {"enhance": enhance, "__getattr__": attribute, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), members)


def _operation(name: str, accepts: Callable[[Any], bool] | None = None) -> Callable[[Any], Any]:
    """A version of a function of an image and, where `accepts` says which values, one more argument."""

    def version(plain: Any) -> Any:
        @functools.wraps(plain)
        def operation(image: Any, *arguments: Any, **options: Any) -> Any:
            value = _only(arguments, options)
            fits = not (arguments or options) if accepts is None else accepts(value)
            made = _with_effect(image, name, value) if fits else None
            return plain(image, *arguments, **options) if made is None else made

        return operation

    return version


def _grayscale(keeps_info: bool) -> Callable[[Any], Any]:
    def version(plain: Any) -> Any:
        @functools.wraps(plain)
        def to_grayscale(image: Any, *arguments: Any, **options: Any) -> Any:
            deferred = isinstance(image, Deferred) and image.mode in _MODES
            if not deferred or _only(arguments, options) != 3:
                return plain(image, *arguments, **options)
            made: Any = image.convert("L").convert("RGB")
            if not keeps_info:
                made.info = {}
            return made

        return to_grayscale

    return version


def _is_bits(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 8


def _is_turn(value: Any) -> bool:
    return _is_number(value) and -0.5 <= value <= 0.5


def _blur(plain: Any) -> Any:
    """A version of the kernel of torchvision v2."""

    @functools.wraps(plain)
    def gaussian_blur(image: Any, kernel_size: Any, sigma: Any = None) -> Any:
        made = _blurred(image, _pair(kernel_size, int), _pair(sigma, float), softmax=True)
        return plain(image, kernel_size, sigma) if made is None else made

    return gaussian_blur


def _blur_step(plain: Any) -> Any:
    """A version of the method of torchvision v1's GaussianBlur."""

    @functools.wraps(plain)
    def forward(self: Any, img: Any) -> Any:
        if not isinstance(img, Deferred):
            return plain(self, img)
        sigma = self.get_params(*self.sigma)
        made = _blurred(img, _pair(self.kernel_size, int), (sigma, sigma), softmax=False)
        functional = plain.__globals__["F"]
        return functional.gaussian_blur(img, self.kernel_size, [sigma, sigma]) if made is None else made

    return forward


def _own_blur(plain: Any) -> Any:
    @functools.wraps(plain)
    def gaussian_blur(image: Any, width: int, height: int, sigma: float, *, softmax: bool) -> Any:
        made = _blurred(image, (width, height), (sigma, sigma), softmax)
        return plain(image, width, height, sigma, softmax=softmax) if made is None else made

    return gaussian_blur


def _pair(value: Any, kind: type) -> Any:
    """Returns a number of this type twice, a sequence of two as it is, and None for all else."""
    if type(value) is kind:
        return value, value
    both = isinstance(value, (list, tuple)) and len(value) == 2 and all(type(one) is kind for one in value)
    return value if both else None


def _blurred(image: Any, sizes: Any, sigmas: Any, softmax: bool) -> Any:
    """Returns the blurred image without pixels; None if the blur cannot be recorded."""
    if sizes is None or sigmas is None or not isinstance(image, Deferred):
        return None
    (width, height), sigma = sizes, sigmas[0]
    odd = width > 0 and height > 0 and width % 2 == height % 2 == 1
    fits = width // 2 < image.width and height // 2 < image.height  # borders are mirrored
    if not odd or not fits or sigmas[0] != sigmas[1] or not 0 < sigma < math.inf or not blur_rule.native():
        return None
    return _with_effect(image, "blur", Blur(width, height, sigma, softmax))


def _kernels(functional: str) -> Callable[[Any], Any]:
    """The dict in which torchvision v2 keeps a functional's kernels."""

    def find(module: Any) -> Any:
        registry = getattr(module, "_KERNEL_REGISTRY", {})
        return next((kernels for known, kernels in registry.items() if known.__name__ == functional), None)

    return find


_OPERATIONS = {
    "posterize": _operation("posterize", _is_bits),
    "solarize": _operation("solarize", _is_number),
    "invert": _operation("invert"),
    "autocontrast": _operation("autocontrast"),
    "equalize": _operation("equalize"),
    "adjust_hue": _operation("hue", _is_turn),
}
_V1, _V2 = "torchvision.transforms._functional_pil", "torchvision.transforms.v2.functional._utils"
_OWN, _OWN_TENSORS = "headrace.pixels.pillow_ops", "headrace.pixels.tensor_ops"

# No public functions: these are pickled by name, and what is found under the name must be the function itself.
STEPS = Replacements(
    [
        method("PIL.ImageEnhance", "Brightness", "__init__", _enhancer("brightness")),
        method("PIL.ImageEnhance", "Contrast", "__init__", _enhancer("contrast")),
        method("PIL.ImageEnhance", "Color", "__init__", _enhancer("saturation")),
        method("PIL.ImageEnhance", "Sharpness", "__init__", _enhancer("sharpness")),
        *(function(_V1, name, version) for name, version in _OPERATIONS.items()),
        *(Place(_V2, _kernels(name), Image.Image, version) for name, version in _OPERATIONS.items()),
        *(function(_OWN, name, version) for name, version in _OPERATIONS.items()),
        function(_V1, "to_grayscale", _grayscale(keeps_info=False)),
        function(_OWN, "grayscale", _grayscale(keeps_info=True)),
        method("torchvision.transforms.transforms", "GaussianBlur", "forward", _blur_step),
        Place(_V2, _kernels("gaussian_blur"), Image.Image, _blur),
        function(_OWN_TENSORS, "gaussian_blur", _own_blur),
    ]
)

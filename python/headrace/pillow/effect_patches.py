"""Versions of Pillow's and torchvision's functions that change values and move no pixel, which deferred images record.

They do what those in whose place they are put do. What cannot be recorded is left to the function before.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar

from PIL import Image, ImageEnhance, ImageFilter, ImageOps, ImageStat

from headrace._base.types import Function
from headrace._recipe.arithmetic import blur_rule
from headrace.pillow.deferred_image import find_recording, is_deferred, is_recorded
from headrace.pillow.recording.patches import Place, Replacements, Untouched, Version, function, kernels_of, method
from headrace.pillow.recording.recorded_effects import EFFECTS, Blur, warp_of

T = TypeVar("T")

_OF_COLOURS = ("hue", "blur")  # effects that gray images do not have, or that torch computes otherwise for these
_WITHOUT_INFO = Image.Image()
_OF_BLENDS = [(Image, "blend"), (Image, "new"), (Image.Image, "convert"), (Image.Image, "_new")]
_OF_TABLES = [(Image.Image, "point"), (Image.Image, "histogram"), (ImageOps, "_lut")]

_BLENDING = Untouched((Image, "blend"))

# What each effect stands for: Pillow's functions that would make it.
_PILLOWS = {
    "brightness": Untouched(*_OF_BLENDS),
    "contrast": Untouched(*_OF_BLENDS, (ImageStat, "Stat"), (Image.Image, "histogram")),
    "saturation": Untouched(*_OF_BLENDS),
    "sharpness": Untouched(*_OF_BLENDS, (Image.Image, "filter"), (ImageFilter.Kernel, "filter")),
    "hue": Untouched(
        (Image.Image, "convert"), (Image.Image, "split"), (Image, "merge"), (Image, "fromarray"), (Image, "frombuffer")
    ),
    "posterize": Untouched((ImageOps, "posterize"), *_OF_TABLES),
    "solarize": Untouched((ImageOps, "solarize"), *_OF_TABLES),
    "invert": Untouched((ImageOps, "invert"), *_OF_TABLES),
    "autocontrast": Untouched((ImageOps, "autocontrast"), *_OF_TABLES),
    "equalize": Untouched((ImageOps, "equalize"), *_OF_TABLES),
    "blur": Untouched((Image, "fromarray"), (Image, "frombuffer"), (Image.Image, "tobytes")),
    "warp": Untouched((Image, "new"), (Image.Image, "_Image__transformer"), (Image.Image, "load")),
}


def _add_effect(
    image: object, name: str, value: object = None, size: tuple[int, int] | None = None
) -> Image.Image | None:
    """Returns the image with a further effect, without pixels; None if that cannot be recorded."""
    if not is_deferred(image) or (name in _OF_COLOURS and image.mode != "RGB") or not _PILLOWS[name]:
        return None
    lazy = find_recording(image)
    changed = None if lazy is None else lazy.effect(name, value, size)
    return None if changed is None else _image_with_effect(image, name, changed)


def _image_with_effect(of: Image.Image, name: str, changed: Any) -> Image.Image:
    return (of if EFFECTS[name].keeps_info else _WITHOUT_INFO)._new(changed)


def _only_argument(arguments: tuple[object, ...], options: dict[str, object]) -> object:
    """Returns the one further argument of a call."""
    values = (*arguments, *options.values())
    return values[0] if len(values) == 1 else None


def _is_number(value: object) -> TypeGuard[float]:
    return (type(value) is int or type(value) is float) and math.isfinite(value)


def _enhancer(name: str) -> Version:
    """A version of an enhancer's `__init__`. What it blends with is the effect of factor 0, without pixels: an image of
    its own, which later changes of the enhancer's image do not reach."""

    def version(plain: Function) -> Function:
        @functools.wraps(plain)
        def init(self: Any, image: object) -> None:
            if not _is_eager(image, name) or not _PILLOWS[name]:
                plain(self, image)
                return
            lazy = find_recording(image)
            of, changed = (None, None) if lazy is None else (lazy.get_recording(), lazy.effect(name, 0.0))
            if of is None or changed is None:
                plain(self, image)
                return
            changed.blends = name, of
            self.image = image
            if name == "saturation":
                self.intermediate_mode = "L"
            self.degenerate = _image_with_effect(image, name, changed)

        return init

    return version


def _is_eager(image: object, name: str) -> TypeGuard[Image.Image]:
    """Whether Pillow makes pixels of its own for an enhancer of a deferred image, and reads the image's file first."""
    if name == "brightness":  # reads nothing
        return is_recorded(image)
    return is_deferred(image) and (name != "saturation" or image.mode != "L")  # gray pixels are the image's


def _defer_enhance(plain: Function) -> Function:
    @functools.wraps(plain)
    def enhance(self: ImageEnhance._Enhance, factor: object) -> object:
        made = _enhance_image(self, float(factor)) if _is_number(factor) else None
        return plain(self, factor) if made is None else made

    return enhance


def _enhance_image(enhancer: ImageEnhance._Enhance, factor: float) -> Image.Image | None:
    """Returns the enhanced image, without pixels; None if the image, or what it is blended with, has pixels."""
    image: Any = enhancer.__dict__.get("image")
    degenerate: Any = enhancer.__dict__.get("degenerate")
    if not _BLENDING:
        return None
    lazy, blended = find_recording(image), find_recording(degenerate)
    of = None if lazy is None else lazy.get_recording()
    other = None if blended is None else blended.get_recording()
    if lazy is None or blended is None or of is None:
        return None
    if blended.blends is not None and blended.blends[1] is of:
        name = blended.blends[0]
    elif (
        type(enhancer) is ImageEnhance.Color and image.mode == "L" and other == of
    ):  # itself or, before Pillow 11, a copy
        name = "saturation"
    else:
        return None
    changed = lazy.effect(name, factor)
    return None if changed is None else degenerate._new(changed)  # as Image.blend


def _defer_image_transform(plain: Function) -> Function:
    @functools.wraps(plain)
    def transform(
        self: Image.Image,
        size: object,
        method: object,
        data: object = None,
        resample: object = 0,
        fill: object = 1,
        fillcolor: object = None,
    ) -> object:
        warp = warp_of(self.mode, size, method, data, resample, fillcolor) if is_deferred(self) else None
        made = None if warp is None else _add_effect(self, "warp", warp, warp.size)
        return plain(self, size, method, data, resample, fill, fillcolor) if made is None else made

    return transform


def _operation(name: str, accepts: Callable[[object], bool] | None = None) -> Version:
    """A version of a function of an image and, where `accepts` says which values, one more argument."""

    def version(plain: Function) -> Function:
        @functools.wraps(plain)
        def operation(image: object, *arguments: object, **options: object) -> object:
            value = _only_argument(arguments, options)
            fits = not (arguments or options) if accepts is None else accepts(value)
            made = _add_effect(image, name, value) if fits else None
            return plain(image, *arguments, **options) if made is None else made

        return operation

    return version


def _grayscale(keeps_info: bool) -> Version:
    def version(plain: Function) -> Function:
        @functools.wraps(plain)
        def to_grayscale(image: object, *arguments: object, **options: object) -> object:
            if not is_recorded(image) or _only_argument(arguments, options) != 3 or not _PILLOWS["hue"]:
                return plain(image, *arguments, **options)
            made = image.convert("L").convert("RGB")
            if not keeps_info:
                made.info = {}
            return made

        return to_grayscale

    return version


def _is_bit_count(value: object) -> bool:
    return type(value) is int and 1 <= value <= 8


def _is_hue_turn(value: object) -> bool:
    return _is_number(value) and -0.5 <= value <= 0.5


def _defer_functional_blur(plain: Function) -> Function:
    """A version of the kernel of torchvision v2."""
    parts = _globals_of(plain, "pil_to_tensor", "to_pil_image", "gaussian_blur_image", "_get_gaussian_kernel2d")

    @functools.wraps(plain)
    def gaussian_blur(image: object, kernel_size: object, sigma: object = None) -> object:
        made = parts and _blur_image(image, _as_pair(kernel_size, int), _as_pair(sigma, float), softmax=True)
        return made or plain(image, kernel_size, sigma)

    return gaussian_blur


def _defer_blur_transform(plain: Function) -> Function:
    """A version of the method of torchvision v1's GaussianBlur."""
    # Of this name: torch.jit.script compiles the source of the library's method, and looks up its names here.
    F = plain.__globals__["F"]
    parts = Untouched(
        *((F, name) for name in ("gaussian_blur", "pil_to_tensor", "to_pil_image")),
        (F.F_t, "gaussian_blur"),
        (F.F_t, "_get_gaussian_kernel2d"),
    )

    @functools.wraps(plain)
    def forward(self: Any, img: object) -> object:
        if not is_deferred(img) or not parts:
            return plain(self, img)
        sigma = self.get_params(*self.sigma)
        made = _blur_image(img, _as_pair(self.kernel_size, int), (sigma, sigma), softmax=False)
        return F.gaussian_blur(img, self.kernel_size, [sigma, sigma]) if made is None else made

    return forward


def _defer_own_blur(plain: Function) -> Function:
    @functools.wraps(plain)
    def gaussian_blur(image: object, width: int, height: int, sigma: float, *, softmax: bool) -> object:
        made = _blur_image(image, (width, height), (sigma, sigma), softmax)
        return plain(image, width, height, sigma, softmax=softmax) if made is None else made

    return gaussian_blur


def _globals_of(plain: object, *names: str) -> Untouched:
    """Returns an `Untouched`, true while the functions that `plain` calls as globals are the library's."""
    return Untouched(*((sys.modules[plain.__module__], name) for name in names))


def _as_pair(value: object, kind: type[T]) -> Sequence[T] | None:
    """Returns a number of this type twice, a sequence of two as it is, and None for all else."""
    if type(value) is kind:
        return value, value
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(type(one) is kind for one in value):
        return value
    return None


def _blur_image(
    image: object, sizes: Sequence[int] | None, sigmas: Sequence[float] | None, softmax: bool
) -> Image.Image | None:
    """Returns the blurred image without pixels; None if the blur cannot be recorded."""
    if sizes is None or sigmas is None or not is_deferred(image):
        return None
    (width, height), sigma = sizes, sigmas[0]
    odd = width > 0 and height > 0 and width % 2 == height % 2 == 1
    fits = width // 2 < image.width and height // 2 < image.height  # borders are mirrored
    if (
        not odd
        or not fits
        or sigmas[0] != sigmas[1]
        or not 0 < sigma < math.inf
        or not blur_rule.is_native_blur_exact()
    ):
        return None
    return _add_effect(image, "blur", Blur(width, height, sigma, softmax))


_ENHANCERS = {"Brightness": "brightness", "Contrast": "contrast", "Color": "saturation", "Sharpness": "sharpness"}
_OPERATIONS = {
    "posterize": _operation("posterize", _is_bit_count),
    "solarize": _operation("solarize", _is_number),
    "invert": _operation("invert"),
    "autocontrast": _operation("autocontrast"),
    "equalize": _operation("equalize"),
    "adjust_hue": _operation("hue", _is_hue_turn),
}
_V1, _V2 = "torchvision.transforms._functional_pil", "torchvision.transforms.v2.functional._utils"
_OWN, _OWN_TENSORS = "headrace._recipe.arithmetic.functional_pil", "headrace._recipe.arithmetic.torch_resize_blur"

# No public functions: these are pickled by name, and what is found under the name must be the function itself.
STEPS = Replacements(
    [
        *(method("PIL.ImageEnhance", kind, "__init__", _enhancer(name)) for kind, name in _ENHANCERS.items()),
        method("PIL.ImageEnhance", "_Enhance", "enhance", _defer_enhance),
        method("PIL.Image", "Image", "transform", _defer_image_transform),
        *(function(_V1, name, version) for name, version in _OPERATIONS.items()),
        *(Place(_V2, kernels_of(name), Image.Image, version) for name, version in _OPERATIONS.items()),
        *(function(_OWN, name, version) for name, version in _OPERATIONS.items()),
        function(_V1, "to_grayscale", _grayscale(keeps_info=False)),
        function(_OWN, "grayscale", _grayscale(keeps_info=True)),
        method("torchvision.transforms.transforms", "GaussianBlur", "forward", _defer_blur_transform),
        Place(_V2, kernels_of("gaussian_blur"), Image.Image, _defer_functional_blur),
        function(_OWN_TENSORS, "gaussian_blur", _defer_own_blur),
    ]
)

"""The operations of augmentation policies on a PIL image, by the calls that torchvision makes."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image, ImageEnhance, ImageOps

from headrace._recipe.arithmetic import functional_pil, shear_matrices
from headrace._recipe.steps.steps import FILTERS
from headrace.transforms._arguments import Fill, Interpolation, filter_name

#: Operations whose magnitude alone matters.
_PLAIN: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "Identity": lambda image, magnitude: image,
    "Brightness": lambda image, magnitude: ImageEnhance.Brightness(image).enhance(1.0 + magnitude),
    "Color": lambda image, magnitude: ImageEnhance.Color(image).enhance(1.0 + magnitude),
    "Contrast": lambda image, magnitude: ImageEnhance.Contrast(image).enhance(1.0 + magnitude),
    "Sharpness": lambda image, magnitude: ImageEnhance.Sharpness(image).enhance(1.0 + magnitude),
    "Posterize": lambda image, magnitude: ImageOps.posterize(image, int(magnitude)),
    "Solarize": lambda image, magnitude: ImageOps.solarize(image, 255.0 * magnitude),  # type: ignore[arg-type]
    "AutoContrast": lambda image, magnitude: ImageOps.autocontrast(image),
    "Equalize": lambda image, magnitude: ImageOps.equalize(image),
    "Invert": lambda image, magnitude: ImageOps.invert(image),
}
_AFFINE: dict[str, Callable[[float], shear_matrices.Matrix]] = {
    "ShearX": shear_matrices.shear_x,
    "ShearY": shear_matrices.shear_y,
    "TranslateX": lambda magnitude: shear_matrices.translation(int(magnitude), 0),
    "TranslateY": lambda magnitude: shear_matrices.translation(0, int(magnitude)),
}


def affine_matrix(name: str, magnitude: float) -> shear_matrices.Matrix | None:
    """Returns the matrix of an operation that shears or translates; None for any other."""
    return _AFFINE[name](magnitude) if name in _AFFINE else None


def operate(image: Image.Image, name: str, magnitude: float, interpolation: Interpolation, fill: Fill) -> Image.Image:
    """Returns the image after one operation.

    Args:
        image: an image of a mode that Pillow's operation supports.
        name: torchvision's name of the operation.
        magnitude: in torchvision v2's units, with its sign.
        interpolation, fill: for operations that move pixels.

    Raises:
        ValueError: `interpolation` is no mode, or `fill` does not match the image.
    """
    if name in _PLAIN:
        return _PLAIN[name](image, magnitude)
    filter = Image.Resampling(FILTERS[filter_name(interpolation)])
    colour = functional_pil.pixel(fill, image)
    matrix = affine_matrix(name, magnitude)
    if matrix is not None:
        return image.transform(image.size, Image.Transform.AFFINE, matrix, filter, fillcolor=colour)
    return image.rotate(magnitude, filter, fillcolor=colour)

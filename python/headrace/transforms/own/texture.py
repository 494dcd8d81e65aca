"""TextureChannels: an image's bytes as 13 channels of colour, gradient, place and frequency."""

from __future__ import annotations

import torch
from PIL import Image

from headrace._recipe.arithmetic import textures
from headrace._recipe.images.part_kinds import Kind
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace.transforms._base import Params, Transform

_LAYOUTS = ("CHW", "HWC")


class TextureChannels(Transform):
    """Converts RGB images to 13 channels, float32: (13, H, W), or (H, W, 13) with ``layout="HWC"``.

    Takes PIL images of mode RGB and uint8 tensors (3, H, W); gray ones are repeated. Place it last, after the resize
    and the flips. R, G and B are the bytes divided by 255:

    | channels | values |
    |---|---|
    | 0, 1, 2 | R, G, B |
    | 3, 4, 5 | L / 100, a / 128, b / 128 of CIE LAB |
    | 6, 7 | Sobel's derivatives of the luma Y along x and y, kernel ``[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]] / 4`` |
    | 8, 9 | x = (2 j + 1) / W - 1 and y = (2 i + 1) / H - 1 of column j and row i |
    | 10 | eccentricity, sqrt((x x + y y) / 2) |
    | 11, 12 | Y in two bands of frequency: ``irfft2(rfft2(Y) * (low <= f < high))``, f = sqrt(fx fx + fy fy) |

    - Y = 0.299 R + 0.587 G + 0.114 B. Sobel repeats the edge's pixels outside the image, the bands continue it
      periodically.
    - LAB: each of R, G, B becomes C / 12.92 if C <= 0.04045, else ((C + 0.055) / 1.055) ** 2.4; these become XYZ by
      sRGB's matrix ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227)),
      divided by the white D65, (0.95047, 1, 1.08883); with g(t) = cbrt(t) if t > (6 / 29) ** 3, else
      t / (3 (6 / 29) ** 2) + 4 / 29, L = 116 g(Y) - 16, a = 500 (g(X) - g(Y)), b = 200 (g(Y) - g(Z)).

    Everything is computed in float64 and rounded once. The order of operations is fixed: results depend neither on the
    processor's instructions nor on threads. In a `DataLoader` it is native as the last step; if other steps or
    ``dtype=`` come after it, it is called in Python.

    Args:
        layout: ``"CHW"`` or ``"HWC"``.
        bands: two pairs (low, high) of frequencies in cycles per pixel; `high` is excluded.

    Raises:
        ValueError: `layout` or `bands` has none of these values.
        TypeError: when called, if an image is neither of mode RGB or L nor a uint8 tensor of 1 or 3 channels.
    """

    _takes = frozenset({Kind.PIL, Kind.IMAGE, Kind.PURE})
    _in_torchvision = False

    def __init__(self, layout: str = "CHW", bands: textures.Bands = ((1 / 32, 1 / 8), (1 / 8, 1 / 2))) -> None:
        super().__init__()
        if layout not in _LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(_LAYOUTS)}, not {layout!r}")
        pairs = [tuple(float(edge) for edge in band) for band in bands]
        if len(pairs) != 2 or not all(len(pair) == 2 and 0 <= pair[0] < pair[1] for pair in pairs):
            raise ValueError(f"bands must be two pairs (low, high) with 0 <= low < high, not {bands!r}")
        self.layout = layout
        (low, high), (lower, upper) = pairs
        self.bands: textures.Bands = ((low, high), (lower, upper))

    def transform(self, inpt: Image.Image | torch.Tensor, params: Params) -> torch.Tensor:
        image = _bytes_of(inpt)
        height, width = image.shape[-2:]
        shape = (13, height, width) if self.layout == "CHW" else (height, width, 13)
        made = torch.empty(shape, dtype=torch.float32, device="cpu")
        planes = made if self.layout == "CHW" else made.permute(2, 0, 1)
        textures.make_native_texture(height, width, self.bands).make(
            image.cpu().permute(1, 2, 0).numpy(), planes.numpy()
        )
        return made.to(image.device)


def _bytes_of(image: Image.Image | torch.Tensor) -> torch.Tensor:
    """Returns an image as a plain uint8 tensor (1 or 3, H, W)."""
    if isinstance(image, Image.Image):
        if image.mode not in ("RGB", "L"):
            raise TypeError(f"TextureChannels takes images of mode RGB or L, not {image.mode}; convert it")
        image = pil_to_tensor(image)
    if image.dtype != torch.uint8 or image.ndim != 3 or image.shape[0] not in (1, 3):
        raise TypeError(
            f"TextureChannels takes bytes, uint8 (3, H, W), not {image.dtype} {tuple(image.shape)}; put it before "
            "ToTensor"
        )
    plain: torch.Tensor = image.as_subclass(torch.Tensor)
    return plain

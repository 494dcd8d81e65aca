"""torchvision's change of the hue of a byte tensor (3, H, W), by torch operations in the order of versions 1 and 2."""

from __future__ import annotations

import torch
from torch import Tensor

#: Row: red, green, blue. Column: sixth of the circle. Entry: number of the value, of v, p, q and t.
_SECTORS = ((0, 2, 1, 1, 3, 0), (3, 0, 0, 2, 1, 1), (1, 1, 3, 0, 0, 2))


def turn_hue(values: Tensor, turn: float, version: int) -> Tensor:
    """Returns ``adjust_hue(values, turn)``, uint8 (3, H, W)."""
    floats = values.to(torch.float32)
    floats = floats / 255.0 if version == 1 else floats * (1.0 / 255)
    hue, saturation, value = _to_hsv(floats, version)
    made = _to_rgb((hue + turn).remainder(1.0), saturation, value, version)
    return (made * (255.0 + 1.0 - 1e-3)).to(torch.uint8)


def _to_hsv(floats: Tensor, version: int) -> tuple[Tensor, Tensor, Tensor]:
    least, most = torch.aminmax(floats, dim=0)
    flat, spread = most == least, most - least
    r, g, b = (most - floats) / spread.masked_fill(flat, 1.0)
    sixths = torch.where(most == floats[0], b - g, torch.where(most == floats[1], r + 2.0 - b, g + 4.0 - r))
    sixths = sixths / 6.0 if version == 1 else sixths * (1.0 / 6.0)
    return (sixths + 1.0).fmod(1.0), spread / most.masked_fill(flat, 1.0), most


def _to_rgb(hue: Tensor, saturation: Tensor, value: Tensor, version: int) -> Tensor:
    six = hue * 6.0
    sector = six.floor()
    part = six - sector
    if version == 1:
        other = 1.0 - saturation * (1.0 - part)
    else:
        other = saturation * part + (1.0 - saturation)
    shares = (1.0 - saturation, 1.0 - saturation * part, other)
    ways = torch.stack([value, *((share * value).clamp(0.0, 1.0) for share in shares)])
    chosen = torch.tensor(_SECTORS, device="cpu")[:, sector.to(torch.int64).remainder(6)]
    return ways.gather(0, chosen)

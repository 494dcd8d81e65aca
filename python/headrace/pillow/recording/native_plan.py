"""The first of the recorded operations as a plan of headrace's kernels, as far as these make Pillow's bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from headrace._recipe.arithmetic import pillow_rule
from headrace.pillow.recording.lazy_core import Operation
from headrace.pillow.recording.recorded_effects import EFFECTS, Warp

_FILTERS = range(1, 6)  # Lanczos, bilinear, bicubic, box, Hamming; nearest and those that Pillow 13 added are Pillow's
_FLIPPED = ("flip_horizontal", "flip_vertical")
_FLIPS = {0: (True, False), 1: (False, True), 3: (True, True)}  # Transpose -> horizontal, vertical; 3: half a turn

#: A take of pixels, and the resize of it, as bind/plan.cpp reads them.
Take: TypeAlias = dict[str, Any]


class NativePlan:
    """Takes operations as long as they are native: crops inside the image, flips, RGB to L and back, resizes,
    effects.

    Attributes:
        stages: the resizes, each of a take: a box of the pixels before it, maybe gray, maybe flipped.
        last: the take of the finished pixels.
        mode: theirs, "RGB" or "L"; another one if there are no operations. The kernels' pixels have three equal colours
            where it is "L".
        rest: the operations that are left to Pillow.
    """

    def __init__(self, size: tuple[int, int], mode: str, operations: Sequence[Operation]) -> None:
        self.stages: list[Take] = []
        self.last: Take = {"box": (0, 0, *size)}
        self.mode: str = mode
        self.rest: Sequence[Operation] = ()
        for number, (name, *arguments) in enumerate(operations):
            if not getattr(self, f"_{name}", _refuse_operation)(*arguments):
                self.rest = operations[number:]
                break

    def _crop(self, box: tuple[int, int, int, int]) -> bool:
        left, top, width, height = self.last["box"]
        x0, y0, x1, y1 = box
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):  # Pillow pads with black
            return False
        if self.last.get("flip_horizontal"):
            x0, x1 = width - x1, width - x0
        if self.last.get("flip_vertical"):
            y0, y1 = height - y1, height - y0
        self.last["box"] = left + x0, top + y0, x1 - x0, y1 - y0
        return True

    def _transpose(self, method: int) -> bool:
        if method not in _FLIPS:
            return False
        for axis, flips in zip(_FLIPPED, _FLIPS[method], strict=True):
            self.last[axis] = self.last.get(axis, False) != flips
        return True

    def _convert(self, mode: str, *_: object) -> bool:
        if mode == "L" and self.mode in ("RGB", "RGBA"):
            self.last["gray"] = True
        self.mode = mode
        return True

    def _resize(self, size: tuple[int, int], resample: int, _: object) -> bool:
        if resample not in _FILTERS or not pillow_rule.is_pass_order_known():
            return False
        _, _, width, height = self.last["box"]
        self._add_resize(size, int(resample), pillow_rule.vertical_first(height, width, size[1], size[0]))
        return True

    def _resize_tensor(self, size: tuple[int, int], filter: str) -> bool:
        """Of tensors: the name of a filter of torch's, as bind/convert.cpp has it."""
        self._add_resize(size, filter, vertical_first=False)
        return True

    def _add_resize(self, size: tuple[int, int], filter: int | str, vertical_first: bool) -> None:
        resize = {"resize": size, "made": size, "filter": filter, "vertical_first": vertical_first}
        self.stages.append({**self.last, **resize})
        self.last = {"box": (0, 0, *size)}

    def _pad(self, padding: tuple[int, int, int, int], mode: int, fill: tuple[int, int, int]) -> bool:
        """Of tensors: (left, top, right, bottom), the number of a PadMode, and a colour."""
        self._end_stage({"box"})
        (left, top, right, bottom), (_, _, width, height) = padding, self.last["box"]
        self.last = {"box": (-left, -top, width + left + right, height + top + bottom), "pad_mode": mode, "fill": fill}
        return True

    def _end_stage(self, kept: set[str]) -> None:
        """Makes the pixels so far an image of their own, of which `last` takes everything.

        Args:
            kept: what the last take may have without that.
        """
        _, _, *size = box = self.last["box"]
        if not self.stages or box != (0, 0, *self.stages[-1]["made"]) or self.last.keys() - kept:
            self.stages.append({**self.last, "resize": tuple(size), "made": tuple(size)})
            self.last = {"box": (0, 0, *size)}

    def _effect_of_tensors(self, effect: tuple[Any, ...], moves: bool = False) -> bool:
        """Of tensors: an effect as bind/plan.cpp reads it; `moves`: pixels."""
        self._end_stage({"box"} if moves else {"box", *_FLIPPED})
        self.stages[-1].setdefault("effects", []).append(effect)
        return True

    def _gray_of_tensors(self, effect: tuple[Any, ...]) -> bool:
        """Of tensors: an effect whose pixels have three equal colours, of which one is left."""
        self.mode = "L"
        return self._effect_of_tensors(effect)

    def _equal_colours(self) -> bool:
        """One channel of pixels whose three colours are equal."""
        self.mode = "L"
        return True

    def _effect(self, name: str, value: object) -> bool:
        effect = EFFECTS[name].native(value)
        if effect is None:
            return False
        # A flip may come after an effect on single pixels. A blur adds its terms from left to right.
        self._end_stage({"box"} if name in ("blur", "warp") else {"box", *_FLIPPED})
        if isinstance(value, Warp):
            self.stages[-1]["made"] = value.size
            self.last["box"] = (0, 0, *value.size)
        self.stages[-1].setdefault("effects", []).append(effect)
        return True


def _refuse_operation(*_: object) -> bool:
    return False

"""Functions whose code is replaced still count as their library's, whichever is looked at first."""

from __future__ import annotations

from headrace._base.originals.originality import is_own
from headrace._loading.doors import image_to_tensor
from headrace.pillow.recording.patches import Untouched
from torchvision_shim import import_torchvision

functional = import_torchvision().transforms.functional


def test_a_replaced_function_is_untouched() -> None:
    image_to_tensor.STEPS.put_back()
    before, plain = Untouched((functional, "pil_to_tensor")), functional.pil_to_tensor.__code__
    assert image_to_tensor.STEPS.replace()
    try:
        assert functional.pil_to_tensor.__code__ is not plain
        after = Untouched((functional, "pil_to_tensor"))
        assert before and after
    finally:
        image_to_tensor.STEPS.put_back()
    assert before and after and functional.pil_to_tensor.__code__ is plain


def test_code_of_a_program_is_noticed() -> None:
    """Also where ours has come after it."""
    untouched, plain = Untouched((functional, "pil_to_tensor")), functional.pil_to_tensor.__code__

    def pil_to_tensor(pic: object) -> object:
        return pic

    functional.pil_to_tensor.__code__ = pil_to_tensor.__code__
    try:
        assert not untouched
        assert image_to_tensor.STEPS.replace()
        assert not untouched
        assert not is_own(functional.pil_to_tensor, functional, "pil_to_tensor")
    finally:
        image_to_tensor.STEPS.put_back()
        functional.pil_to_tensor.__code__ = plain
    assert untouched and is_own(functional.pil_to_tensor, functional, "pil_to_tensor")

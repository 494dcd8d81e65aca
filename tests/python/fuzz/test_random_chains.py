"""Random chains of transforms: a few of those that `python -m fuzz.chains` runs; and that it finds what is wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from PIL import Image

pytest.importorskip("fuzz.chains.images", reason="torchvision is not installed", exc_type=ImportError)
pytest.importorskip("timm", exc_type=ImportError)

from fuzz.chains import direct, trial
from fuzz.chains.campaign import Campaign
from fuzz.chains.chain import Chain, Node, shorter
from fuzz.chains.generate import chain
from fuzz.chains.trial import Refused, difference, shrunk

from headrace import _lowering as lowering
from headrace._lowering.libraries import timm
from headrace._oracle.reference import reference_sample

TURNED = Chain(
    (
        Node("H.RandomResizedCrop((20, 30))"),
        Node("v1.RandomApply", (Node("v2.RandomInvert(1.0)"), Node("v1.RandomRotation(30)")), ", p=1.0"),
        Node("H.ToTensor()"),
    ),
    *("photographs", (0, 3), 5, "scalar"),
)


@pytest.mark.pixels
@pytest.mark.slow
def test_a_few_chains() -> None:
    campaign = Campaign(seed=3)
    assert max(campaign.run(0, 40)) == 40
    assert campaign.failures == []
    assert campaign.samples > 150 and campaign.direct > 80
    assert len(campaign.refused) < 10


def test_a_chain_depends_on_its_number_alone() -> None:
    assert [chain(number, 1) for number in range(4)] == [chain(number, 1) for number in range(4)]
    assert chain(0, 1) != chain(0, 2) != chain(1, 2)


@pytest.mark.pixels
def test_no_difference() -> None:
    assert difference(TURNED) == ""
    assert eval(TURNED.snippet.partition("print")[2], {"difference": difference, "Chain": Chain, "Node": Node}) == ""


@pytest.mark.pixels
def test_a_value_that_differs_from_the_oracle_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = reference_sample

    def wrong(*arguments: Any) -> torch.Tensor:
        sample = made(*arguments)
        sample[1, 2, 3] += 1 / 256
        return sample

    monkeypatch.setattr(trial, "reference_sample", wrong)
    assert "image 0, view 0: native and oracle differ in 1 of 1800 values, first at (1, 2, 3)" in difference(TURNED)


@pytest.mark.pixels
def test_an_oracle_that_is_not_torchvisions_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = direct._PARAMETERS["RandomRotation"]

    def mirrored(transform: Any, steps: Any, image: Image.Image, draws: Any) -> Image.Image:
        return turned(transform, steps, image, [-draw for draw in draws])

    monkeypatch.setitem(direct._PARAMETERS, "RandomRotation", mirrored)
    assert "oracle and torchvision differ" in difference(TURNED)
    small = shrunk(TURNED)
    assert [str(node) for node in small.nodes] == ["v1.RandomRotation(30)", "H.ToTensor()"]
    assert len(small.picked) == 1 and "oracle and torchvision differ" in difference(small)


@pytest.mark.pixels
def test_an_error_that_only_the_oracle_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any) -> None:
        raise ValueError("too small")

    monkeypatch.setattr(trial, "reference_sample", refused)
    assert "image 0: the oracle raises ValueError('too small'), and the loader does not" in difference(TURNED)


@pytest.mark.pixels
def test_transforms_that_draw_otherwise_than_torchvisions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chain, "twins_text", "v2.Compose([v2.CenterCrop((20, 30)), v1.ToTensor()])")
    assert difference(TURNED) == "the same transforms of torchvision draw other columns"


def test_what_is_not_native_says_why() -> None:
    blur = Chain(
        (Node("v1.CenterCrop(9)"), Node("v1.GaussianBlur(3)"), Node("v1.ToTensor()")), "gray", (0,), 1, "scalar"
    )
    with pytest.raises(Refused, match=r"^blurs an image of one channel"):
        difference(blur)


def test_shorter_chains() -> None:
    inner = Node("RandomApply", (Node("a"), Node("b")), ", p=1.0")
    found = [", ".join(map(str, nodes)) for nodes in shorter((inner, Node("c")))]
    assert found == ["c", "a, b, c", "RandomApply([b], p=1.0), c", "RandomApply([a], p=1.0), c", str(inner)]


def test_every_native_transform_occurs() -> None:
    """One that is missing has no word in fuzz/chains/vocabulary.py."""
    texts = " ".join(chain(number, 0).text for number in range(3000))
    words = {"ProcessorTransform", "AutoAugment", *re.findall(r"\.(\w+)\(", texts)}
    assert not lowering._LOWERS.keys() - words
    timms = {
        "RandAugment",
        "AutoAugment",
        "AugMixAugment",
        "ToTensor",
        "ToNumpy",
        *re.findall(r"timm\.(?:\w+\.)?(\w+)\(", texts),
    }
    assert not timm.LOWERS.keys() - timms

"""Packed sequences: where each begins, positions and masks, as flash-attn and transformers expect them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from headrace.sampler import Packed, PackingCollate
from headrace.sampler.patches import PatchPackingCollate

SAMPLES: list[Any] = [{"ids": [5, 6, 7], "label": 1}, {"ids": [8], "label": 2}, {"ids": [1, 2], "label": 3}]


def test_sequences_follow_each_other() -> None:
    batch = PackingCollate()(SAMPLES)
    packed = batch["ids"]
    assert isinstance(packed, Packed) and torch.equal(batch["label"], torch.tensor([1, 2, 3]))
    assert packed.values.tolist() == [5, 6, 7, 8, 1, 2]
    assert packed.cu_seqlens.dtype == torch.int32 and packed.cu_seqlens.tolist() == [0, 3, 4, 6]
    assert packed.position_ids.dtype == torch.int64 and packed.position_ids.tolist() == [0, 1, 2, 0, 0, 1]
    assert packed.max_seqlen == 3 and packed.lengths.tolist() == [3, 1, 2]
    assert packed.sequence_ids.dtype == torch.int32 and packed.sequence_ids.tolist() == [0, 0, 0, 1, 2, 2]
    assert packed.mask.dtype == torch.bool
    assert torch.equal(packed.mask, torch.block_diag(*(torch.ones(n, n) for n in (3, 1, 2))).bool())
    assert set(packed.attention_kwargs()) == {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"}


def test_empty_sequences_and_those_of_vectors() -> None:
    samples = [torch.zeros(0, 4), torch.ones(2, 4), torch.zeros(0, 4)]
    packed = PackingCollate()(samples)
    assert packed.values.shape == (2, 4) and packed.cu_seqlens.tolist() == [0, 0, 2, 2]
    assert packed.position_ids.tolist() == [0, 1] and packed.sequence_ids.tolist() == [1, 1]
    empty = PackingCollate()([np.zeros(0, np.float32)])
    assert empty.values.dtype == torch.float32 and len(empty.values) == 0 and empty.max_seqlen == 0
    assert empty.mask.shape == (0, 0)


def test_only_the_entries_that_are_named() -> None:
    samples = [(torch.arange(2), torch.zeros(3)), (torch.arange(1), torch.ones(3))]
    packed, vectors = PackingCollate([0])(samples)
    assert packed.values.tolist() == [0, 1, 0] and vectors.shape == (2, 3)
    with pytest.raises(ValueError, match="names 2, but the samples have"):
        PackingCollate([2])(samples)
    with pytest.raises(TypeError, match=r"sample 1 is of torch[.]float32, but sample 0 of torch[.]int64"):
        PackingCollate()([torch.arange(2), torch.zeros(2)])


def test_attention_over_a_bin_is_that_of_its_samples() -> None:
    torch.manual_seed(0)
    sequences = [torch.randn(length, 8) for length in (5, 1, 9)]
    packed = Packed.of(sequences)
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = packed.values[None]
    together = attend(rows, rows, rows, attn_mask=packed.mask)[0]
    apart = torch.cat([attend(one[None], one[None], one[None])[0] for one in sequences])
    assert torch.allclose(together, apart, atol=1e-6)


def test_transformers_collator_makes_the_same() -> None:
    transformers = pytest.importorskip("transformers")
    collator = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    theirs = collator([{"input_ids": sample["ids"]} for sample in SAMPLES])
    packed = PackingCollate()(SAMPLES)["ids"]
    assert torch.equal(theirs["input_ids"][0], packed.values)
    assert torch.equal(theirs["position_ids"][0], packed.position_ids)
    for name, value in packed.attention_kwargs().items():
        assert value == theirs[name] if isinstance(value, int) else torch.equal(value, theirs[name]), name


def test_patches_are_those_of_a_convolution() -> None:
    torch.manual_seed(1)
    images = [torch.randn(3, 8, 12), torch.randn(3, 4, 4), torch.randn(3, 16, 4)]
    packed, labels = PatchPackingCollate(4)([(image, number) for number, image in enumerate(images)])
    assert labels.tolist() == [0, 1, 2] and packed.grids.tolist() == [[2, 3], [1, 1], [4, 1]]
    assert packed.values.shape == (11, 48) and packed.max_seqlen == 6
    assert packed.cu_seqlens.dtype == torch.int32 and packed.cu_seqlens.tolist() == [0, 6, 7, 11]
    assert packed.position_ids.tolist()[:7] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 0]]
    assert packed.mask.sum() == 36 + 1 + 16
    embed = torch.nn.Conv2d(3, 5, 4, 4)
    expected = torch.cat([embed(image[None]).flatten(2)[0].T for image in images])
    made = packed.values @ embed.weight.flatten(1).T + embed.bias
    assert torch.allclose(made, expected, atol=1e-5)
    assert torch.equal(PatchPackingCollate(4)(images).values, packed.values)


@pytest.mark.parametrize(
    ("samples", "error", "words"),
    [
        ([torch.zeros(3, 6, 4)], ValueError, "sample 0 is 6 x 4, whose edges are no multiples of patch=4"),
        ([torch.zeros(3, 4, 4), torch.zeros(1, 4, 4)], ValueError, "sample 1 is of torch.float32 and 1 channels"),
        ([torch.zeros(4, 4)], TypeError, "sample 0 does not begin with an image"),
        ([("a", 1)], TypeError, "sample 0 does not begin with an image"),
    ],
)
def test_what_is_no_grid_of_patches_is_named(samples: list[Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        PatchPackingCollate(4)(samples)

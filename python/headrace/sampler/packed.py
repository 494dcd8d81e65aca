"""A collate function that puts the sequences of a batch one after another, and says where each begins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import torch

from headrace.sampler.sequences import collate_sequences


class Packed(NamedTuple):
    """The sequences of a batch, one after another, T entries in all.

    The names are those of flash-attn's ``flash_attn_varlen_func``, and of transformers' DataCollatorWithFlattening.

    Attributes:
        values: (T, ...), in the dtype of the samples. Sample i is ``values[cu_seqlens[i]:cu_seqlens[i + 1]]``.
        cu_seqlens: where each sample begins, and T, int32 (n + 1,).
        position_ids: position of each entry in its sample, int64 (T,): 0, 1, ..., 0, 1, ...
        max_seqlen: length of the longest sample.
    """

    values: torch.Tensor
    cu_seqlens: torch.Tensor
    position_ids: torch.Tensor
    max_seqlen: int

    @classmethod
    def of(cls, sequences: Sequence[torch.Tensor]) -> Packed:
        """Packs tensors of one dtype that differ in their first dimension only; one or more."""
        lengths = torch.tensor([len(one) for one in sequences])
        ends = lengths.cumsum(0)
        begins = torch.repeat_interleave(ends - lengths, lengths)
        cu_seqlens = torch.cat([ends.new_zeros(1), ends]).to(torch.int32)
        return cls(torch.cat(list(sequences)), cu_seqlens, torch.arange(len(begins)) - begins, int(lengths.max()))

    @property
    def lengths(self) -> torch.Tensor:
        """Length of each sample, int64 (n,)."""
        return self.cu_seqlens.diff().long()

    @property
    def sequence_ids(self) -> torch.Tensor:
        """The number in the batch of the sample of each entry, int32 (T,): 0, 0, ..., 1, 1, ...; document ids for
        FlexAttention's ``BlockMask``, transformers' ``seq_idx``."""
        numbers = torch.arange(len(self.cu_seqlens) - 1, dtype=torch.int32, device=self.cu_seqlens.device)
        return torch.repeat_interleave(numbers, self.lengths)

    @property
    def mask(self) -> torch.Tensor:
        """Attention mask for ``scaled_dot_product_attention``, bool (T, T): True where both are of one sample."""
        numbers = self.sequence_ids
        return numbers[:, None] == numbers

    def attention_kwargs(self) -> dict[str, Any]:
        """Returns transformers' ``FlashAttentionKwargs``: cu_seq_lens_q and _k, max_length_q and _k."""
        return {
            "cu_seq_lens_q": self.cu_seqlens,
            "cu_seq_lens_k": self.cu_seqlens,
            "max_length_q": self.max_seqlen,
            "max_length_k": self.max_seqlen,
        }


class PackingCollate:
    """Collates samples that are sequences, or nested tuples and dicts that contain sequences, without padding.

    Each sequence in a sample becomes a `Packed` in the batch; all other values are collated by torch's
    ``default_collate``. What a sequence is, and the structure of the batch, are as in `PaddingCollate`.

    Args:
        entries: the entries (keys of dicts, positions in tuples) that hold sequences to pack; all others are collated
            by ``default_collate``. None: all sequences are packed.

    Raises:
        TypeError, ValueError: when called; see `PaddingCollate`.
    """

    def __init__(self, entries: Collection[object] | None = None) -> None:
        self.entries: list[object] | None = None if entries is None else list(entries)

    def __call__(self, samples: Sequence[object]) -> Any:
        """Collates one sample or more into a batch."""
        given = True if self.entries is None else dict.fromkeys(self.entries, True)
        return collate_sequences(samples, given, lambda sequences, _, __: Packed.of(sequences))

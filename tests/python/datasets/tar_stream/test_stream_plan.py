"""Which samples a rank reads: equal parts, nothing lost, no more repeated than the parts need."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from headrace.datasets.tar_stream.sample_number import StreamPosition, decode_sample_number
from headrace.datasets.tar_stream.shard_plan import Plan, Segment


def samples(plan: Plan) -> list[tuple[int, int]]:
    """(shard, sample) of a plan of counts."""
    return [
        (one.shard, one.skip + n) for one in plan.segments(3, 1) for n in range(0 if one.take is None else one.take)
    ]


@pytest.mark.parametrize("each", [(4, 4, 4), (1, 0, 7, 2), (5,), (0, 1), (3, 3)])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("shuffle", [False, True])
def test_counts_are_cut_in_equal_parts(each: tuple[int, ...], ranks: int, shuffle: bool) -> None:
    parts = [samples(Plan.of_rank(len(each), (rank, ranks), None, each, shuffle)) for rank in range(ranks)]
    whole = [one for part in parts for one in part]
    assert {len(part) for part in parts} == {-(-sum(each) // ranks)}
    assert Counter(whole).keys() == {(shard, n) for shard, count in enumerate(each) for n in range(count)}
    assert whole[sum(each) :] == list(itertools.islice(itertools.cycle(whole[: sum(each)]), len(whole) - sum(each)))


def test_the_repeated_samples_have_other_numbers() -> None:
    each = (2, 1)
    parts = [list(Plan.of_rank(2, (rank, 2), None, each, False).segments(0, 0)) for rank in range(2)]
    assert parts == [[Segment(0, 0, 0, 2)], [Segment(0, 1, 0, 1), Segment(1, 0, 0, 1)]]


def test_whole_shards_are_dealt_out_and_repeated_in_another_order() -> None:
    parts = [Plan.of_rank(6, (rank, 2), 100, None, True) for rank in range(2)]
    turns = [
        [[one.shard for one in itertools.islice(part.segments(5, 2), turn * 3, turn * 3 + 3)] for turn in range(4)]
        for part in parts
    ]
    assert [part.quota for part in parts] == [50, 50]
    for first, second in zip(*turns, strict=True):
        assert sorted(first + second) == list(range(6))
    assert len({tuple(turn) for turn in turns[0]}) > 1
    with pytest.raises(ValueError, match="do not hold them in 128 turns"):
        list(parts[0].segments(5, 2))


def test_without_a_length_the_epoch_is_one_turn() -> None:
    plan = Plan.of_rank(3, (0, 1), None, None, False)
    assert plan.quota is None
    assert list(plan.segments(0, 0)) == [Segment(0, 0), Segment(0, 1), Segment(0, 2)]


def test_ranks_need_a_length_and_shards() -> None:
    with pytest.raises(ValueError, match="different numbers of batches: give length="):
        Plan.of_rank(3, (0, 2), None, None, False)
    with pytest.raises(ValueError, match="4 ranks cannot share 3 shards"):
        Plan.of_rank(3, (0, 4), 100, None, False)


def test_a_number_says_where_a_sample_begins() -> None:
    for position in (
        StreamPosition(0, 0, 0),
        StreamPosition(127, (1 << 24) - 1, (1 << 41) - 512),
        StreamPosition(3, 5, 1024),
    ):
        assert decode_sample_number(position.number) == position
        assert 0 <= position.number < 2**63

"""What headrace top draws, compared as text at 80 columns; other widths, terminals without Unicode, hostile names."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Literal

import pytest

pytest.importorskip("rich")
from rich.console import Console

from headrace._reports.metrics.process_figures import LoaderFigures, ProcessFigures, StageFigures
from headrace._reports.metrics.rolling_rate import Recent
from headrace._reports.metrics.totals import Totals
from headrace._reports.ranks.rank_figures import JobVerdict
from headrace._reports.top.bars import bar, curve, milliseconds, per_second, seconds
from headrace._reports.top.discovery import Found
from headrace._reports.top.screen import Screen
from support import REPOSITORY

LOADER = LoaderFigures(
    0,
    "ImageFolder",
    1_281_167,
    "native",
    8,
    epoch=3,
    batch=12_345,
    batches=20_019,
    unit="samples",
    recent_s=5.0,
    speed=2431.4,
    working=0.39,
    speeds=[0.0, 1000.0, 2000.0, 2500.0, 2400.0],
    quiet_s=0.02,
    step_ms=[12.1, 14.25],
    wait_ms=[18.6, 140.4],
    bytes_read=87_654_321_000,
    bottleneck="decode",
    verdict=[
        "bottleneck: decode (sure: 97% of the epoch agree)",
        "why: of 30.9 ms a batch the consumer works 39% and waits 61%; 8 threads on 8 cores are busy 99%; decode takes "
        "80% of the work",
        "change: num_workers=16: about 1.75x",
    ],
    stages=[StageFigures("read", 0.04, 0.058, 0.05, 0.21), StageFigures("decode", 0.8, 1.234, 1.1, 4.5)],
)
PROCESS = ProcessFigures(4711, 99, 1000.0, 1.0, 2, 4, "0.1.0", [LOADER])

WHOLE = """\
process 4711, rank 2 of 4  python train.py --epochs 90
────────────────────────────────────────────────────────────────────────────────
loader 0: ImageFolder, 1,281,167 samples; native, 8 threads
epoch 3   █████████████████████░░░░░░░░░░░░░  12,345 of 20,019 batches
speed     2,431 samples/s       ▁▄▇██
consumer  █████████████░░░░░░░░░░░░░░░░░░░░░  works 39%, waits 61%
steps     p50 12.1 ms, p99 14.2 ms
waits     p50 18.6 ms, p99 140 ms
samples   87,654.3 MB read

stage               share   ms a sample     p50 ms     p99 ms
─────────────────────────────────────────────────────────────
read                   4%         0.058      0.050      0.210
decode                80%         1.234      1.100      4.500

bottleneck  decode (sure: 97% of the epoch agree)
why         of 30.9 ms a batch the consumer works 39% and waits 61%; 8 threads
            on 8 cores are busy 99%; decode takes 80% of the work
change      num_workers=16: about 1.75x
"""


def drawn(
    *found: Found,
    width: int = 80,
    now: float = 1000.5,
    encoding: str = "utf-8",
    color: Literal["truecolor"] | None = None,
) -> str:
    """What a terminal of this width shows, without spaces at the ends of lines; with a colour system as it is sent."""
    sent = io.BytesIO()
    out = io.TextIOWrapper(sent, encoding=encoding, newline="")
    console = Console(file=out, width=width, highlight=False, force_terminal=color is not None, color_system=color)
    console.print(Screen(found, now))
    out.flush()
    text = sent.getvalue().decode(encoding)
    return text if color else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def test_one_loader_in_full() -> None:
    assert drawn(Found(PROCESS, True, "python train.py --epochs 90")) == WHOLE
    assert WHOLE in (REPOSITORY / "docs/watching.md").read_text()


@pytest.mark.parametrize("width", [80, 100, 40, 20])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    several = replace(PROCESS, loaders=[replace(LOADER, number=number) for number in range(4)])
    for found in (Found(PROCESS, True, "python " + "long " * 30), Found(several, False)):
        lines = drawn(found, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert any("bottleneck" in line for line in lines)


def test_of_many_loaders_the_one_that_waits_most_is_shown_in_full() -> None:
    def loader(number: int, working: float, **other: object) -> LoaderFigures:
        return replace(LOADER, number=number, working=working, **other)  # type: ignore[arg-type]

    first = replace(PROCESS, rank=0, loaders=[loader(0, 0.9), loader(1, 0.0, ended=True, speed=0.0)])
    other = replace(PROCESS, pid=4712, rank=1, loaders=[loader(0, 0.2, batches=-1, unit="batches", speed=9.87)])
    text = drawn(Found(first, True), Found(other, True))
    assert text.startswith("""\
process 4711, rank 0 of 4
loader         epoch  progress            speed  works  bottleneck
0 ImageFolder      3       62%  2,431 samples/s    90%  decode
1 ImageFolder      3     ended                -      -  decode

process 4712, rank 1 of 4
loader         epoch  progress           speed  works  bottleneck
0 ImageFolder      3    12,345  9.87 batches/s    20%  decode
────────────────────────────────────────────────────────────────────────────────
loader 0: ImageFolder, 1,281,167 samples; native, 8 threads
epoch 3   12,345 batches
speed     9.87 batches/s        ▁▄▇██
""")
    assert text.count("change") == 1


JOB = """\
job of 4 ranks
straggler  rank 2 on node7, its storage is slow (sure; 4 ranks compared)
why        of 251 collectives in 15 s rank 2 came last in 240, 31.2 ms after the
           one before it; it waits 55% of the time for its loader, the others
           2%; its threads read 112 ms a batch and work 150 in all, the others'
           3.1 and 41
cost       all other ranks wait for it 50% of the time; the job would be about
           2.00x as fast without

rank  process  progress    speed  works  costs all  bottleneck
   0     4711       62%  2,431/s    98%         0%  consumer
   1     4712       62%  2,431/s    98%         1%  consumer
   2     4713       62%  2,431/s    45%        50%  read
   3     4714       62%  2,431/s    98%         0%  consumer
"""


def test_a_job_is_one_verdict_and_one_table() -> None:
    """The straggler is shown in full; the other ranks have a line, unless they are stopped or have ended."""
    why = (
        "of 251 collectives in 15 s rank 2 came last in 240, 31.2 ms after the one before it; it waits 55% of the time "
        "for its loader, the others 2%; its threads read 112 ms a batch and work 150 in all, the others' 3.1 and 41"
    )
    costs: dict[str, object] = {"0": 0.0, "1": 0.01, "2": 0.5, "3": 0.0}
    job = JobVerdict("job", 1000.0, 4, 4, 2, "node7", "storage", "sure", 0.5, costs, why)
    ranks = []
    for rank in range(4):
        slow = rank == 2
        loader = replace(LOADER, working=0.45 if slow else 0.98, bottleneck="read" if slow else "consumer")
        older = replace(job, at=900.0, straggler=1) if rank else job
        ranks.append(Found(replace(PROCESS, pid=4711 + rank, rank=rank, loaders=[loader], job=older), True))
    text = drawn(*reversed(ranks))
    assert text.startswith(JOB + "\nprocess 4713, rank 2 of 4\n") and text.count("process 47") == 1
    assert JOB in (REPOSITORY / "docs/watching.md").read_text()
    ended = drawn(*ranks[:3], replace(ranks[3], alive=False))
    assert "process 4714, rank 3 of 4\nThis process has ended" in ended
    few = drawn(*ranks[:2])
    assert few.count("process 47") == 2 and few.startswith("job of 4 ranks\n")
    none = replace(job, straggler=-1, certainty="likely", seen=3)
    alone = drawn(Found(replace(PROCESS, job=none), True))
    assert alone.startswith("job of 4 ranks\nstraggler  none (likely; 3 of 4 ranks compared)\n")
    hostile = replace(job, reason="\x1b[31mred", host="\x1b[0m")
    assert "\x1b" not in drawn(Found(replace(PROCESS, job=hostile), True))


def test_what_is_not_as_it_should_be() -> None:
    stopped = drawn(Found(PROCESS, True), now=1012.0)
    assert "No news for 12 s: it is stopped, or a call keeps its interpreter busy." in stopped
    assert "No news" not in drawn(Found(PROCESS, True), now=1004.9)
    ended = drawn(Found(PROCESS, False), now=1500.0)
    assert "This process has ended; its last figures, 8 min old:" in ended and "No news" not in ended
    assert "No loader has begun an epoch" in drawn(Found(replace(PROCESS, loaders=[]), True))

    def loader(**changed: object) -> str:
        return drawn(Found(replace(PROCESS, loaders=[replace(LOADER, **changed)]), True))  # type: ignore[arg-type]

    assert "no batch was handed out for 42 s" in loader(quiet_s=42.0)
    assert "no batch" not in loader(quiet_s=42.0, ended=True)
    assert "12,345 of 20,019 batches, ended" in loader(ended=True) and "speed" not in loader(ended=True)
    assert "87,654.3 MB read, 3 samples failed" in loader(failed=3)
    assert "speed     not known yet" in loader(recent_s=0.0, speeds=[])
    broken = loader(trouble="OSError: gone", verdict=[], stages=[])
    assert "Its figures cannot be read now: OSError: gone" in broken and "epoch" not in broken
    assert "loader 0: ImageFolder, 1,281,167 samples; torch, native pixels, 1 worker\n" in loader(
        route="deferred", workers=1, stages=[]
    )


def test_a_terminal_without_unicode() -> None:
    text = drawn(Found(PROCESS, True), encoding="ascii")
    assert "consumer  #############---------------------  works 39%, waits 61%" in text


def test_names_of_others_control_no_terminal() -> None:
    evil = "\x1b[2J[red]\x07\u202e\nx"
    hostile = replace(LOADER, dataset=evil, bottleneck=evil, verdict=[f"bottleneck: {evil}"], trouble=evil)
    told = replace(PROCESS, loaders=[replace(hostile, stages=[StageFigures(evil, 1, 1, 1, 1)])])
    for found in (Found(told, True, evil), Found(replace(told, loaders=[hostile] * 3), True)):
        text = drawn(found)
        assert not set(text) & {"\x1b", "\x07", "\u202e"} and "?[2J[red]" in text


def test_colours_are_the_terminals_own() -> None:
    """No colour of ours suits both a dark and a light background: the palette's red, green and cyan do, by the
    terminal's choice; no background is set, and text is neither black nor white."""
    text = drawn(Found(PROCESS, False), color="truecolor")
    codes = {int(one) for found in re.findall(r"\x1b\[([0-9;]*)m", text) for one in found.split(";") if one}
    assert codes <= {0, 1, 2, 31, 32, 36}
    assert {31, 32} <= codes


def test_bars_and_numbers() -> None:
    assert [bar(share, 4, ("", ""), True).plain for share in (-1, 0, 0.5, 1, 7)] == [
        "----",
        "----",
        "##--",
        "####",
        "####",
    ]
    assert (
        curve([1, 2, 4], 2, False) == "▅█" and curve([], 5, False) == curve([0], 5, False) == curve([1], 5, True) == ""
    )
    assert [per_second(one) for one in (0, 0.1234, 12.34, 123.4, 12345)] == ["0", "0.123", "12.3", "123", "12,345"]
    assert [milliseconds(one) for one in (0.01234, 12.34, 1234)] == ["0.0123 ms", "12.3 ms", "1,234 ms"]
    assert [seconds(one) for one in (0.4, 119, 120, 7199, 7200)] == ["0 s", "119 s", "2 min", "120 min", "2 h"]


def test_the_mean_of_the_last_seconds() -> None:
    recent = Recent(of_samples=True)
    assert recent.mean() == (0, 0, 0) and recent.speeds == []
    for second in range(100):
        recent.add(second, Totals(samples=10 * second, batches=second, worked_s=0.25 * second, waited_s=0.5 * second))
    assert [*recent.mean()] == [5, 10, pytest.approx(1 / 3)] and recent.speeds == [10] * 60
    slow = Recent(of_samples=False)
    for second in (0, 20, 40):
        slow.add(second, Totals(batches=second))
    assert slow.mean() == (20, 1, 0)  # nothing is known of the consumer

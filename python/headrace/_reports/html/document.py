"""The page: sections of the facts, styles and script in one file that loads nothing from another address."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from headrace._base.messages import printable
from headrace._reports.html.report_data import Facts
from headrace._reports.html.timeline_data import Timeline, collect_spans
from headrace._reports.loader.markup import (
    bar_chart,
    definition_list,
    histogram,
    section,
    table,
    text,
    time_chart,
)

_HERE = Path(__file__).parent
# The browser itself refuses every request to another address.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
#: Colours of the styles; a stage keeps its colour in the bars and in the timeline.
COLOURS = 8
_FAILED = 30  # samples that are listed


def document(facts: Facts) -> str:
    """Returns the page as HTML, such as every file takes."""
    timeline = collect_spans(facts.threads)
    data: dict[str, object] = {
        "timeline": timeline,
        "progress": vars(facts.progress) | {"per_second": facts.progress.per_second},
        "stages": [vars(one) for one in facts.stages],
        "machine": facts.machine,
        "verdict": facts.verdict,
        "job": facts.job,
    }
    body = "".join(
        (
            section("verdict", "Verdict", *(f"<p>{text(line)}</p>" for line in facts.verdict), _notes_section(facts)),
            section("job", "Ranks", *(f"<p>{text(line)}</p>" for line in facts.job)),
            section("speed", "Speed", _speed_section(facts)),
            section("stages", "Where the time goes", _stages_section(facts, timeline["stages"])),
            section("timeline", "Timeline", _timeline_section(timeline)),
            section("pictures", "What the network sees", _pictures_section(facts)),
            section("files", "Files", _files_section(facts)),
            section("slowest", "Slowest files", _slowest_files_section(facts)),
            section("failed", "Failed samples", _list_failed(facts)),
            section("loader", "Loader and machine", _loader_section(facts)),
        )
    )
    return printable(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{text(facts.title)}: headrace report</title><style>{_read_asset('page.css')}</style></head><body>"
        f"<header><h1>{text(facts.title)}</h1></header><main>{body}</main>"
        f'<script type="application/json" id=data>{_embed_json(data)}</script><script>{_read_asset("page.js")}</script>'
        "</body></html>\n"
    )


def _read_asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _embed_json(data: dict[str, object]) -> str:
    """Returns JSON that can stand inside a script element, whatever its strings hold."""
    made = json.dumps(data, separators=(",", ":"), default=str)
    return made.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _notes_section(facts: Facts) -> str:
    return "".join(f"<p class=note>{text(one)}</p>" for one in facts.notes)


def _speed_section(facts: Facts) -> str:
    progress = facts.progress
    if not progress.times_s:
        return ""
    line = (
        f"<p><b>{progress.per_second:,.0f} {text(progress.unit)}/s</b> on average: {sum(progress.counts):,} "
        f"{text(progress.unit)}, {len(progress.times_s):,} batches in {progress.times_s[-1]:.2f} s.</p>"
    )
    return line + time_chart(progress.times_s, progress.counts, progress.unit)


def _stages_section(facts: Facts, names: list[str]) -> str:
    if not facts.stages:
        return ""
    most = max(max(one.self_s for one in facts.stages), 1e-9)
    made = []
    for thread, group in groupby(facts.stages, key=lambda one: one.thread):
        stages = list(group)
        rows = [(one.stage, one.self_s, _colour(one.stage, names)) for one in stages]
        if any(one.stage == "__next__" for one in stages):  # the consumer: what it does between batches has no span
            rows.append(("your own code", max(0.0, facts.recorded_s - sum(one.self_s for one in stages)), "own"))
        made.append(f"<h3>{text(thread)}</h3>")
        for name, seconds, colour in rows:
            label = f"{seconds:.3f} s, {seconds / max(facts.recorded_s, 1e-9):.0%}"
            made.append(bar_chart([(name, min(1.0, seconds / most), label, colour)]))
    made.append(f"<p class=note>{facts.recorded_s:.3f} s recorded; 100% is one thread all the time.</p>")
    return "".join(made)


def _colour(stage: str, names: list[str]) -> str:
    return "idle" if stage in ("idle", "wait") else f"c{names.index(stage) % COLOURS}"


def _timeline_section(timeline: Timeline) -> str:
    if not timeline["lanes"]:
        return ""
    names = timeline["stages"]
    legend = "".join(f'<span><i class="{_colour(name, names)}"></i>{text(name)}</span>' for name in names)
    left_out = timeline["left_out"]
    late = f"<p class=note>{left_out:,} later spans are left out.</p>" if left_out else ""
    buttons = "".join(
        f'<button type=button data-act="{act}" aria-label="{name}">{sign}</button>'
        for act, name, sign in (
            ("in", "zoom in", "+"),
            ("out", "zoom out", "\N{MINUS SIGN}"),
            ("left", "earlier", "\N{LEFTWARDS ARROW}"),
            ("right", "later", "\N{RIGHTWARDS ARROW}"),
            ("all", "show all", "all"),
        )
    )
    return (
        f"<div class=legend>{legend}</div><div class=tools>{buttons}<span id=window></span></div>"
        "<canvas id=lanes tabindex=0 aria-label='what each thread did over time'></canvas>"
        "<p id=span class=note>Drag to move; wheel, pinch or the buttons to zoom; point at a span for its time.</p>"
        f"{late}"
    )


def _pictures_section(facts: Facts) -> str:
    cells = "".join(
        f'<figure><img src="{one.address}" alt="{text(one.caption) or "image"}"><figcaption>{text(one.caption)}'
        "</figcaption></figure>"
        for one in facts.pictures
    )
    return f"<div class=sheet>{cells}</div>" if cells else ""


def _files_section(facts: Facts) -> str:
    if not facts.examined:
        return ""
    most = max(facts.formats.values())
    rows = [
        (name, count / most, f"{count:,} ({100 * count / facts.examined:.1f}%)", "c0")
        for name, count in facts.formats.items()
    ]
    known = [(w, h) for w, h in zip(facts.widths, facts.heights, strict=True) if w and h]
    how = ", drawn at random" if facts.examined < facts.samples else ""
    return (
        f"<p>{facts.examined:,} files{how}.</p>{bar_chart(rows)}<div class=grid>"
        + histogram("Size of the files", [size / 1e3 for size in facts.bytes], "kB")
        + histogram("Pixels", [w * h / 1e6 for w, h in known], "MP")
        + histogram("Width", [w for w, _ in known], "px")
        + histogram("Height", [h for _, h in known], "px")
        + "</div>"
    )


def _slowest_files_section(facts: Facts) -> str:
    if not facts.slowest:
        return ""
    heads = ("file", "format", "MP", "kB", "read ms", "decode ms")
    rows = [
        (one.location, one.format, f"{one.megapixels:.2f}", f"{one.kilobytes:,.0f}", f"{one.read_ms:.1f}",
         f"{one.decode_ms:.1f}")
        for one in facts.slowest
    ]  # fmt: skip
    made = table(heads, rows, 4)
    return f"<p>Of the files above, read and decoded one by one in one thread.</p><div class=slowest>{made}</div>"


def _list_failed(facts: Facts) -> str:
    if not facts.failed:
        return ""
    more = len(facts.failed) - _FAILED
    rest = f"<p class=note>and {more:,} more; headrace doctor DATASET --bad - lists all.</p>" if more > 0 else ""
    return table(("sample", "reason"), facts.failed[:_FAILED]) + rest


def _loader_section(facts: Facts) -> str:
    machine = (
        ("memory", f"{value} GiB") if name == "memory_gib" else (name.replace("_", " "), value)
        for name, value in facts.machine.items()
        if value is not None
    )
    rows = [*facts.about, *machine]
    if facts.explanation:
        what = f"<details><summary>What runs where</summary><pre>{text(facts.explanation)}</pre></details>"
        return definition_list(rows) + what
    return definition_list(rows) if rows else ""

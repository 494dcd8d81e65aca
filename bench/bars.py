"""Draws README.md's chart, a light and a dark SVG, from the run beside other loaders.

    python -m bench.bars

Plain text and rectangles, so that a diff of the files can be read.
"""

from __future__ import annotations

import functools
import json
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
RUN = REPOSITORY / "bench" / "results" / "epyc-peers.json"
FOLDER = REPOSITORY / "docs" / "assets"

#: Contender of the run -> the name at its bar.
BARS = {
    "headrace": "headrace",
    "headrace-first": "headrace, first epoch",
    "ceiling": "libjpeg-turbo, decode only",
    "ffcv": "FFCV",
    "turboloader-noaa": "TurboLoader",
    "dali": "DALI, on the CPU",
    "torch": "torch + torchvision",
}
WIDTH, HEAD, ROW, BAR = 640, 44, 36, 22
LEFT, LONGEST = 244, 320  # pixels: where bars start, and the length of the longest


class Colours(NamedTuple):
    """Of one version of the chart; its background is transparent."""

    text: str
    small: str
    ours: str
    others: str
    decoding: str


VERSIONS = {
    "light": Colours(text="#1f2328", small="#59636e", ours="#0b6e8f", others="#b3bfc7", decoding="#d9a066"),
    "dark": Colours(text="#e6edf3", small="#9198a1", ours="#3fb0d4", others="#56626c", decoding="#a5713d"),
}


@functools.cache
def run() -> dict[str, Any]:
    """The run that is drawn."""
    found: dict[str, Any] = json.loads(RUN.read_text(encoding="utf-8"))
    return found


def medians() -> dict[str, float]:
    """Images per second of each contender that has a bar, in the order of BARS."""
    rates = {row["name"]: row["images_per_s"]["median"] for row in run()["summary"]}
    return {name: rates[name] for name in BARS}


def conditions() -> str:
    """The line below the bars: the machine, the date and the number of rounds."""
    cpu, day, rounds = run()["machine"]["cpu"], run()["date"][:10], run()["rounds_done"]
    return f"one core of an {cpu} (Zen 4), {day}; medians of {rounds} rounds, page cache warm"


def svg(colours: Colours) -> str:
    """One version of the chart."""
    rates = medians()
    scale = LONGEST / max(rates.values())
    height = HEAD + ROW * len(rates) + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' role="img" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="16">',
        "<title>Training images per second on one core</title>",
        f'<text x="0" y="20" fill="{colours.text}" font-weight="600">Training images per second, one core</text>',
    ]
    for number, (name, rate) in enumerate(rates.items()):
        top = HEAD + ROW * number
        ours = name.startswith("headrace")
        colour = colours.ours if ours else colours.decoding if name == "ceiling" else colours.others
        ink = f'fill="{colours.text}"' + (' font-weight="600"' if name == "headrace" else "")
        length = round(rate * scale)
        lines += [
            f'<text x="{LEFT - 12}" y="{top + 17}" text-anchor="end" {ink}>{escape(BARS[name])}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{length}" height="{BAR}" rx="3" fill="{colour}"/>',
            f'<text x="{LEFT + length + 8}" y="{top + 17}" {ink}>{rate:,.0f}</text>',
        ]
    below = HEAD + ROW * len(rates) + 12
    lines.append(f'<text x="0" y="{below}" fill="{colours.small}" font-size="14">{escape(conditions())}</text>')
    return "\n".join([*lines, "</svg>", ""])


def files() -> dict[Path, str]:
    """The files, and the text that each should have."""
    return {FOLDER / f"one-core-{version}.svg": svg(colours) for version, colours in VERSIONS.items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")

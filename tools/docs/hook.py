"""The hook of mkdocs.yml: adds pages from outside docs/, resolves links, checks the reference after the build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pages
from links import rewritten
from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from public_names import complaints

log = get_plugin_logger("headrace")


def on_config(config: Any) -> Any:
    """Puts the pages of a folder where ``nav`` says ``folder/*``."""
    config.nav = _expanded(config.nav)
    return config


def _expanded(entries: list[Any]) -> list[Any]:
    made: list[Any] = []
    for entry in entries:
        if entry == "decisions/*":
            made += [{pages.title_of(path).replace("`", ""): f"decisions/{path.name}"} for path in pages.decisions()]
        elif entry == "benchmarks/results/*":
            made += [{pages.title_of(path): f"benchmarks/results/{path.name}"} for path in pages.results()]
        elif isinstance(entry, dict):
            made.append(
                {title: _expanded(value) if isinstance(value, list) else value for title, value in entry.items()}
            )
        else:
            made.append(entry)
    return made


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are not in docs/, and the benchmark's pictures, from their own folders."""
    for path, page in pages.SHOWN.items():
        files.append(File.generated(config, page, abs_src_path=str(pages.ROOT / path)))
    files.append(File.generated(config, "benchmarks/results/index.md", content=pages.list_of_results()))
    for result in pages.results():
        page = f"benchmarks/results/{result.name}"
        files.append(File.generated(config, page, content=pages.page_of_result(result)))
    for picture in sorted(pages.RESULTS.glob("*.png")):
        files.append(File.generated(config, f"benchmarks/results/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links, pictures and weights in the search; without a fence's marks, which only the test of the snippets needs."""
    page.meta.setdefault("search", {"boost": pages.search_boost(page.file.src_uri)})
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # the tabs say it all
    markdown = re.sub(r"^<picture>$.*?^</picture>$", _both_versions, markdown, flags=re.DOTALL | re.MULTILINE)
    markdown = re.sub(r"^```python no-run$", "```python", markdown, flags=re.MULTILINE)
    return rewritten(markdown, page.file.src_uri, config.repo_url, log.warning)


def _both_versions(picture: re.Match[str]) -> str:
    """The two images of a <picture>, of which the site shows the one that suits its colours, not the system's."""
    image = re.search(r"<img [^>]*>", picture[0])
    dark = re.search(r'"\(prefers-color-scheme: dark\)" srcset="([^"]+)"', picture[0])
    if image is None or dark is None:
        raise PluginError(f"a picture has no image, or no dark version: {picture[0]}")
    light = re.sub(r'(?<= src=")([^"]+)', r"\1#only-light", image[0])
    return "\n".join([light, re.sub(r'(?<= src=")([^"]+)', f"{dark[1]}#only-dark", image[0])])


def on_page_context(context: dict[str, Any], page: Any, config: Any, nav: Any) -> dict[str, Any]:
    """Where to edit a page that is not in docs/."""
    source = pages.file_of(page.file.src_uri)
    if page.edit_url is None and (pages.ROOT / source).exists():
        page.edit_url = f"{config.repo_url}/edit/main/{source}"
    return context


def on_post_build(config: Any) -> None:
    """Fails where a public name lacks a docstring or an entry in the reference."""
    wrong = complaints(Path(config.site_dir))
    if wrong:
        raise PluginError("\n".join(["the reference is not complete:", *wrong]))

"""The built documentation site in a headless browser: no script errors, nothing wider than the page, search works.

`make docs` builds the site. The tests skip where it, Chromium or selenium is missing.
"""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import WATCHDOG_S

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: run make docs")

SITE = Path(__file__).resolve().parents[3] / "build" / "site"
PAGES = sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html"))
#: What may be wider than a page of text, besides tables, which scroll on each page alike. The decisions, half of the
#: pages, have little of it.
WIDE = re.compile(r"<pre|<img|<code>[^<\s]{32}")
HOME = "/headrace"
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Elements that stick out to the right of the page, unless an ancestor of theirs scrolls.
STICKING_OUT = """
const width = arguments[0];
const scrolls = element => {
  for (let at = element; at && at !== document.body; at = at.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX)) return true;
  return false;
};
const found = [...document.querySelectorAll("article *, header *, nav *")]
  .filter(element => element.getBoundingClientRect().right > width + 1 && !scrolls(element))
  .map(element => element.tagName + " " + element.className + ": " + element.textContent.trim().slice(0, 60));
return [document.documentElement.scrollWidth, found.slice(0, 3)];
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason=f"there is no site in {SITE}: run make docs"),
]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site under HOME, the path to which the page for wrong addresses links. Writes no log."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(HOME))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site's address on a server of this process."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}{HOME}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, which reaches no other host: a request to one is an error in its log."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium or chromedriver is missing (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    started.set_page_load_timeout(60)
    yield started
    started.quit()


def set_width(browser: Any, name: str) -> int:
    """Makes the page as wide as that of a desktop or a phone."""
    width, height = WIDTHS[name]
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": name == "phone"},
    )
    return width


def test_pages_have_no_errors_and_fit_their_width(address: str, browser: Any) -> None:
    wrong = []
    for page in PAGES:
        text = (SITE / page).read_text().partition("<article")[2].partition("</article")[0]
        if page.startswith("decisions/") and not WIDE.search(text):
            continue
        browser.get(f"{address}/{page}")
        for name in WIDTHS:
            width = set_width(browser, name)
            wide, found = browser.execute_script(STICKING_OUT, width)
            if wide > width or found:
                wrong.append(f"{page}: {wide} pixels wide on a page of {width} ({name}): {found}")
        wrong += [f"{page}: {one['message']}" for one in browser.get_log("browser") if one["level"] == "SEVERE"]
    assert not wrong, "\n".join(wrong)


def found_by(words: str, address: str, browser: Any) -> list[str]:
    """The links that the site's search gives for words, the best first."""
    set_width(browser, "desktop")
    browser.get(f"{address}/index.html")
    field = browser.find_element("css selector", "input.md-search__input")
    browser.execute_script("arguments[0].focus()", field)
    field.send_keys(words)
    deadline = time.monotonic() + WATCHDOG_S
    links: list[str] = []
    while not links and time.monotonic() < deadline:
        time.sleep(0.1)
        found = browser.find_elements("css selector", "a.md-search-result__link")
        links = [one.get_attribute("href") for one in found]
    return links


def test_search_finds_a_public_name(address: str, browser: Any) -> None:
    links = found_by("PermutationSampler", address, browser)
    assert any("reference/sampler.html" in link for link in links), links


@pytest.mark.parametrize("words", ["install", "resume", "bottleneck", "entry points", "num_workers", "notebook"])
def test_search_finds_guides_before_decisions_and_results(words: str, address: str, browser: Any) -> None:
    links = found_by(words, address, browser)
    assert links
    assert not any(folder in links[0] for folder in ("/decisions/", "/benchmarks/", "changelog")), links[:5]

"""The report in headless Chromium: no script errors, nothing wider than the page, the timeline can be zoomed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headrace import DataLoader, ImageFolder
from support import train, truncated, write_folder

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: run make docs")

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")

pytestmark = [pytest.mark.slow, pytest.mark.processes]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium that finds no host: a request to one is an error in its log."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium or chromedriver is missing (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    root = write_folder(folder / "data", 24)
    (root / "class_0" / f"{'a_long_name_without_a_space_' * 5}.jpg").write_bytes(truncated(b"\xff\xd8\xff" * 9))
    DataLoader(ImageFolder(root, train(64)), 4, num_workers=2, on_error="skip").report(folder / "r.html")
    return folder / "r.html"


def opened(browser: Any, page: Path, width: str, scheme: str) -> None:
    wide, high = WIDTHS[width]
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": width == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_its_script_runs(browser: Any, page: Path, width: str, scheme: str) -> None:
    opened(browser, page, width, scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= WIDTHS[width][0]
    picture = np.asarray(Image.open(BytesIO(browser.get_screenshot_as_png())).convert("L"))
    assert (picture.mean() > 128) == (scheme == "light")
    drawn = browser.execute_script(
        "const c = document.getElementById('lanes');"
        "return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
    assert drawn > 5  # colours
    hidden = "const e = document.querySelector('.slowest .scroll'); return e.scrollWidth - e.clientWidth"
    assert browser.execute_script(hidden) <= 0  # no figure of the slowest files is outside
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


def test_the_timeline_zooms(browser: Any, page: Path) -> None:
    opened(browser, page, "desktop", "light")

    def window() -> tuple[float, float]:
        data = browser.execute_script("return {...document.getElementById('lanes').dataset}")
        return float(data["from"]), float(data["to"])

    def press(act: str) -> None:
        browser.execute_script("document.querySelector(`[data-act=${arguments[0]}]`).click()", act)

    first, last = window()
    assert first == 0 and last > 0
    press("in")
    assert window()[1] - window()[0] == pytest.approx(last / 2)
    press("right")
    assert window()[0] > last / 4
    press("all")
    assert window() == (first, last)
    canvas = "const c = document.getElementById('lanes'), r = c.getBoundingClientRect();"
    at = "{clientX: r.left + r.width / 4, clientY: r.top + 20, deltaY: -400, cancelable: true, pointerId: 1}"
    browser.execute_script(f"{canvas} c.dispatchEvent(new WheelEvent('wheel', {at}))")
    begin, end = window()
    assert end - begin == pytest.approx(last / np.e, rel=1e-3)
    assert begin + (end - begin) / 4 == pytest.approx(last / 4, rel=1e-3)  # what is under the pointer stays there
    press("all")  # some step of the main thread is there, however long each took
    said = f"""{canvas} const found = [];
        for (let x = 0; x < r.width; ++x) {{
            const at = {{clientX: r.left + x, clientY: r.top + 20, pointerId: 1}};
            c.dispatchEvent(new PointerEvent('pointermove', at));
            found.push(document.getElementById('span').textContent);
        }}
        return found"""
    assert any("MainThread: " in one for one in browser.execute_script(said))
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []

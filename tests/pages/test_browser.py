"""Pages in a real browser: charts are drawn, a slider finds what the plan says, nothing hostile runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.page_cases import made_up_trace, planned, written

pytestmark = pytest.mark.evidence
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM, "install Chromium: apt-get install chromium"
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page of a made-up answer; a message of the console is a fault, and so is a request."""
    written(tmp_path / "page.html")
    made, faults = browser.new_page(viewport={"width": 1280, "height": 900}), []
    made.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on(
        "request", lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else faults.append(asked.url)
    )
    made.goto((tmp_path / "page.html").as_uri())
    made.wait_for_selector("body[data-ready=yes]", timeout=30_000)
    yield made
    assert not faults
    made.close()


def test_charts_are_drawn_and_nothing_hostile_runs(page: Any) -> None:
    assert page.title() == "Prediction"
    assert page.locator(".chart svg").count() == 3
    assert page.locator("img").count() == 0


def test_the_slider_finds_the_best_of_the_plan(page: Any) -> None:
    """At each cost the page names the k and the speed-up that the plan has there; the best k changes on the way."""
    trace, seen = made_up_trace(), set()
    slider = page.locator("#cost input[type=range]")
    for place in (0, 20, 40, 50, 60):
        slider.evaluate("(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", place)
        page.wait_for_timeout(200)
        shown = next(text for text in page.locator("#cost svg text").all_text_contents() if text.startswith("c = "))
        best = planned(trace, 10 ** (-3 + place / 20)).best
        assert shown.endswith(f"best {best.label}, k = {best.shape.nodes}, {best.speedup.best:.2f}x"), shown
        seen.add(best.shape.nodes)
    assert len(seen) > 2


def test_a_column_sorts(page: Any) -> None:
    table = page.locator("table").first

    def column() -> list[str]:
        return list(table.locator("tbody tr td:first-child").all_inner_texts())

    before = column()
    table.locator("th button").first.click()
    assert column() == before[::-1] == [str(k) for k in range(12, 0, -1)]


def test_a_narrow_page_scrolls_down_alone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_timeout(300)  # charts follow
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

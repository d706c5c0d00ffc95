"""Pages in a real browser: charts are drawn, sliders find what the plan says, nothing hostile runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import main
from spectheory.pages.prediction import RATIOS
from tests.commands import answer
from tests.made_up import each
from tests.pages.conftest import Open
from tests.pages.page_cases import hardware, made_up_trace, page_of, planned, written

pytestmark = pytest.mark.evidence
DRAWN = {"plan": 5, "judge": 2, "validate": 3, "figures": 0}
"""Charts of the page of each command."""
OPENS_WITHIN, POSITIONS = 2_000, 100_000
"""Milliseconds in which a page of so many positions is drawn."""


@pytest.fixture
def page(opened: Open, tmp_path: Path) -> Any:
    """The page of a made-up answer."""
    written(tmp_path / "page.html")
    return opened(tmp_path / "page.html")


def said(page: Any, chart: str, begins: str) -> str:
    """The words above a chart with sliders."""
    page.wait_for_timeout(200)
    return next(text for text in page.locator(f"#{chart} svg text").all_text_contents() if text.startswith(begins))


def move(page: Any, chart: str, place: int, slider: int = 0) -> None:
    control = page.locator(f"#{chart} input[type=range]").nth(slider)
    control.evaluate("(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", place)


def seen(page: Any, mark: str, element: str) -> list[str]:
    """The words of the marks that are not clear, in the chart of tokens."""
    page.wait_for_timeout(200)
    marks = page.locator(f"#tokens svg .role-mark.mark-{mark} {element}")
    return list(marks.evaluate_all("all => all.filter(e => +getComputedStyle(e).opacity > 0).map(e => e.textContent)"))


def test_charts_are_drawn_and_nothing_hostile_runs(page: Any) -> None:
    assert page.title() == "Prediction"
    assert page.locator(".chart svg").count() == 3
    assert page.locator("img").count() == 1, "our picture, and none of the hostile texts"
    assert page.locator("main a").count() == 0


def test_the_slider_finds_the_best_of_the_plan(page: Any) -> None:
    """At each cost the page names the k and the speed-up that the plan has there; the best k changes on the way."""
    trace, seen = made_up_trace(), set()
    for c in (RATIOS[0], RATIOS[20], RATIOS[40], RATIOS[50], RATIOS[60]):
        move(page, "cost", sorted({*RATIOS, 0.1}).index(c))
        best = planned(trace, c).best
        here = " (this report)" if c == 0.1 else ""
        words = f"c = {c:.3f}{here}: best {best.label}, k = {best.shape.nodes}, {best.speedup.best:.2f}x"
        assert said(page, "cost", "c = ") == words
        seen.add(best.shape.nodes)
    assert len(seen) > 2


def test_sliders_of_batch_and_context_find_what_the_command_says(
    opened: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, arguments, seen = opened(page_of("plan", tmp_path)), hardware(tmp_path / "again"), set()
    capsys.readouterr()
    for batch, step, context in ((1, 0, 256), (16, 5, 8192), (256, 0, 256), (256, 9, 131072)):
        move(page, "batches", batch.bit_length() - 1, 0)
        move(page, "batches", step, 1)
        asked = answer(capsys, *arguments, "--batch", batch, "--context", context)
        (choice,) = asked["batches"]["choices"]
        k = choice["k"]
        best = f"best k = {k}, {choice['speedup']:.2f}x" if k else "plain decoding"
        assert said(page, "batches", "batch ") == f"batch {batch}, context {context}: {best}"
        seen.add(k)
    assert len(seen) > 1


@each("name", sorted(DRAWN))
def test_every_page_opens_narrow_and_dark(name: str, opened: Open, tmp_path: Path) -> None:
    file = page_of(name, tmp_path)
    for width, dark in ((1280, False), (390, True)):
        page = opened(file, width=width, dark=dark)
        assert page.locator(".chart svg").count() == DRAWN[name]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if DRAWN[name]:
            fills = page.locator(".chart svg .role-axis-label text").evaluate_all(
                "texts => texts.map(each => getComputedStyle(each).fill)"
            )
            assert set(fills) == {page.evaluate("getComputedStyle(document.body).color")}


def test_each_whole_k_stands_once_below_a_chart(opened: Open, tmp_path: Path) -> None:
    made_up_trace().write(tmp_path / "trace.parquet")
    assert main(["predict", str(tmp_path), "--c", "0.1", "--k-max", "3", "--report", str(tmp_path / "page.html")]) == 0
    page = opened(tmp_path / "page.html")
    for chart in ("tokens", "speedup", "cost"):
        labels = page.locator(f"#{chart} svg .role-axis-label").first.locator("text").all_text_contents()
        assert [each for each in labels if each] == ["1", "2", "3"]


def test_intervals_and_limits_are_switched(page: Any) -> None:
    assert len(seen(page, "area", "path")) == 2
    page.locator("#tokens input[type=checkbox]").uncheck()
    assert not seen(page, "area", "path")
    offered = page.locator("#tokens select option").all_text_contents()
    assert (offered[0], offered[-1]) == ("none", "all")
    names = [each.partition(" (")[0] for each in offered]
    for choice, shown in ((offered[1], names[1:2]), ("none", []), ("all", names[1:-1])):
        page.locator("#tokens select").select_option(choice)
        assert sorted(seen(page, "text", "text")) == sorted(shown)


def saved(page: Any, chart: str, kind: str) -> bytes:
    with page.expect_download() as download:
        page.locator(f'[data-of="{chart}"] [data-save={kind}]').click()
    assert download.value.suggested_filename == f"{chart}.{kind}"
    return Path(download.value.path()).read_bytes()


@each("chart", ["cost", "picture"])
def test_a_chart_is_saved(chart: str, page: Any) -> None:
    """As a picture that needs no page around it, for white paper; and its numbers, of charts that are drawn here."""
    svg = saved(page, chart, "svg")
    assert svg.lstrip().startswith(b"<svg")
    assert b"var(--" not in svg
    assert saved(page, chart, "png").startswith(b"\x89PNG")
    if chart == "cost":
        assert saved(page, chart, "csv").startswith(b"rule,k,c,")


def test_a_slider_moves_no_axis_and_is_reset(page: Any) -> None:
    def axis() -> list[str]:
        return list(page.locator("#cost svg .role-axis-label").nth(1).locator("text").all_text_contents())

    before, words = axis(), said(page, "cost", "c = ")
    move(page, "cost", 0)
    assert said(page, "cost", "c = ") != words
    assert axis() == before
    page.locator("#cost [data-reset]").click()
    assert said(page, "cost", "c = ") == words


def test_a_command_is_copied(opened: Open, tmp_path: Path) -> None:
    page = opened(page_of("plan", tmp_path))
    command = page.locator("#run code").first.inner_text()
    assert command
    page.locator("#run [data-copy]").first.click()
    assert page.evaluate("getSelection().toString()") == command


def test_a_column_sorts(page: Any) -> None:
    table = page.locator("table").first
    first = table.locator("tbody tr td:first-child")
    table.locator("th button").first.click()
    assert first.all_inner_texts() == [str(k) for k in range(12, 0, -1)]
    assert table.locator("th").first.get_attribute("aria-sort") == "descending"
    table.locator("th button").first.click()
    assert first.all_inner_texts() == [str(k) for k in range(1, 13)]


def test_print_opens_what_is_folded(page: Any) -> None:
    shut = page.locator("details:not([open])").count()
    assert shut > 3
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == shut


def test_a_large_trace_opens_at_once(opened: Open, tmp_path: Path) -> None:
    made_up_trace(POSITIONS // 6 + 1).write(tmp_path / "trace.parquet")
    file = tmp_path / "page.html"
    assert main(["predict", str(tmp_path), "--c", "0.1", "--k-max", "8", "--report", str(file)]) == 0
    pages = [opened(file) for _ in range(3)]
    assert min(page.evaluate("drawn") for page in pages) < OPENS_WITHIN
    assert "14667 more tokens of this text are left out" in pages[0].inner_text("#text")
    assert "of 6" in pages[0].inner_text("#text")

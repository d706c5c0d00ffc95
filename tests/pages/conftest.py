"""A browser for pages, and pages opened in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
Open = Callable[..., Any]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The Chromium that CHROMIUM names, or that is on the path."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not path:
        pytest.skip("no Chromium: apt-get install chromium, or name one in CHROMIUM")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield made
        made.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Open a file; a message of the console is a fault, and so is a request."""
    contexts, faults = [], []

    def open_page(file: Path, *, width: int = 1280, dark: bool = False) -> Any:
        scheme = "dark" if dark else "light"
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request", lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else faults.append(asked)
        )
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready=yes]", timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not faults

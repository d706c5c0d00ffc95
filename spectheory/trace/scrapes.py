"""Scrapes of a running server's ``/metrics``, and the file that keeps them: a stopped watch continues from it."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from spectheory.errors import FOREIGN, EngineError, SettingError, SpectheoryError, TextError
from spectheory.store import Contents
from spectheory.trace.counters import Counters
from spectheory.trace.importers.prometheus import NO_COUNTERS, read_metrics
from spectheory.trace.reading import evidence_file

SCRAPES_FILE = "scrapes.jsonl"
"""Name of the scrapes in the folder of a watch."""
_PAGE = "/metrics"
_PATIENCE, _MOST = 10.0, 1 << 26
"""Seconds and bytes of one scrape."""
_SWITCH_ON = (
    "start vLLM with --speculative-config, SGLang with --enable-metrics, llama.cpp with --metrics, each with a draft, "
    "and send it a request"
)
SCRAPES = Contents(
    "spectheory scrapes",
    1,
    "scrapes of a server",
    TextError,
    "choose another folder",
    other="scrapes of another server, model or expectation",
    limit="one watch continues",
)


class Scraper:
    """A server by its URL, with or without ``/metrics``; `model` is the one watched, where it counts several."""

    def __init__(self, url: str, model: str | None = None) -> None:
        self.url, self._model = url.rstrip("/").removesuffix(_PAGE), model
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known or any(each.isspace() for each in self.url):
            raise SettingError(f"server {url!r} is no URL", limit="needs a host", remedy="as http://localhost:8000")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def scrape(self) -> Counters:
        """The counters now; an ``EngineError`` where the server does not answer or counts no speculation."""
        where = f"{self.url}{_PAGE}"
        page = self._page(where)
        try:
            return read_metrics(page, where, self._model)
        except TextError as error:
            remedy = _SWITCH_ON if error.limit == NO_COUNTERS else error.remedy
            raise EngineError(error.what, limit=error.limit, remedy=remedy) from error

    def _page(self, where: str) -> str:
        """The text of a page that ends in time and is not too long."""
        until, parts, size = time.monotonic() + _PATIENCE, [], 0
        try:
            with self._opener.open(where, timeout=_PATIENCE) as answer:
                while part := answer.read1(1 << 16):
                    parts.append(part)
                    size += len(part)
                    if size > _MOST or time.monotonic() > until:
                        raise EngineError(
                            f"{where} does not end",
                            limit=f"within {_PATIENCE:g} s and {_MOST} bytes",
                            remedy="check the server",
                        )
                return b"".join(parts).decode("utf-8", errors="replace")
        except EngineError:
            raise
        except HTTPError as error:
            remedy = _SWITCH_ON if error.code == 404 else "check the server and its log"
            raise EngineError(f"{where} answers {error.code}", limit="a watch reads it", remedy=remedy) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise EngineError(
                f"{where} cannot be read ({reason or type(error).__name__})",
                limit="a watch scrapes a running server",
                remedy="check its URL and that it runs",
            ) from error


def fingerprint(url: str, model: str | None, expect: Path, rule: str) -> str:
    """What must agree for a watch to continue: the server, its model, and what is expected of them."""
    try:
        content = evidence_file(expect).read_bytes()
    except OSError as error:
        raise SettingError(
            f"{expect} cannot be read ({error.strerror})", limit="needs a file or folder", remedy="check its name"
        ) from error
    parts = (url.encode(), (model or "").encode(), rule.encode(), content)
    return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()


def row_of(time: float, counters: Counters) -> dict[str, Any]:
    """A scrape as it is kept."""
    reached = [round(share * (counters.calls or 0)) for share in counters.survival]
    facts = {"k": counters.k, "engine": counters.engine, "started": counters.provenance.get("started")}
    return {"time": time, "calls": counters.calls, "accepted": counters.accepted, "reached": reached, **facts}


def of_row(row: Mapping[str, Any]) -> tuple[float, Counters]:
    """A kept scrape: its time and its counters.

    Examples
    --------
    >>> time, counters = of_row(row_of(1.5, Counters(calls=4, accepted=3, survival=(0.5, 0.25), k=2)))
    >>> time, counters.survival, counters.length
    (1.5, (0.5, 0.25), 1.75)
    """
    try:
        calls = row["calls"]
        shares = tuple(count / calls for count in row["reached"]) if calls else ()
        started = {} if row["started"] is None else {"started": row["started"]}
        totals = {name: row[name] for name in ("calls", "accepted", "k", "engine")}
        return float(row["time"]), Counters(**totals, survival=shares, cumulative=True, provenance=started)
    except (*FOREIGN, SpectheoryError) as error:
        raise TextError(
            f"a kept scrape cannot be read ({error})", limit="needs one that a watch wrote", remedy="use another folder"
        ) from error

"""JSON over HTTP; whatever goes wrong is one line."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import Any

from spectheory.errors import FOREIGN, EngineError, SettingError, load_extra

LONGEST = 300.0
"""Seconds that a server may take for one whole answer."""
MOST_BYTES = 1 << 28
"""Bytes of an answer, unpacked: far more than a text of the longest context with its log-probabilities."""
CONNECT = 10.0
"""Seconds until a connection stands."""
_URL = re.compile(r"https?://[^/\s]")


@dataclass(frozen=True)
class _Answer:
    """What a server answered: its status, and the content unpacked."""

    status: int
    content: bytes

    @property
    def text(self) -> str:
        """The content as text; what is none is replaced."""
        return self.content.decode("utf-8", errors="replace")


class Http:
    """A server by its URL; the environment's proxies are not used.

    An answer may take `timeout` seconds in all and have `most` bytes, however it drips or is packed.

    No connection stays open between two calls, so there is nothing to close.
    """

    def __init__(self, url: str, timeout: float = LONGEST, most: int = MOST_BYTES) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.timeout, self.most = timeout, most
        self._httpx = load_extra("httpx2", extra="engines")
        if not _URL.match(url):
            raise SettingError(f"server {url!r} is no URL", limit="needs a host", remedy="as http://localhost:8000")
        try:
            alone = self._httpx.Limits(max_keepalive_connections=0)
            patience = self._httpx.Timeout(timeout, connect=min(timeout, CONNECT))
            self._client = self._httpx.Client(base_url=self.url, timeout=patience, trust_env=False, limits=alone)
        except Exception as error:
            raise SettingError(
                f"server {url!r} is no URL ({error})", limit="needs a host", remedy="as http://localhost:8000"
            ) from error

    def get(self, path: str) -> str | None:
        """The text at `path`; None if the server has none."""
        answer = self._sent("GET", path)
        return answer.text if answer.status == 200 else None

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The object that the server answers."""
        answer = self._sent("POST", path, json=body)
        if answer.status != 200:
            said = " ".join(answer.text.split())[:200]
            raise self._refused(f"answered {answer.status} to {path} ({said})", "needs an answer 200")
        try:
            found = json.loads(answer.content)
        except FOREIGN:
            found = None
        if not isinstance(found, dict):
            raise self._refused(f"answered no JSON object to {path}", "needs an OpenAI-compatible server")
        return found

    def _sent(self, method: str, path: str, **content: Any) -> _Answer:
        until = time.monotonic() + self.timeout
        try:
            with self._client.stream(method, path, **content) as answer:
                parts, size = [], 0
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > self.most:
                        raise self._refused(f"answered {path} with more than {self.most} bytes", "at most so many")
                    if time.monotonic() > until:
                        raise self._refused(f"did not end its answer to {path}", f"within {self.timeout:g} s")
                return _Answer(answer.status_code, b"".join(parts))
        except self._httpx.TimeoutException as error:
            raise self._refused(f"did not answer {path}", f"within {self.timeout:g} s") from error
        except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError) as error:
            reason = str(error) or type(error).__name__
            raise self._refused(f"cannot be reached or ended ({reason})", "must run until the last prompt") from error

    def _refused(self, what: str, limit: str) -> EngineError:
        return EngineError(
            f"server {self.url} {what}",
            limit=limit,
            remedy="check the server and its log; finished prompts are kept, the same command continues",
        )

"""The one door for JSON that somebody else wrote: whatever is wrong with it is one line."""

from __future__ import annotations

import json
from textwrap import shorten
from typing import Any

from spectheory.errors import TextError


def parsed_json(text: str | bytes, where: str) -> Any:
    """What a JSON text holds; a ``TextError`` if it is none, is nested too deep, or has a number of too many digits."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else shorten(str(error), 120)
        raise TextError(
            f"{where} is not JSON ({reason})", limit="needs whole objects", remedy="check that the log is not cut off"
        ) from error

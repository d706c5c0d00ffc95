"""The one door for JSON that somebody else wrote: whatever is wrong with it is one line."""

from __future__ import annotations

import json
from textwrap import shorten
from typing import Any

from spectheory.errors import TextError

DEEPEST = 64
"""Lists in lists, or objects in objects, that are read; no log of a tool has more than ten."""


def loaded_json(text: str | bytes) -> Any:
    """What a JSON text holds; a ``RecursionError`` if it is nested deeper than :data:`DEEPEST`.

    The parser alone takes hundreds of levels, which copying and comparing what was read do not.
    """
    text = text if isinstance(text, str) else text.decode()
    found = json.loads(text)
    level: list[Any] = [[found]] if text.count("[") + text.count("{") > DEEPEST else []
    for _ in range(DEEPEST + 1):
        parts = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for each in parts for part in each if isinstance(part, dict | list)]
    if level:
        raise RecursionError("nested too deep")
    return found


def parsed_json(text: str | bytes, where: str) -> Any:
    """What a JSON text holds; a ``TextError`` if it is none, is nested too deep, or has a number of too many digits."""
    try:
        return loaded_json(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else shorten(str(error), 120)
        raise TextError(
            f"{where} is not JSON ({reason})", limit="needs whole objects", remedy="check that the log is not cut off"
        ) from error

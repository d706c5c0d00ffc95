"""JSON Schemas of what the commands write, one file each in ``schemas/``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from spectheory.errors import SettingError

__all__ = ["json_schema", "schema_names"]

_FOLDER = files("spectheory.reports") / "schemas"
_SHARED = "common"
"""Parts that several schemas refer to."""


@cache
def schema_names() -> tuple[str, ...]:
    """Names of the schemas, which :func:`json_schema` takes.

    Examples
    --------
    >>> {"prediction", "plan", "judgement"} <= set(schema_names())
    True
    """
    found = sorted(each.name.removesuffix(".json") for each in _FOLDER.iterdir() if each.name.endswith(".json"))
    return tuple(name for name in found if name != _SHARED)


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an answer or a file, with all that it refers to.

    Raises
    ------
    SettingError
        There is no schema of that name.

    Examples
    --------
    >>> json_schema("tree")["properties"]["schema"]["const"]
    1
    """
    if name not in schema_names():
        raise SettingError(
            f"schema {name!r} is unknown", limit=f"there are {', '.join(schema_names())}", remedy="use one of them"
        )
    whole = (_FOLDER / f"{name}.json").read_text(encoding="utf-8").replace(f'"{_SHARED}.json#', '"#')
    shared = (_FOLDER / f"{_SHARED}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(whole)
    return found | {"$defs": json.loads(shared)["$defs"]}

"""Prompts from a file in the layout of Spec-Bench's ``question.jsonl``: one JSON object per line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectheory.checks import instance, located
from spectheory.errors import TextError, reason_of
from spectheory.files import read_text

__all__ = ["Prompt", "read_prompts"]


@dataclass(frozen=True)
class Prompt:
    """One prompt, and the text that follows it where the file gives one.

    `id` and `category` (may be empty) are the file's; `text` is the first turn; `output` is a given continuation, for
    measuring on logged text in place of sampled text.
    """

    id: str
    category: str
    text: str
    output: str | None = None

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if name != "output" or text is not None:
                instance(name, text, str, remedy="pass a text")


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read prompts in file order, one JSON object per line (UTF-8); blank lines are skipped.

    Each object has ``question_id`` (str or int, unique) and ``turns`` (list of str; the first is used). ``category``
    (str) and ``output`` (str, a given continuation) are optional. Other fields are ignored.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "question.jsonl"
    ...     _ = file.write_text('{"question_id": 7, "category": "code", "turns": ["import "]}')
    ...     read_prompts(file)
    (Prompt(id='7', category='code', text='import ', output=None),)
    """
    path = located(path)
    try:
        content = read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({reason_of(error)})"
        raise TextError(
            f"{path} {reason}", limit="needs a UTF-8 file of prompts", remedy="check the path of the prompt file"
        ) from error
    # Split at "\n" only: JSON strings may hold other line separators of Unicode.
    numbered = [(number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
    if not numbered:
        raise TextError(f"{path} is empty", limit="needs at least one prompt", remedy="write one JSON object per line")
    prompts = []
    seen: dict[str, int] = {}
    for number, line in numbered:
        prompt = _parse(line, f"{path}, line {number}")
        if prompt.id in seen:
            raise TextError(
                f"{path}, line {number}: question_id {prompt.id!r} is also in line {seen[prompt.id]}",
                limit="ids must differ",
                remedy="rename one of them",
            )
        seen[prompt.id] = number
        prompts.append(prompt)
    return tuple(prompts)


def _parse(line: str, where: str) -> Prompt:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(where, f"is not JSON ({error})", "one JSON object per line") from error
    if not isinstance(record, dict):
        raise _wrong(where, f"holds a {type(record).__name__}", "one JSON object per line")
    turns = _field(record, "turns", list, where)
    if not turns or not isinstance(turns[0], str):
        raise _wrong(where, f"turns is {_shown(turns)}", "a list that starts with a text")
    if not turns[0].strip():
        raise _wrong(where, "the first turn is empty", "a prompt with at least one character other than spaces")
    output = record.get("output")
    if output is not None and not isinstance(output, str):
        raise _wrong(where, f"output is {_shown(output)}", "a text, or leave the field out")
    if output == "":
        raise _wrong(where, "output is empty", "a text of at least one character, or leave the field out")
    identifier = _field(record, "question_id", (str, int), where)
    if identifier == "":
        raise _wrong(where, "question_id is empty", "a name or a number")
    if not all(_encodable(value) for value in (turns[0], output or "", str(identifier))):
        raise _wrong(where, "a text holds a lone surrogate", "text that UTF-8 can write")
    category = "" if record.get("category") is None else _field(record, "category", str, where)
    return Prompt(str(identifier), category, turns[0], output)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _field(record: dict[str, Any], name: str, kind: type | tuple[type, ...], where: str) -> Any:
    if name not in record:
        raise _wrong(where, f"has no {name!r}", "question_id and turns")
    value = record[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise _wrong(where, f"{name} is {_shown(value)}", " or ".join(k.__name__ for k in kinds))
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


def _wrong(where: str, what: str, needed: str) -> TextError:
    return TextError(
        f"{where}: {what}",
        limit=f"needs {needed}",
        remedy='e.g. {"question_id": 1, "category": "code", "turns": ["import "]}',
    )

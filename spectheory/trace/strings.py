"""The strings of token ids, read from a tokenizer's own file; nothing else is needed, and nothing is downloaded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spectheory.errors import FOREIGN, TraceError, argument

TOKENIZER_FILE = "tokenizer.json"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class TokenStrings:
    """What each token id stands for, the ids of special tokens, and the file that says it."""

    of_id: Mapping[int, str]
    special: frozenset[int]
    source: str

    def __getitem__(self, token: int) -> str:
        """The string of an id; an unknown id in angle brackets."""
        return self.of_id.get(token, f"<{token}>")

    @classmethod
    def read(cls, file: Path, *, ids: int | None = None) -> TokenStrings:
        """The tokens of a ``tokenizer.json``; `ids` is how many a trace's tokenizer has, if known.

        Raises
        ------
        TraceError
            If it is no such file, or has another number of tokens.
        """
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            added = content.get("added_tokens") or []
            named = {row["id"]: row["content"] for row in added}
            by_bytes = '"ByteLevel"' in json.dumps([content.get("decoder"), content.get("pre_tokenizer")])
            pieces = _pieces(content["model"]["vocab"])
            strings = {token: _plain(piece, by_bytes=by_bytes) for token, piece in pieces.items()} | named
            special = frozenset(row["id"] for row in added if row.get("special"))
            if not all(type(token) is int and isinstance(text, str) for token, text in strings.items()):
                raise TypeError("tokens are whole numbers, and what they stand for is text")
        except (OSError, *FOREIGN) as error:
            raise TraceError(
                f"{file} cannot be read as a tokenizer ({type(error).__name__})",
                limit=f"needs a {TOKENIZER_FILE} as transformers writes it",
                remedy=f"name the target's folder{argument('', ' with --target')}",
            ) from error
        if ids is not None and len(strings) != ids:
            raise TraceError(
                f"{file} has {len(strings)} tokens",
                limit=f"the trace's has {ids}",
                remedy="name the target's own folder",
            )
        return cls(strings, special, str(file))


def _pieces(vocabulary: Any) -> dict[int, str]:
    """Ids and pieces of either layout: a dictionary, or a list of pieces with scores."""
    if isinstance(vocabulary, dict):
        return {token: piece for piece, token in vocabulary.items()}
    return {token: row[0] for token, row in enumerate(vocabulary)}


def _plain(piece: str, *, by_bytes: bool) -> str:
    """A piece as text: letters that stand for bytes, or a low line for a space, written out."""
    if by_bytes:
        return bytes(_bytes_of_letters().get(letter, ord("?")) for letter in piece).decode("utf-8", errors="replace")
    if byte := _BYTE.fullmatch(piece):
        return bytes([int(byte[1], 16)]).decode("utf-8", errors="replace")
    return piece.replace("\u2581", " ")


@cache
def _bytes_of_letters() -> dict[str, int]:
    """Bytes that print as a letter stand for themselves, the others for letters from 256 on, in order."""
    letters = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(letters))
    return {chr(byte): byte for byte in letters} | {chr(256 + i): byte for i, byte in enumerate(others)}

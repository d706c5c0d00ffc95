"""Characters that a stream's encoding lacks, written in plainer ones; what steers a terminal is not written."""

from __future__ import annotations

import codecs
import unicodedata

from spectheory.files import strip_control_characters

PLAIN = {"≤": "<=", "≥": ">=", "±": "+-", "†": "+", "×": "x", "·": "*", "−": "-", "–": "-", "…": "...", "′": "'"}
"""What stands for a character where it cannot be written."""


def writable(text: str, encoding: str | None) -> str:
    """The text as a stream of that encoding can write it.

    Examples
    --------
    >>> writable("T1 ≤ 1.77±0.01", "ascii"), writable("T1 ≤ 1.77±0.01", "latin-1")
    ('T1 <= 1.77+-0.01', 'T1 <= 1.77±0.01')
    """
    encoding = encoding or "utf-8"
    return strip_control_characters(text).encode(encoding, errors=HANDLER).decode(encoding, errors="replace")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """What stands for the characters that could not be written: a plain form, the letter without accents, or ``?``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    letters = unicodedata.normalize("NFKD", character).encode("ascii", errors="ignore").decode()
    return PLAIN.get(character) or letters or "?"


HANDLER = "spectheory.plainer"
"""Name of the error handler, for ``reconfigure(errors=...)``."""
codecs.register_error(HANDLER, _plainer)

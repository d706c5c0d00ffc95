"""Characters that a stream's encoding lacks, written in plainer ones; what steers a terminal is not written."""

from __future__ import annotations

import codecs
import unicodedata

PLAIN = {"≤": "<=", "≥": ">=", "±": "+-", "†": "+", "×": "x", "·": "*", "−": "-", "–": "-", "…": "...", "′": "'"}
"""What stands for a character where it cannot be written."""


_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Unicode's marks of direction, which turn the text around them."""
STEERING = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0), *_MARKS} - {ord("\t"), ord("\n")}, "?")
"""Characters that a terminal obeys, as names of models and tokens may hold them, and what stands for them."""


def harmless(text: str) -> str:
    r"""The text without what steers a terminal.

    Examples
    --------
    >>> harmless("a model\x1b[2J")
    'a model?[2J'
    """
    return text.translate(STEERING)


def writable(text: str, encoding: str | None) -> str:
    """The text as a stream of that encoding can write it.

    Examples
    --------
    >>> writable("T1 ≤ 1.77±0.01", "ascii"), writable("T1 ≤ 1.77±0.01", "latin-1")
    ('T1 <= 1.77+-0.01', 'T1 <= 1.77±0.01')
    """
    encoding = encoding or "utf-8"
    return harmless(text).encode(encoding, errors=HANDLER).decode(encoding, errors="replace")


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

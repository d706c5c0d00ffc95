"""Names and texts that are not ours, as they may be shown."""

from __future__ import annotations

_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Unicode's marks of direction, which turn the text around them."""
STEERING = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0), *_MARKS} - {ord("\t"), ord("\n")}, "?")
"""Characters that a terminal or a browser obeys, and what stands for them."""


def harmless(text: str) -> str:
    r"""The text without what steers a terminal, or turns the words around it.

    Examples
    --------
    >>> harmless("a model\x1b[2J")
    'a model?[2J'
    """
    return text.translate(STEERING)

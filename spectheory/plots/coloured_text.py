"""One text as coloured words: blue where a draft is accepted for certain, orange where a call ends for certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.plots.style import BLACK, GREY, Figure, drawable, titled
from spectheory.prediction.where import Where
from spectheory.prediction.where_text import OneText

COLUMNS, MOST_LINES, MOST_NAME = 92, 40, 24
"""Letters of a line, lines, and letters of a text's id at most; what follows is cut off, and the picture says so."""
_LOW, _MIDDLE, _HIGH = "#D55E00", "#FFFFFF", "#56B4E9"
_FONT = 8.5
_LETTER, _LINE = 0.6 * _FONT / 72, 1.75 * _FONT / 72
"""Inches of a letter and of a line of the monospaced font."""


@dataclass(frozen=True)
class Placed:
    """A piece of a token on one line of the picture."""

    text: str
    line: int
    column: int
    token: int


def placed(tokens: Sequence[str], columns: int = COLUMNS) -> Iterator[Placed]:
    r"""The tokens in lines of `columns` letters at most; line breaks are shown, and end a line.

    Examples
    --------
    >>> [(piece.text, piece.line, piece.column) for piece in placed(["ab", " c\nd"], 5)]
    [('ab', 0, 0), (' c⏎', 0, 2), ('d', 1, 0)]
    """
    line = column = 0
    for number, token in enumerate(tokens):
        parts = token.replace("\t", "    ").split("\n")
        for i, part in enumerate(parts):
            shown = part + "⏎" * (i < len(parts) - 1)
            while shown:
                if column and column + len(shown) > columns and len(shown) <= columns // 2:
                    line, column = line + 1, 0
                piece, shown = shown[: columns - column], shown[columns - column :]
                yield Placed(piece, line, column, number)
                column += len(piece)
                if column >= columns:
                    line, column = line + 1, 0
            if i < len(parts) - 1 and column:
                line, column = line + 1, 0


def text_size(text: OneText) -> tuple[float, float]:
    """Width and height of the picture in inches."""
    return COLUMNS * _LETTER + 0.5, _lines(text) * _LINE + 1.5


def _lines(text: OneText) -> int:
    """Lines that are drawn."""
    return min(max((piece.line for piece in placed(_words(text))), default=0) + 1, MOST_LINES)


def draw_text(figure: Figure, found: Where) -> None:
    """Every token of the text on its colour, and a bar of the colours."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    text = found.text
    colours = LinearSegmentedColormap.from_list("accepted", [_LOW, _MIDDLE, _HIGH])
    width, height = text_size(text)
    figure.set_layout_engine("none")
    ax = figure.add_axes((0.25 / width, 0.75 / height, 1 - 0.5 / width, 1 - 1.35 / height))
    pieces = [piece for piece in placed(_words(text)) if piece.line < MOST_LINES]
    ax.set_xlim(0, COLUMNS)
    ax.set_ylim(_lines(text), 0)
    ax.set_axis_off()
    for piece in pieces:
        share = text.accepted[piece.token]
        box = Rectangle((piece.column + 0.04, piece.line + 0.06), len(piece.text) - 0.08, 0.88)
        box.set(facecolor=colours(share), edgecolor="#BBBBBB", linewidth=0.3)
        ax.add_patch(box)
        for i, letter in enumerate(piece.text):
            ax.text(piece.column + i + 0.5, piece.line + 0.54, drawable(letter), ha="center", va="center",
                    family="monospace", fontsize=_FONT, color=GREY if letter == "⏎" else BLACK)  # fmt: skip
    shown = pieces[-1].token + 1 if pieces else 0
    cut = f"; its first {shown}" if shown < len(text.tokens) else ""
    calls = sum(1 - share for share in text.accepted)
    name = text.id if len(text.id) <= MOST_NAME else f"{text.id[: MOST_NAME - 1]}…"
    title = f"Text {drawable(name)}: {len(text.tokens)} tokens in {calls:.1f} expected calls{cut}"
    titled(ax, f"{title}\n{found.rule.label}, {found.shape}")
    _legend(figure, colours, (width, height))


def _legend(figure: Figure, colours: Any, size: tuple[float, float]) -> None:
    width, height = size
    bar = figure.add_axes((0.25 / width, 0.42 / height, 2.4 / width, 0.16 / height))
    bar.imshow([[i / 255 for i in range(256)]], aspect="auto", cmap=colours, extent=(0, 1, 0, 1))
    bar.set_yticks([])
    bar.set_xticks([0, 0.5, 1])
    bar.tick_params(labelsize=8)
    figure.text(
        2.8 / width,
        0.5 / height,
        "expected share of decodings in which the token is an accepted draft;\n"
        "in all others a call of the target ends with it (⏎: line break)",
        fontsize=8,
        va="center",
        color=GREY,
    )


def _words(text: OneText) -> list[str]:
    """The tokens; those that are known by number alone with a space after each."""
    numbered = all(token.isdigit() or token.startswith("#") for token in text.tokens)
    return [f"{token} " for token in text.tokens] if numbered else list(text.tokens)

"""Every draft shape (S1), and how each is written on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.drafting.batch import Batch
from spectheory.drafting.chain import Chain
from spectheory.drafting.grown import Grown
from spectheory.drafting.kary import KAry
from spectheory.drafting.sized import Sized
from spectheory.drafting.tree import MOST_NODES, Shape, Tree, at_least_one
from spectheory.errors import SettingError
from spectheory.extensions import is_address, load_class

SHAPES: tuple[type[Shape], ...] = (Chain, Batch, KAry, Tree, Grown)
"""A new shape's file is listed here and nowhere else."""

__all__ = [
    "MOST_NODES",
    "SHAPES",
    "Batch",
    "Chain",
    "Grown",
    "KAry",
    "Shape",
    "Sized",
    "Tree",
    "at_least_one",
    "read_shape",
    "sized_shape",
    "written",
]


def written(*more: str) -> str:
    """How shapes are written, in words; `more` are names that the caller reads itself.

    Examples
    --------
    >>> written()
    'chain, batch, k-ary ones as 2x2x1, paths as 1,2,1-1 and grown trees as grown:16x4x5'
    """
    *ways, last = [
        *(shape.name for shape in SHAPES if shape.sized),
        *more,
        *(shape.form for shape in SHAPES if shape.form),
    ]
    return f"{', '.join(ways)} and {last}"


def sized_shape(text: str) -> type[Shape] | None:
    """The shape that is written by its name and made from its size; None for others."""
    known = (load_class(text, Shape),) if is_address(text) else SHAPES  # type: ignore[type-abstract]
    return next((shape for shape in known if shape.sized and (is_address(text) or shape.name == text)), None)


def read_shape(text: str, sizes: Sequence[int], *more: str) -> list[Shape]:
    """The shapes that a text writes: one of each size where it leaves the size open.

    A class of the user is written as ``module:Class``. `more` are names that the caller reads itself, for the error.

    Examples
    --------
    >>> [str(shape) for text in ("batch", "2x2", "1,2,1-1") for shape in read_shape(text, [1, 2])]
    ['batch k=1', 'batch k=2', 'k-ary 2x2', 'tree 1 2 1-1']
    """
    sized = sized_shape(text)
    if sized:
        return [sized(k) for k in sizes]  # type: ignore[call-arg]
    if is_address(text):
        return [load_class(text, Shape)()]  # type: ignore[type-abstract]
    for shape in SHAPES:
        found = shape.parsed(text)
        if found:
            return [found]
    raise SettingError(f"shape {text!r} is unknown", limit=f"there are {written(*more)}", remedy="name one")

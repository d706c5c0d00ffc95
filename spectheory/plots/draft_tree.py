"""Where the nodes of a draft tree stand in a picture, and the decisions between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Path = tuple[int, ...]
Place = tuple[float, float]
"""Across, and down from 0 at the root."""


def children(paths: Sequence[Path], node: Path) -> list[Path]:
    """The drafted children of a node, in order."""
    return sorted(path for path in paths if path[:-1] == node and path)


def places(paths: Sequence[Path], spread: float = 1.0, *, sampled: bool = True) -> dict[Path, Place]:
    """A place for every node, the root ``()`` included, and if `sampled` for the tokens that are sampled after them.

    Beside the children of a node, or below a leaf, stands the token that is sampled after them: its path ends with 0.

    Examples
    --------
    >>> places([(1,)])
    {(1, 0): (0.0, 2), (1,): (0.0, 1), (0,): (1.0, 1), (): (0.0, 0)}
    >>> places([(1,), (2,)], sampled=False)
    {(1,): (0.0, 1), (2,): (1.0, 1), (): (0.0, 0)}
    """
    found: dict[Path, Place] = {}
    across = 0.0

    def put(node: Path) -> None:
        nonlocal across
        below = children(paths, node)
        for child in below:
            put(child)
        if sampled:
            found[*node, 0] = (across, len(node) + 1)
        found[node] = (found[below[0]][0] if below else across, len(node))
        if sampled or not below:
            across += spread

    put(())
    return found


def decisions(paths: Sequence[Path]) -> Iterator[tuple[Path, Path, bool]]:
    """Every decision of recursive rejection: from which node to which, and whether by an acceptance.

    A candidate that is accepted leads to its first child, one that is rejected to its next sibling. After the last
    sibling, or below a leaf, a token is sampled: its path ends with 0.

    Examples
    --------
    >>> list(decisions([(1,)]))
    [((1,), (1, 0), True), ((1,), (0,), False)]
    """
    for node in paths:
        below = children(paths, node)
        yield node, below[0] if below else (*node, 0), True
        siblings = children(paths, node[:-1])
        after = siblings[siblings.index(node) + 1 :]
        yield node, after[0] if after else (*node[:-1], 0), False

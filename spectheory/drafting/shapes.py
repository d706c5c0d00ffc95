"""Draft shapes: which tokens a call drafts and verifies."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.errors import SettingError


@dataclass(frozen=True)
class Chain:
    """k tokens drafted one after the other: the shape of plain speculative decoding (S1).

    Parameters
    ----------
    k : int
        Drafted tokens per call, at least 1.

    Raises
    ------
    SettingError
        If k < 1.

    Examples
    --------
    >>> Chain(4).nodes, Chain(4).depth
    (4, 4)
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingError(f"k is {self.k}", limit="must be >= 1", remedy="no draft means plain decoding")

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.k

    @property
    def depth(self) -> int:
        """Draft passes per call, the most drafts that can be accepted."""
        return self.k

    def __str__(self) -> str:
        """Short form for tables."""
        return f"chain k={self.k}"

"""A rule and a kind of shape, for a column or a line over the number of draft nodes."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.drafting import Batch, Chain, KAry, Shape
from spectheory.prediction.shape_calls import BestTree, Wanted
from spectheory.verification import PathRule

_PATHS_SHOWN = 8
"""Nodes of a tree that a label writes out."""


@dataclass(frozen=True)
class Label:
    """The name of a rule and the kind of shape; None for chains.

    Examples
    --------
    >>> str(Label("token")), str(Label("race", "tree"))
    ('token', 'race tree')
    """

    rule: str
    kind: str | None = None

    @property
    def chain(self) -> bool:
        """Whether the shapes are chains."""
        return self.kind is None

    def __str__(self) -> str:
        """The words of a heading."""
        return self.rule if self.kind is None else f"{self.rule} {self.kind}"

    @classmethod
    def of(cls, rule: PathRule, wanted: Wanted, shape: Shape) -> Label:
        """The label of a shape that was asked for; one that is written by hand stands for itself."""
        return cls(rule.name, None if isinstance(wanted, Chain) else _kind(wanted, shape))


def _kind(wanted: Wanted, shape: Shape) -> str:
    if isinstance(wanted, Batch):
        return "batch"
    if isinstance(wanted, BestTree):
        return f"tree ≤{wanted.max_depth}" if wanted.max_depth else "tree"
    if isinstance(shape, KAry):
        return "x".join(map(str, shape.branching))
    paths = shape.tree().paths
    written = ",".join("-".join(map(str, path)) for path in paths[:_PATHS_SHOWN])
    return f"{written},... {len(paths)} nodes" if len(paths) > _PATHS_SHOWN else written

"""A rule and a kind of shape, for a column or a line over the number of draft nodes."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.drafting import Chain
from spectheory.prediction.shape_calls import Wanted
from spectheory.verification import PathRule


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
    def of(cls, rule: PathRule, wanted: Wanted) -> Label:
        """The label of a shape that was asked for; one that is written by hand stands for itself."""
        return cls(rule.name, None if isinstance(wanted, Chain) else wanted.family)

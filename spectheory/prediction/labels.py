"""A rule and a kind of shape, for a column or a line over the number of draft nodes."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.prediction.shape_calls import Wanted
from spectheory.verification import PathRule


@dataclass(frozen=True)
class Label:
    """The name of a rule and the kind of shape; None for chains. `stop` is the stopping rule of chains that have one.

    Examples
    --------
    >>> str(Label("token")), str(Label("race", "tree"))
    ('token', 'race tree')
    >>> str(Label("token", stop="top<0.6"))
    'token, top<0.6'
    """

    rule: str
    kind: str | None = None
    stop: str | None = None

    @property
    def chain(self) -> bool:
        """Whether the shapes are chains."""
        return self.kind is None

    def __str__(self) -> str:
        """The words of a heading."""
        name = self.rule if self.kind is None else f"{self.rule} {self.kind}"
        return f"{name}, {self.stop}" if self.stop else name

    @classmethod
    def of(cls, rule: PathRule, wanted: Wanted) -> Label:
        """The label of a shape that was asked for; one that is written by hand stands for itself."""
        if wanted.is_chain:
            return cls(rule.name, stop=str(wanted.stop) if wanted.stop else None)
        return cls(rule.name, wanted.family)

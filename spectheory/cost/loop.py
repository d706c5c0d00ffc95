"""C2: the time of a decoding loop outside the models' passes."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.checks import BEYOND, amount
from spectheory.drafting import Shape
from spectheory.drafting.tree import a_shape


@dataclass(frozen=True)
class LoopTime:
    r"""Seconds of a decoding loop outside the models' passes: drawing, verifying, moving caches.

    A plain step takes :math:`o_0` (`plain`); a call with d > 0 draft passes and n nodes

    .. math:: o = o_\text{call} + d\, o_\text{pass} + n\, o_\text{node} + [\text{siblings}]\, o_\text{tree}

    and one that copies n tokens from the text (the mean, where they vary) :math:`o_0 + n\,o_\text{node}`, since no
    second model is read. The times depend on the loop and the machine; every engine has its own.

    Examples
    --------
    >>> from spectheory.drafting import Chain, KAry
    >>> loop = LoopTime(plain=0.1, call=0.3, draft_pass=0.1, node=0.01, tree=0.5)
    >>> round(loop.of(Chain(2)), 6), round(loop.of(KAry((2, 1))), 6)
    (0.52, 1.04)
    """

    plain: float
    call: float
    draft_pass: float
    node: float
    tree: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            seconds = amount(f"the loop's {name}", value, below=BEYOND, remedy="measure the loop again, in seconds")
            object.__setattr__(self, name, seconds)

    def of(self, shape: Shape) -> float:
        """Seconds outside the passes of one call."""
        drafted = sum(share * (tokens - 1) for tokens, share in a_shape(shape).verified.items())
        if not shape.passes:
            return self.plain + drafted * self.node
        siblings = shape.nodes > shape.depth
        return self.call + len(shape.passes) * self.draft_pass + drafted * self.node + siblings * self.tree

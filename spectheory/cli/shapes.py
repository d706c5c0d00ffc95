"""Rules and draft shapes as they are written on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.drafting import Batch, Chain, KAry, Tree
from spectheory.errors import SettingError
from spectheory.prediction.shape_calls import BestTree, Wanted
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES, RULES, PathRule, RankRule

_EVERY_SIZE = 16
"""Trees of every size up to this are searched for, then each twice the one before."""
_USUAL = (("race",), ("recursive-distinct", "recursive"), ("topk",))
"""Of each kind the first rule that the trace records."""


def with_ranks(trace: Trace, rules: Sequence[PathRule] | None = None) -> list[PathRule]:
    """Those of `rules` (without: of the usual ones) whose law of several candidates the trace records."""
    if rules is None:
        return [rule for names in _USUAL for rule in with_ranks(trace, [RULES[name] for name in names])[:1]]
    columns = set(trace.columns)
    return [rule for rule in rules if isinstance(rule, RankRule) and {*rule.needs, rule.recorded_in} <= columns]


def read_rules(names: Sequence[str] | None) -> list[PathRule] | None:
    """The rules that the names stand for; None where none is named.

    Raises
    ------
    SettingError
        If a name is no rule.

    Examples
    --------
    >>> [rule.name for rule in read_rules(["race", "lookup", "race"])]
    ['race', 'lookup']
    """
    for name in names or ():
        if name not in PATH_RULES:
            known = ", ".join(PATH_RULES)
            raise SettingError(f"rule {name!r} is unknown", limit=f"there are {known}", remedy="name one")
    return [PATH_RULES[name] for name in dict.fromkeys(names)] if names else None


def tree_sizes(k_max: int) -> list[int]:
    """Numbers of nodes for which trees are searched.

    Examples
    --------
    >>> tree_sizes(40)[-3:]
    [16, 32, 40]
    """
    doubled = [_EVERY_SIZE << i for i in range(1, 32) if _EVERY_SIZE << i < k_max]
    return sorted({*range(1, min(k_max, _EVERY_SIZE) + 1), *doubled, k_max})


def read_shapes(names: Sequence[str], k_max: int) -> list[Wanted]:
    """The shapes that the names stand for, up to `k_max` nodes where a name leaves the size open.

    Raises
    ------
    SettingError
        If a name is no shape.

    Examples
    --------
    >>> [str(shape) for shape in read_shapes(["batch", "2x2", "1,2,1-1"], 2)]
    ['batch k=1', 'batch k=2', 'k-ary 2x2', 'tree 1 2 1-1']
    """
    shapes: list[Wanted] = []
    for name in dict.fromkeys(names):
        shapes += _read(name, k_max)
    return shapes


def _read(name: str, k_max: int) -> list[Wanted]:
    if name == "chain":
        return [Chain(k) for k in range(1, k_max + 1)]
    if name == "batch":
        return [Batch(k) for k in range(1, k_max + 1)]
    if name == "tree":
        return [BestTree(k) for k in tree_sizes(k_max)]
    of_paths = "," in name or "-" in name
    try:
        numbers = [tuple(map(int, part.split("-" if of_paths else "x"))) for part in name.split(",")]
    except ValueError as error:
        raise SettingError(
            f"shape {name!r} is unknown",
            limit="there are chain, batch, tree, k-ary ones as 2x2x1 and paths as 1,2,1-1",
            remedy="name one",
        ) from error
    return [Tree.from_paths(numbers) if of_paths else KAry(numbers[0])]

"""Every setting that `plan_picks.py` tries, and those that it tries again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spectheory.cli.shapes import with_ranks
from spectheory.deployment import Candidate, Ranking
from spectheory.deployment.candidates import DO_NOT
from spectheory.drafting import Chain, KAry, Tree
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.prediction.shape_calls import BestTree, Wanted, calls_by_shape
from spectheory.trace import Trace
from spectheory.verification import RankRule

CHAINS = {
    "token": range(1, 9),
    "block": range(1, 9),
    "race": range(1, 9),
    "argmax": range(1, 5),
    "lookup": (1, 2, 4, 8),
}
K_ARY = tuple(KAry(branching) for branching in ((2, 1), (2, 2), (2, 2, 1), (3, 2, 1), (4, 2, 1, 1)))
SEARCHED = tuple(BestTree(nodes, depth) for nodes in (4, 8, 16) for depth in (2, 3, 4) if depth < nodes)
RANKED, FINALISTS = 5, 6
"""Of the plan's ranking, and of the fastest measured, so many are tried."""


@dataclass(frozen=True)
class Searched(Setting):
    """A setting whose tree was searched for; the search is its name, as a tree's own is long or ambiguous."""

    wanted: Wanted | None = None

    @property
    def name(self) -> str:
        """Rule and search."""
        return f"{self.rule}, {self.wanted}"


def tree_rules(trace: Trace, temperature: float) -> list[RankRule]:
    """Rules that trees are planned for; greedy traces rank no second choices."""
    return [rule for rule in with_ranks(trace) if isinstance(rule, RankRule)] if temperature > 0 else []


def settings_tried(trace: Trace, ranking: Ranking, temperature: float) -> tuple[list[Setting], Setting]:
    """Every setting once, whatever it is called, and the plan's pick among them or plain decoding."""
    every: list[Setting] = [Setting(rule, Chain(k)) for rule, ks in CHAINS.items() for k in ks]
    for rule in tree_rules(trace, temperature):
        every += [Setting(rule.name, shape) for shape in K_ARY]
        every += [Searched(rule.name, one.shape, wanted=one.wanted) for one in calls_by_shape(trace, rule, SEARCHED)]
    ranked = [_setting_of(candidate) for candidate in ranking.candidates[:RANKED]]
    once: dict[tuple[str, Tree], Setting] = {}
    for setting in [*every, *ranked]:
        once.setdefault(_same(setting), setting)
    speculates = ranking.best.verdict != DO_NOT
    return list(once.values()), once[_same(ranked[0])] if speculates else PLAINLY


def _setting_of(candidate: Candidate) -> Setting:
    rule, shape = candidate.prediction.rule.name, candidate.prediction.shape
    return (
        Setting(rule, shape) if isinstance(shape, Chain) else Searched(rule, shape, wanted=candidate.prediction.wanted)
    )


def _same(setting: Setting) -> tuple[str, Tree]:
    """What settings have in common that decode alike."""
    return setting.rule, setting.drafts.tree()


def finalists(measured: Mapping[Setting, float], pick: Setting, most: int = FINALISTS) -> list[Setting]:
    """The settings of the largest speed-ups, the largest first, and the pick if it speculates and is not among them."""
    best = sorted(measured, key=lambda setting: -measured[setting])[:most]
    return best if pick in (PLAINLY, *best) else [*best, pick]

"""Verification rules, one file each (A1, A2, A4, block; §2 and §7 of the theory)."""

from spectheory.verification.base import Columns, PathRule, PositionRule, RankRule, Rule
from spectheory.verification.block import BlockVerification
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch
from spectheory.verification.race import RaceVerification
from spectheory.verification.token import TokenVerification

RULES: dict[str, PathRule] = {
    rule.name: rule
    for rule in (
        TokenVerification(),
        BlockVerification(),
        RaceVerification(),
        IndependentMatch(),
        ArgmaxDraft(),
        GreedyMatch(),
    )
}
"""Every rule with a path form by its name; a new rule's file is listed here and nowhere else."""

__all__ = [
    "RULES",
    "ArgmaxDraft",
    "BlockVerification",
    "Columns",
    "GreedyMatch",
    "IndependentMatch",
    "PathRule",
    "PositionRule",
    "RaceVerification",
    "RankRule",
    "Rule",
    "TokenVerification",
]

"""Verification rules, one file each (A1, A2, A4, block; §2 and §7 of the theory)."""

from spectheory.verification.base import Columns, PositionRule, Rule
from spectheory.verification.block import BlockVerification
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch
from spectheory.verification.race import RaceVerification
from spectheory.verification.token import TokenVerification

RULES: dict[str, Rule] = {
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
"""Every rule by its name; a new rule's file is listed here and nowhere else."""

__all__ = [
    "RULES",
    "ArgmaxDraft",
    "BlockVerification",
    "Columns",
    "GreedyMatch",
    "IndependentMatch",
    "PositionRule",
    "RaceVerification",
    "Rule",
    "TokenVerification",
]

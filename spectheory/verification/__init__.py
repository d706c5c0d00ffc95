"""Verification rules, one file each, and what their ranks say (A, R, block; §2, §3 and §7 of the theory).

Beside the contract of the package: a token that the draft cannot draw is never accepted; given an output that cannot
occur, acceptance is 1 where the draft can draw it. A number of candidates or ranks is a whole number >= 1. A
`tolerance` is the largest width of an interval, in nats, from 1e-11 to 1.
"""

from spectheory.verification.base import Columns, PathRule, PositionRule, RankRule, Rule
from spectheory.verification.biased import BiasedVerification
from spectheory.verification.block import BlockVerification
from spectheory.verification.channel_simulation import RankInformation, entropy_at_least_kl
from spectheory.verification.copied import RecordedMatch
from spectheory.verification.copied_first import CopiedFirst
from spectheory.verification.grown import GrownMatch
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.lookup import LookupMatch
from spectheory.verification.lossy import LossyRule, RelaxedAcceptance, TargetThresholds, TypicalAcceptance
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch, TopKMatch
from spectheory.verification.ngram import NgramMatch
from spectheory.verification.optimal import optimal_acceptance, optimal_acceptances, optimal_rejections
from spectheory.verification.order import RuleStanding, rule_order
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.race import RaceVerification
from spectheory.verification.race_bounds import RaceInequalities, race_enclosure, race_inequalities
from spectheory.verification.rank_entropy import (
    expected_log_rank,
    poisson_rank_entropy,
    poisson_rank_entropy_given,
    poisson_rank_log_bound,
    rank_entropy,
    rank_entropy_bound,
    recursive_rank_entropies,
)
from spectheory.verification.recursive import RecursiveRejection
from spectheory.verification.registry import PATH_RULES, RULES
from spectheory.verification.token import TokenVerification

__all__ = [
    "PATH_RULES",
    "RULES",
    "ArgmaxDraft",
    "BiasedVerification",
    "BlockVerification",
    "Columns",
    "CopiedFirst",
    "GreedyMatch",
    "GrownMatch",
    "GumbelList",
    "IndependentMatch",
    "KSeq",
    "LookupMatch",
    "LossyRule",
    "NgramMatch",
    "PathRule",
    "PoissonRace",
    "PositionRule",
    "RaceInequalities",
    "RaceVerification",
    "RankInformation",
    "RankRule",
    "RecordedMatch",
    "RecursiveRejection",
    "RelaxedAcceptance",
    "Rule",
    "RuleStanding",
    "TargetThresholds",
    "TokenVerification",
    "TopKMatch",
    "TypicalAcceptance",
    "entropy_at_least_kl",
    "expected_log_rank",
    "optimal_acceptance",
    "optimal_acceptances",
    "optimal_rejections",
    "poisson_rank_entropy",
    "poisson_rank_entropy_given",
    "poisson_rank_log_bound",
    "race_enclosure",
    "race_inequalities",
    "rank_entropy",
    "rank_entropy_bound",
    "recursive_rank_entropies",
    "rule_order",
]

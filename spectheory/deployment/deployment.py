"""The whole answer of a plan: which draft, rule and shape to deploy, what it gives, and what to paste.

``spectheory plan`` shows what :func:`plan` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from spectheory.checks import instance
from spectheory.cost import Roofline
from spectheory.deployment.batches import BatchChoice, chain_calls
from spectheory.deployment.break_even import BreakEven, Distance, break_even, distances
from spectheory.deployment.candidates import Candidate, Draft, all_drafts
from spectheory.deployment.engines import EngineSettings, check_one_names_rules, engine_settings, fastest_of_each
from spectheory.deployment.experts import ExpertReading, expert_reading
from spectheory.deployment.load import Load, LoadAnswer, under_load
from spectheory.deployment.lock_step import MOST_TOGETHER, LockStepChoice, lock_step_lengths
from spectheory.deployment.mismatch import mismatches
from spectheory.deployment.next_steps import next_steps
from spectheory.deployment.ranking import Ranking, check_comparable, rank_drafts
from spectheory.drafting import StoppingRule
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError, argument
from spectheory.limits.claims import BY_START, WHOLE_DECODING
from spectheory.prediction.adaptive import adaptive_worth
from spectheory.prediction.answer import AdaptiveWorth, RecordedReading
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.plan_answer import measured_nodes, named_rules, named_stops, ranked_rules, rules_that_stop
from spectheory.prediction.recorded import check_depth
from spectheory.prediction.recorded_readings import recorded_readings
from spectheory.verification import PathRule, RankRule
from spectheory.verification.by_start import within


@dataclass(frozen=True)
class Deployment:
    """A plan: the ranking, what its best setting needs to pay, its limits, and settings for engines.

    `drafts` and `rules` are those that were asked about, `stops` the stopping rules, `k_max` and `nodes` the largest
    chain and tree. `load` is what chains give under a load, for the rule and draft of `chain`, the fastest chain, and
    `lock_step` the best lengths of lock-step batches; None and empty where the costs know one batch alone. `adaptive`
    says of each draft what adaptive lengths are worth. `recorded` are the readings of recorded lengths. `warnings` say
    where costs and traces contradict each other. `reading` is what verifying reads of a target with experts.
    """

    drafts: Sequence[Draft]
    ranking: Ranking
    break_even: BreakEven
    distances: Sequence[Distance]
    chain: Candidate
    load: LoadAnswer | None
    engines: Sequence[EngineSettings]
    k_max: int
    nodes: int
    rules: Sequence[PathRule] | None = None
    stops: Sequence[StoppingRule] = ()
    lock_step: Sequence[LockStepChoice] = ()
    recorded: Sequence[RecordedReading] = ()
    adaptive: Sequence[AdaptiveWorth] = ()
    warnings: Sequence[str] = ()
    reading: ExpertReading | None = None

    @property
    def batches(self) -> Sequence[BatchChoice]:
        """The best lengths by batch and context."""
        return self.load.batches if self.load else ()

    @property
    def leading(self) -> Candidate:
        """The fastest setting that an engine runs, or else the best of all."""
        return next((each.candidate for each in fastest_of_each(self.engines)), self.ranking.best)

    def next_steps(self, trace: str = "TRACE") -> list[str]:
        """What narrows or improves the answer, a sentence each; `trace` is how the trace is written in commands."""
        first = self.leading
        tried = self.k_max if first.kind == "chain" else self.nodes
        return [*next_steps(first.prediction, first.draft.cost, tried=tried, prompts=self.prompts, trace=trace)]

    @property
    def prompts(self) -> int:
        """The least number of prompts that intervals are over."""
        return min(Prompts(draft.trace.texts).count for draft in self.drafts)


def plan(
    drafts: Sequence[Draft],
    *,
    rules: PathRule | str | Iterable[PathRule | str] | None = None,
    stops: Sequence[StoppingRule | str] = (),
    k_max: int = 16,
    nodes: int = 32,
    passes_alone: bool = False,
    load: Load | None = None,
    engines: Sequence[str] | None = None,
) -> Deployment:
    """Rank drafts by speed-up with every rule and shape, and say what to deploy.

    `rules` are rules or their names, one or a list; without, the default ones, and with ``all`` every lossless one that
    the traces know. Chains have up to `k_max` drafts, trees up to `nodes`
    nodes. Speed-ups count the measured time of the loop around the passes, unless `passes_alone`. `stops` are stopping
    rules, or as they are written, to compare with fixed lengths; with ``best`` all thresholds are swept. A `load` is
    planned for where the costs are a roofline: batches, contexts, lengths of requests, and targets on their times.
    Settings are for `engines`, names, or for every one.

    Raises
    ------
    SettingError
        Drafts that cannot be compared, or settings out of range.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> plan([Draft("small", trace, ConstantRatio(0.05))], k_max=8).ranking.best.setting
    'draft small, token verification, k = 8'
    """
    drafts = all_drafts(drafts)
    named = named_rules(rules, [draft.trace for draft in drafts])
    check_comparable(drafts)
    check_one_names_rules(rules, engines)
    stopping, swept = named_stops(stops)
    instance("passes_alone", passes_alone, bool, remedy="leave it out")
    k_max, nodes = at_least_one("k_max", k_max), at_least_one("nodes", nodes)
    load = instance("load", Load() if load is None else load, Load, remedy="spectheory.deployment.Load() is one")
    for draft in drafts:
        check_depth(draft.trace, k_max)
        if stopping or swept:
            rules_that_stop(draft.trace, named, stopping)
    timed = drafts if passes_alone else [draft.in_loop for draft in drafts]
    trees = _tree_rules(drafts, named) if nodes > 1 else []
    ranking = rank_drafts(timed, rules=named, tree_rules=trees, stops=stopping, k_max=k_max, nodes=nodes)
    best = ranking.best
    chain = next(c for c in ranking.candidates if c.kind == "chain" and not c.prediction.shape.stop)
    fixed = chain if best.prediction.shape.stop else best
    loaded = _loaded(chain, k_max, load)
    fits = loaded is None or loaded.fits
    return Deployment(
        drafts=drafts,
        ranking=ranking,
        break_even=break_even(fixed.prediction, fixed.draft.cost, k_max),
        distances=_distances(best, chain),
        chain=chain,
        load=loaded,
        lock_step=_lock_step(chain, k_max, loaded.batches) if loaded else (),
        engines=engine_settings(timed, stops=stopping, k_max=k_max, nodes=nodes, engines=engines) if fits else (),
        k_max=k_max,
        nodes=nodes,
        rules=named,
        stops=stopping,
        recorded=[reading for draft in drafts for reading in recorded_readings(draft.trace, k_max)],
        adaptive=[_swept(draft, ranking, k_max) for draft in timed] if swept else [],
        warnings=list(dict.fromkeys(said for draft in drafts for said in mismatches(draft, load.longest))),
        reading=expert_reading(fixed.draft.cost, fixed.prediction.shape.nodes + 1),
    )


def _distances(best: Candidate, chain: Candidate) -> list[Distance]:
    """Limits of the best setting; for a tree also the limit of the fastest chain's decoding, as it is about chains."""
    of_chain = [] if best.kind == "chain" else distances(chain.prediction)
    asides = [
        replace(d, limit=replace(d.limit, name=f"{d.limit.name}, {chain.shape}"), binds=False)
        for d in of_chain
        if d.limit in (WHOLE_DECODING, BY_START)
    ]
    return [*distances(best.prediction), *asides]


def _loaded(chain: Candidate, k_max: int, load: Load) -> LoadAnswer | None:
    """What chains give under a load, where costs know batches."""
    trace, cost, rule = chain.draft.trace, chain.draft.cost, chain.prediction.rule
    if isinstance(cost, Roofline):
        return under_load(chain_calls(trace, rule, k_max), cost, load)
    if load.targeted or load.output_tokens is not None:
        raise SettingError(
            "times of requests are asked for without a roofline",
            limit="other costs are of one batch, and have no prompts",
            remedy=f"use {argument('a spectheory.cost.Roofline', '--hardware')}",
        )
    return None


def _lock_step(chain: Candidate, k_max: int, choices: Sequence[BatchChoice]) -> list[LockStepChoice]:
    """Lock-step batches of the same sizes, as far as they are planned."""
    cost, batches = chain.draft.cost, sorted({choice.batch for choice in choices if choice.batch <= MOST_TOGETHER})
    assert isinstance(cost, Roofline)
    if not batches:
        return []
    contexts, ks = sorted({choice.context for choice in choices}), range(1, k_max + 1)
    return lock_step_lengths(chain.draft.trace, chain.prediction.rule, cost, ks=ks, batches=batches, contexts=contexts)


def _tree_rules(drafts: Sequence[Draft], rules: Sequence[PathRule] | None) -> list[RankRule]:
    """Rules whose ranks every trace records; greedy traces rank no second choices."""
    if any(draft.fact("settings", "sampling", "temperature") == 0 for draft in drafts):
        return []
    known = [ranked_rules(draft.trace, rules) for draft in drafts]
    return [rule for rule in known[0] if all(rule in others for others in known)]


def _swept(draft: Draft, ranking: Ranking, k_max: int) -> AdaptiveWorth:
    """What adaptive lengths are worth for a draft, with the rule of its fastest chain."""
    chains = (c for c in ranking.candidates if c.draft.name == draft.name and c.kind == "chain")
    rule = next(c.prediction.rule for c in chains)
    longest = measured_nodes(draft.cost, within(draft.trace.columns, k_max))
    return replace(adaptive_worth(draft.trace, rule, longest, draft.cost), draft=draft.name)

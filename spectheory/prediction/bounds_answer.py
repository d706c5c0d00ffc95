"""The whole answer about limits: from moments, pmfs, ranks, a trace, or before there is a draft.

``spectheory bounds`` shows what :func:`bounds` returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from spectheory.checks import amount, in_range, located, one_source, real, several, whole
from spectheory.cost.iid import Needed, checked_length, draft_needed
from spectheory.distributions import Floats, letters, pmf_rows, rank_law
from spectheory.drafting import Chain, expected_tokens, optimal_tree
from spectheory.errors import SettingError, TraceError, argument
from spectheory.intervals import Interval
from spectheory.limits import (
    StepLaw,
    acceptance_at_least,
    branching_bound,
    first_choice_at_least,
    first_choice_at_most,
    least_tokens_per_call,
    race_acceptance_at_least,
    random_tree_value,
    renewal_bound,
    stationary_tree_value,
    tunstall_bound,
)
from spectheory.limits.claims import (
    BOUNDED,
    BRANCHING_FORMS,
    IID_CHANNEL,
    ONE_CALL,
    RANK_TREES,
    TEXT,
    LimitClaim,
    several_chains,
)
from spectheory.limits.text import MOST_WALK
from spectheory.prediction.means import MeanLaws
from spectheory.prediction.over_prompts import Prompts, few_prompts
from spectheory.prediction.remarks import origin, sampled_choices
from spectheory.prediction.text_limit import TextLimit, one_call_bound
from spectheory.prediction.trace_limits import Limits
from spectheory.trace import GIVEN_TEXT, RECORDED_RANKS, Trace
from spectheory.trace.importers.logprobs import read_target
from spectheory.trace.reading import given_trace
from spectheory.verification import Columns, RankRule, rank_entropy
from spectheory.verification.registry import all_rules

Cells = dict[str, Interval | float | None]

_DEFAULT_NODES = (1, 8, 64)
"""Numbers of draft nodes where none are named."""
DETERMINISTIC = "Drafts that do not sample: tokens per call"
SAMPLED = "Drafted chains (1 call), rank trees (T1): tokens per call"
RANKS = "Rank trees: tokens per call"
"""Titles of tables."""
CLOSED_FORMS: tuple[Literal["published", "lorden", "best_t", "sharp"], ...] = ("published", "lorden", "best_t", "sharp")
MOST_NODES, _MOST_CHAINS, _MOST_TREES = 1_000_000, 1_000, 100_000
_LENGTHS = range(1, 9)
"""Chains whose tokens per call two entropies assure, where no k is asked for."""
_MOST_TREE_WORK = 1 << 31
"""Probabilities sorted for random trees: a few minutes."""
_MOST_TREE_NODES = 100_000
"""Nodes of a rank tree: a chain of these takes seconds."""
_NO_ENTROPIES = "The trace has no entropies: the closed forms need full pmfs."
_ALONE = "it has no meaning alone", "give both"
_ABOVE = {
    "draft_nats": ("target_nats", *_ALONE),
    "vocabulary": ("target_nats", *_ALONE),
    "c": ("need", *_ALONE),
    "k": ("need or draft_nats", "it is of chains, of which these say something", "give one of them"),
    "need": ("c", "the speed-up depends on the cost of drafts", "give both"),
    "trees": ("target_pmf", "random trees need pmfs", "leave it out"),
    "chains": (
        "trace",
        "the bound needs both models' log-probabilities along texts",
        "give a trace, or use spectheory.limits.several_chains_bound with pmfs",
    ),
}
"""What says nothing without another, why, and the remedy."""


@dataclass(frozen=True)
class BoundsAnswer:
    """Limits for several numbers of nodes, tokens per call with the recovered or bonus token.

    `source` is ``moments``, ``pmfs``, ``trace``, ``target`` or ``ranks``, and `facts` say what the limits were computed
    from. `tables` have claims by key under titles; `rows` have values by nodes and key, None where there is none.
    """

    source: str
    facts: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, LimitClaim]]
    rows: Mapping[int, Mapping[str, Interval | float | None]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Assured:
    """Tokens per call of chains of k drafts at least (A1, C6), by token or block verification and by the race (A3)."""

    k: int
    tokens_per_call: float
    race: float


@dataclass(frozen=True)
class EarlyAnswer:
    """Entropies in nats as far as they are known, and what a speed-up `need` with drafts of cost `c` needs.

    `assured` are tokens per call that drafts with these entropies have at least, for chains of some k.
    """

    target_nats: float | None = None
    draft_nats: float | None = None
    vocabulary: int | None = None
    need: float | None = None
    c: float | None = None
    needed: Sequence[Needed] = ()
    assured: Sequence[_Assured] = ()

    @property
    def divergence(self) -> float | None:
        """Mean KL of the draft."""
        known = self.target_nats is not None and self.draft_nats is not None
        return self.draft_nats - self.target_nats if known else None  # type: ignore[operator]

    @property
    def least(self) -> Needed | None:
        """The length that needs the least acceptance."""
        return min(self.needed, key=lambda each: each.acceptance, default=None)

    def readings(self) -> Iterator[tuple[str, str, float, str]]:
        """Key, meaning, value and side of what entropies say."""
        if (divergence := self.divergence) is not None:
            yield "divergence", "KL of the draft, nats", divergence, "exact for these means"
            yield "acceptance", "acceptance, token verification", acceptance_at_least(divergence), "lower bound"
            yield "race_acceptance", "acceptance, race", race_acceptance_at_least(divergence), "lower bound"
        if self.target_nats is not None:
            least = first_choice_at_least(self.target_nats)
            yield "first_choice_least", "target's first choice is its output", least, "lower bound"
            if self.vocabulary is not None:
                most = first_choice_at_most(self.target_nats, self.vocabulary)
                yield "first_choice_most", "any one draft that is not sampled is accepted", most, "upper bound"


def bounds(
    trace: Trace | str | Path | None = None,
    *,
    mu: float | None = None,
    mu2: float | None = None,
    target_pmf: Any = None,
    rank_pmf: Any = None,
    target_logprobs: str | Path | Iterable[Any] | None = None,
    target_nats: float | None = None,
    draft_nats: float | None = None,
    vocabulary: int | None = None,
    need: float | None = None,
    c: float | None = None,
    k: Iterable[int] | None = None,
    nodes: int | Iterable[int] | None = None,
    chains: int | Iterable[int] | None = None,
    trees: int | None = None,
    seed: int = 0,
) -> BoundsAnswer | EarlyAnswer:
    """Upper bounds on tokens per call for each number of draft `nodes`, from one of these sources.

    - `trace`, a trace or its file: B6 and the bounds on one call of text that the target sampled, with `chains` i.i.d.
      chains of drafts too, and idealised values of the i.i.d. forms.
    - `mu` and `mu2`, the means of H(p) and of sum p log^2 p in nats: B1, B2, B2'.
    - `target_pmf`, pmfs ``[V]`` or ``[n, V]``: these and B3', with the value of the best tree for one pmf, or of
      `trees` random trees drawn from several with `seed`.
    - `rank_pmf`, P(R = r) ``[A]``: T1 beside the chain and the best tree.
    - `target_logprobs`, a file or lists of log-probabilities, one for each text that the target sampled: B6 and B3' of
      every draft that does not sample.
    - `target_nats` and perhaps `draft_nats`, mean cross-entropies on text of the target, and its `vocabulary`: bounds
      on acceptance (A1, A4), and the least tokens per call of chains of `k` drafts (C6). `need`, a speed-up, with draft
      steps of `c` target steps: the acceptance that chains of `k` drafts need. These are of no number of nodes: an
      :class:`EarlyAnswer`.

    Raises
    ------
    SettingError
        No source, several of them, or a setting out of range or without meaning beside the source.
    PmfError, TraceError, TextError
        Pmfs that are none, a trace or a file that cannot be used.

    Examples
    --------
    >>> answer = bounds(mu=1.7, mu2=5.0, nodes=[1, 8])
    >>> round(answer.rows[8]["sharp"], 3), answer.tables["Drafts that do not sample: tokens per call"]["sharp"].what
    (3.255, "B2', the tightest form of the two moments")
    >>> bounds(need=2.0, c=0.1).least.k, round(bounds(target_nats=1.9, draft_nats=2.0).assured[3].tokens_per_call, 3)
    (4, 2.639)
    """
    given = {name for name, value in locals().items() if value is not None}
    seed = whole(argument("seed"), seed, least=0, remedy="0 is the default")
    sizes = sorted(set(in_range(argument("nodes"), _DEFAULT_NODES if nodes is None else nodes, MOST_NODES)))
    several_of = sorted(set(in_range(argument("chains"), chains, _MOST_CHAINS)))
    _check_together(given)
    if trace is not None:
        return _of_trace(given_trace(trace), sizes, [number for number in several_of if number > 1])
    if target_pmf is not None:
        return _of_pmfs(*pmf_rows(target_pmf, argument("target_pmf")), sizes, trees, seed)
    if rank_pmf is not None:
        return _of_ranks(rank_law(rank_pmf, argument("rank_pmf")), sizes)
    if target_logprobs is not None:
        return _of_target_scores(target_logprobs, sizes)
    if target_nats is None and need is None:
        return _of_moments(mu, mu2, sizes)
    return _before_a_draft(target_nats, draft_nats, vocabulary, need, c, k)


def _check_together(given: Set[str]) -> None:
    """Refuse no source, several of them, and arguments that say nothing beside the source."""
    for name, (above, limit, remedy) in _ABOVE.items():
        if name in given and not given & set(above.split(" or ")):
            missing = "a trace" if above == "trace" else " or ".join(map(argument, above.split(" or ")))
            raise SettingError(f"{argument(name)} is given without {missing}", limit=limit, remedy=remedy)
    early = bool(given & {"target_nats", "need"})
    one_source(
        {
            "a trace": "trace" in given,
            f"{argument('mu')} with {argument('mu2')}": bool(given & {"mu", "mu2"}),
            **{argument(name): name in given for name in ("target_pmf", "rank_pmf", "target_logprobs")},
            f"{argument('target_nats')} or {argument('need')}": early,
        }
    )
    if early and "nodes" in given:
        raise SettingError(
            f"{argument('nodes')} is given with entropies or a speed-up",
            limit="these bounds are for single tokens and chains",
            remedy=f"give {argument('mu')} with {argument('mu2')}, or {argument('target_logprobs')}",
        )


# Before there is a draft


def _before_a_draft(
    target: float | None,
    draft: float | None,
    vocabulary: int | None,
    need: float | None,
    c: float | None,
    k: Iterable[int] | None,
) -> EarlyAnswer:
    """What entropies say of acceptance, and what a speed-up needs."""
    for name, value in (("target_nats", target), ("draft_nats", draft)):
        if value is not None:
            amount(argument(name), value, remedy="give a mean in nats")
    if target is not None and draft is not None and draft < target:
        raise SettingError(
            f"{argument('draft_nats')} is {draft:g}, below {argument('target_nats')} {target:g}",
            limit="on text sampled from the target no model has a lower mean cross-entropy than the target",
            remedy="score more text that the target sampled, or give both models' scores to "
            + argument("spectheory.Trace.from_log_probabilities", "predict --logprobs"),
        )
    ks = sorted(
        {checked_length(each) for each in several(argument("k"), () if k is None else k, remedy="name lengths")}
    )
    needed = draft_needed(need, c, *([ks] if ks else [])) if need is not None and c is not None else []
    assured = []
    if target is not None and draft is not None:
        rates = acceptance_at_least(draft - target), race_acceptance_at_least(draft - target)
        assured = [_Assured(each, *(least_tokens_per_call(rate, each) for rate in rates)) for each in ks or _LENGTHS]
    answer = EarlyAnswer(target, draft, vocabulary, need, c, needed, assured)
    list(answer.readings())  # refuses a vocabulary that has no such entropy
    return answer


def _of_target_scores(source: str | Path | Iterable[Any], nodes: list[int]) -> BoundsAnswer:
    """B6 and numeric of text that the target sampled: the limit of every draft that does not sample, perfect or not."""
    if isinstance(source, str | Path):
        trace = read_target(located(source))
    else:
        texts = several(argument("target_logprobs"), source, remedy="name a file, or a list for each text")
        trace = Trace.from_log_probabilities([(text, text) for text in texts])
    answer = _of_trace(trace, nodes)
    surprisal = -float(np.mean(trace.columns["log_target"]))
    kept = {key: answer.tables[DETERMINISTIC][key] for key in ("text", "numeric")}
    rows = {capacity: {key: row[key] for key in kept} for capacity, row in answer.rows.items()}
    notes = [note for note in answer.notes if note != _NO_ENTROPIES]
    facts = {**answer.facts, "nats_per_token": surprisal}
    return replace(answer, source="target", facts=facts, tables={DETERMINISTIC: kept}, rows=rows, notes=notes)


# Where conditional pmfs, or ranks, are i.i.d.


def _closed_forms(mu: float, mu2: float, capacity: int) -> Cells:
    """Tokens per call by the closed forms (B1, B2, B2')."""
    return {form: branching_bound(mu, mu2, capacity, form) + 1 for form in CLOSED_FORMS}


def _of_moments(mu: float | None, mu2: float | None, nodes: Iterable[int]) -> BoundsAnswer:
    """The closed forms from the two moments."""
    if mu is None or mu2 is None:
        raise SettingError(
            f"{argument('mu2' if mu2 is None else 'mu')} is missing",
            limit="both moments are needed",
            remedy="give both",
        )
    mu, mu2 = (
        real(name, value, math.isfinite, limit="must be finite", remedy="give it in nats")
        for name, value in (("mu", mu), ("mu2", mu2))
    )
    columns: dict[str, LimitClaim] = {form: BRANCHING_FORMS[form] for form in CLOSED_FORMS}
    rows = {capacity: _closed_forms(mu, mu2, capacity) for capacity in nodes}
    return BoundsAnswer("moments", {"mu": mu, "mu2": mu2}, {DETERMINISTIC: columns}, rows)


def _of_pmfs(pmfs: Floats, notes: list[str], nodes: list[int], trees: int | None, seed: int) -> BoundsAnswer:
    """Every form from the exact law of a step, and the value that they bound."""
    law = StepLaw.from_pmfs(pmfs)
    mu, mu2 = law.mean, max(law.second_moment, law.mean**2)
    value = _value_column(pmfs, nodes, trees)
    columns = {**BRANCHING_FORMS, "best_tree": value} if value else BRANCHING_FORMS
    rows: dict[int, Cells] = {}
    error = 0.0
    for capacity in nodes:
        numeric, sharp = renewal_bound(law, capacity) + 1, branching_bound(None, None, capacity, step_law=law) + 1
        # B3' with its numerical error, cut at the closed form, which it exceeds by its grid at most.
        low, best, high = (min(end, sharp) for end in (numeric.low, numeric.best, numeric.high))
        numeric = Interval(low, best, high, numeric.kind)
        error = max(error, numeric.high - numeric.low)
        rows[capacity] = {**_closed_forms(mu, mu2, capacity), "numeric": numeric}
        if value:
            rows[capacity]["best_tree"] = _tree_value(pmfs, capacity, trees, seed) + 1
    notes = [*notes, f"numeric is certain; its numerical error is at most {error:.2g}."]
    if len(pmfs) > 1:
        notes.append(f"The {len(pmfs)} pmfs count as all there are, equally likely at every prefix.")
    facts = {"mu": mu, "mu2": mu2, "pmfs": len(pmfs)}
    return BoundsAnswer("pmfs", facts, {DETERMINISTIC: columns}, rows, notes)


def _value_column(rows: Floats, nodes: list[int], trees: int | None) -> LimitClaim | None:
    in_range(argument("trees"), trees, _MOST_TREES)
    if len(rows) == 1:
        return LimitClaim("best_tree", "best tree", "exact for this one pmf at every prefix", BOUNDED)
    if trees is None:
        return None
    if sum(nodes) * rows.shape[1] * trees > _MOST_TREE_WORK:
        raise SettingError(
            f"{argument('trees')} is {trees}, with {sum(nodes)} nodes of {rows.shape[1]} tokens",
            limit="that would take many minutes",
            remedy="ask for fewer trees or nodes",
        )
    return LimitClaim("best_tree", "best tree", f"{trees} random trees grown best-first, estimate, 95%", BOUNDED)


def _tree_value(rows: Floats, capacity: int, trees: int | None, seed: int) -> Interval:
    """E[X] of the best tree, bonus token left out."""
    if len(rows) == 1 or trees is None:
        return Interval.exact(stationary_tree_value(rows[0], capacity))

    def sample(rng: np.random.Generator, count: int) -> Floats:
        return rows[rng.integers(len(rows), size=count)]

    return random_tree_value(sample, capacity, trees, rng=seed)


def _of_ranks(law: Floats, nodes: Iterable[int]) -> BoundsAnswer:
    """T1 beside what it bounds, for ranks i.i.d. along the text."""
    entropy, alphabet = float(rank_entropy(law)), letters(law)
    rows: dict[int, Cells] = {}
    for capacity in nodes:
        in_range(argument("nodes"), capacity, _MOST_TREE_NODES)
        rows[capacity] = {
            "chain": float(expected_tokens(Chain(capacity), law)),
            "optimal_tree": float(expected_tokens(optimal_tree(law, capacity), law)),
            "channel": tunstall_bound(entropy, alphabet, capacity),
        }
    facts = {"rank_entropy": entropy, "letters": alphabet}
    note = "Ranks beyond those given are one letter that is never drafted."
    return BoundsAnswer("ranks", facts, {RANKS: RANK_TREES}, rows, [note])


# Along the texts of a trace


def _of_trace(trace: Trace, nodes: list[int], chains: Sequence[int] = ()) -> BoundsAnswer:
    """B6 and the bounds on one call of target-sampled text, and the idealised values of the i.i.d. forms.

    `chains` are numbers of i.i.d. chains of drafts, each with a bound of its own beside that of one chain.
    """
    trace.require_scores("a limit")
    every = [rule for rule in all_rules().values() if isinstance(rule, RankRule)]
    narrow = [rule for rule in every if rule.known_ranks(trace.columns, 2) < 2]
    ranked = [rule for rule in every if rule not in narrow and _records(rule, trace.columns)]
    measured, notes = _measured(trace, nodes, chains)
    notes += [f"No T1 {rule.name}: {rule.recorded_in} records one rank alone, and T1 needs two." for rule in narrow]
    moments, law, laws = _moments(trace), _sampled_steps(trace), MeanLaws(trace)
    rows: dict[int, Cells] = {}
    for capacity in nodes:
        of_size = measured.get(capacity, {})
        rows[capacity] = {
            "text": of_size.get("text"),
            **(_closed_forms(*moments, capacity) if moments else dict.fromkeys(CLOSED_FORMS, None)),
            "numeric": renewal_bound(law, capacity) + 1 if law else None,
            "one_call": of_size.get("one_call"),
            **{f"chains_{k}": of_size.get(f"chains_{k}") for k in chains},
            **{f"channel_{rule.name}": Limits().of(rule, Chain(capacity), laws).iid_channel for rule in ranked},
        }
    facts: dict[str, object] = {"texts": len(trace.texts), "positions": len(trace)}
    if moments:
        facts |= {"mu": moments[0], "mu2": moments[1]}
    else:
        notes.append(_NO_ENTROPIES)
    return BoundsAnswer("trace", facts, _tables(ranked, trace.columns, chains), rows, notes)


def _tables(ranked: Iterable[RankRule], columns: Columns, chains: Sequence[int]) -> dict[str, Mapping[str, LimitClaim]]:
    channels = {
        f"channel_{rule.name}": IID_CHANNEL.idealised(
            name=f"T1 {rule.name}", what=f"trees on its ranks up to {rule.known_ranks(columns, RECORDED_RANKS)}"
        )
        for rule in ranked
    }
    forms = {key: form.idealised() for key, form in BRANCHING_FORMS.items()}
    forms["numeric"] = forms["numeric"].idealised(what="B3' from the surprisals of the text, estimate, 95%")
    of_call = {claim.key: claim for claim in (ONE_CALL, *(several_chains(k) for k in chains))}
    return {DETERMINISTIC: {TEXT.key: TEXT, **forms}, SAMPLED: {**of_call, **channels}}


def _measured(trace: Trace, nodes: list[int], chains: Sequence[int]) -> tuple[dict[int, Cells], list[str]]:
    """B6 and the bounds on one call for the sizes that texts have room for, and why others are missing."""
    if trace.provenance.get("origin") == GIVEN_TEXT:
        return {}, ["The text was given, not sampled from the target: no B6, 1 call or numeric, which need samples."]
    longest, notes = int(trace.lengths.max()), origin(trace.provenance)
    served = [k for k in nodes if k <= longest and k * len(trace) <= MOST_WALK]
    if len(served) < len(nodes):
        notes.append(f"B6 and 1 call need P tokens after a start, and memory: the longest text has {longest} tokens.")
    if not served:
        return {}, notes
    prompts = Prompts(trace.texts)
    text = TextLimit(prompts, trace, served)
    calls = {number: one_call_bound(prompts, trace, served, chains=number) for number in (1, *chains)}
    keys = {1: ONE_CALL.key, **{number: several_chains(number).key for number in chains}}
    cells: dict[int, Cells] = {
        k: {TEXT.key: text.at(k), **{keys[number]: calls[number].get(k) for number in calls}} for k in served
    }
    return cells, [*notes, *sampled_choices(prompts.chosen_on), *few_prompts(prompts.count)]


def _records(rule: RankRule, columns: Columns) -> bool:
    """Whether the law of several ranks is known, which T1 needs."""
    try:
        rule.require(columns)
        rule.rank_law(columns, 2)
    except TraceError:
        return False
    return True


def _moments(trace: Trace) -> tuple[float, float] | None:
    if not {"target_entropy", "target_second_moment"} <= set(trace.columns):
        return None
    mu, mu2 = (float(trace.columns[name].mean()) for name in ("target_entropy", "target_second_moment"))
    return mu, max(mu2, mu * mu)


def _sampled_steps(trace: Trace) -> StepLaw | None:
    """The law of a step from the text's own tokens, the texts of one prompt one draw; none if they are no samples."""
    if trace.provenance.get("origin") == GIVEN_TEXT:
        return None
    prompts = Prompts(trace.texts).of_text
    surprisals = np.split(-trace.columns["log_target"], np.cumsum(trace.lengths)[:-1])
    groups: dict[int, list[np.ndarray]] = {}
    for prompt, text in zip(prompts.tolist(), surprisals, strict=True):
        groups.setdefault(prompt, []).append(text)
    return StepLaw.from_surprisals([np.concatenate(group) for group in groups.values()])

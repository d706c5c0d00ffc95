"""The library's path predictions against the exact ones: from pmfs to columns, survivals, calls and predictions.

Every text of a random pair of models is one text of a trace, whose columns the library itself works out from the pmfs.
"""

from __future__ import annotations

from proofs_check.agreement.path_cases import (
    CHAINS,
    RANKED,
    TREES,
    PathTwin,
    RankTwin,
    SurvivalOf,
    chain,
    constant,
    survival_by_tree,
)
from proofs_check.algorithms.enumeration import output_law
from proofs_check.algorithms.tree_enumeration import Tree
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival, accepted_law, all_calls_law, calls, full_acceptances
from proofs_check.twins.tree_theorem import depth, leaf_calls, rank_laws, visits
from spectheory import Trace, drafting, hockey_stick, plan, predict
from spectheory.prediction import Prediction
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.paths import (
    PathLaws,
    TextCalls,
    calls_and_visits,
    calls_of_chains,
    calls_of_texts,
    calls_of_tree,
    tree_survival,
)
from spectheory.prediction.shape_calls import calls_by_shape, takes
from spectheory.prediction.text_limit import call_terms, one_call_bound
from spectheory.trace import DISTINCT_RANKS, RECORDED_RANKS, TextInfo
from spectheory.verification import RULES, PositionRule, RaceVerification, RankRule, RecursiveRejection

Floats = NDArray[np.float64]

CHECKED = {name: rule for name, rule in RULES.items() if name in CHAINS}
"""The library's rules that have an algorithm in fractions; a test holds that every rule of its own has one."""

RANK_RULES = {name: rule for name, rule in CHECKED.items() if isinstance(rule, RankRule)}
"""Those with ranks."""


def all_calls(twins: Mapping[str, PathTwin], target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's; given all of it, the accepted drafts of all calls are independent with §7's laws."""
    for twin in twins.values():
        source, q = twin.target(target.__getitem__), draft.__getitem__
        law = Decoding(twin.algorithm, k, length).law(source, q)
        texts = text_law(source, length)
        yield equal(output_law(law), texts)
        for text in texts:
            survival = twin.survival(target.__getitem__, q, text)
            yield equal(given_text(law, text), all_calls_law(survival, k, length))


@dataclass(frozen=True)
class Texts:
    """All texts of a length that a target can say, with both models along them."""

    target: Table
    draft: Table
    length: int

    @property
    def all(self) -> list[Prefix]:
        """The texts, in order."""
        return list(text_law(self.target.__getitem__, self.length))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each."""
        return np.full(len(self.all), self.length)

    def survivals(self, of: SurvivalOf) -> list[Survival]:
        """The exact survival of each text."""
        return [of(self.target.__getitem__, self.draft.__getitem__, text) for text in self.all]

    def trace(self) -> Trace:
        """A trace of the texts, its columns worked out by the library from the pmfs."""
        rows = [(self.target[text[:n]], self.draft[text[:n]], text[n]) for text in self.all for n in range(self.length)]
        return Trace(columns_of(rows), tuple(TextInfo(str(number), self.length) for number in range(len(self.all))))


def columns_of(rows: Sequence[tuple[Pmf, Pmf, int]]) -> dict[str, NDArray[Any]]:
    """The columns that the library works out from target pmf, draft pmf and token of each row."""
    p, q = np.stack([floats(p) for p, _, _ in rows]), np.stack([floats(q) for _, q, _ in rows])
    x = np.array([token for _, _, token in rows])
    own_p, own_q = (pmf[np.arange(len(x)), x] for pmf in (p, q))
    with np.errstate(divide="ignore"):
        log_draft = np.log(own_q)
    in_support = own_q > 0
    ratio = own_p / np.where(in_support, own_q, 1.0)
    return {
        "log_target": np.log(own_p),
        "log_draft": log_draft,
        "race_g": np.where(in_support, hockey_stick(p, q, ratio), math.inf),
        "draft_rank": np.argsort(np.argsort(-q, axis=1, kind="stable"), axis=1)[np.arange(len(x)), x] + 1,
        "greedy_agreement": p.argmax(axis=1) == q.argmax(axis=1),
        "race_rank": RaceVerification().rank_pmf_given(p, q, x, RECORDED_RANKS),
        "rejection_rank": RecursiveRejection().rank_pmf_given(p, q, x, RECORDED_RANKS),
        "distinct_rank": RecursiveRejection(replacement=False).rank_pmf_given(p, q, x, DISTINCT_RANKS),
    }


def library_tree(tree: Tree) -> drafting.Tree:
    """The tree as the library writes it."""
    return drafting.Tree.from_paths(sorted(tree))


def at_every_start(computed_rows: Any, exact: Sequence[Survival], k: int, length: int) -> Iterator[Compared]:
    """The library's survivals (or terms), a row for every start of every text, and the exact ones of each text."""
    for (number, survival), n in product(enumerate(exact), range(length)):
        for i in range(1, min(k, length - n) + 1):
            yield computed(computed_rows[number * length + n, i - 1], survival(n, i))


def survivals(
    stated: Callable[[str], SurvivalOf], target: Table, draft: Table, k: int, length: int
) -> Iterator[Compared]:
    """Every rule of the library: a(x), the law of the rank, and the survival at every start and depth of every text."""
    texts = Texts(target, draft, length)
    columns = texts.trace().columns
    for name, rule in CHECKED.items():
        rule.require(columns)
        survival_of = rule.path_survival(columns, k)
        first = rule.accepted_at(columns) if isinstance(rule, PositionRule) else survival_of[:, 0]
        given = [
            rule.acceptance_given(floats(target[text[:n]]), floats(draft[text[:n]]))[text[n]]
            for text in texts.all
            for n in range(length)
        ]
        for number, survival in enumerate(texts.survivals(stated(name))):
            for n in range(length):
                yield computed(first[number * length + n], survival(n, 1))
                yield computed(given[number * length + n], survival(n, 1))
        yield from at_every_start(survival_of, texts.survivals(stated(name)), k, length)


def rank_columns(
    twins: Mapping[str, RankTwin], target: Table, draft: Table, length: int, **_: int
) -> Iterator[Compared]:
    """The rank law of every rule that has one, and the acceptance of k candidates it adds up to, at every position."""
    texts, most = Texts(target, draft, length), 2
    columns = texts.trace().columns
    for name, twin in twins.items():
        rule = RANK_RULES[name]
        computed_laws = rule.rank_law(columns, min(most, rule.known_ranks(columns, most)))
        for number, text in enumerate(texts.all):
            laws = rank_laws(twin.given, target.__getitem__, draft.__getitem__, text, most)
            for n, law in enumerate(laws):
                for share, exact in zip(computed_laws[number * length + n], law, strict=True):
                    yield computed(share, exact)
        p, q = target[()], draft[()]
        laws = [twin.given(p, q, x, most) if p[x] else [Fraction(0)] * most for x in range(len(p))]
        mean = total(p[x] * sum(law) for x, law in enumerate(laws))
        yield computed(rule.acceptance(floats(p), floats(q), most), mean)


def counted(recursion: Callable[..., Any], target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Calls of chains and trees: mean, variance, full acceptances, a prefill, calls left and starts."""
    texts = Texts(target, draft, length)
    columns, lengths = texts.trace().columns, texts.lengths
    for name in ("token", "block", "race", "topk"):
        path_survival = RULES[name].path_survival(columns, k)
        several = calls_of_chains(path_survival, lengths, range(1, k + 1), variance=True)
        exact = texts.survivals(CHAINS[name].survival)
        for drafts in range(1, k + 1):
            full = [full_acceptances(survival, drafts, length) for survival in exact]
            yield from _moments(several[drafts], recursion, exact, drafts, length, full)
        prefilled = calls_of_texts(path_survival, lengths, prefill_emits_token=True)
        yield from _moments(prefilled, recursion, exact, k, length, prefill=True)
        left, started = (value.reshape(-1, length) for value in calls_and_visits(path_survival, lengths))
        for number, survival in enumerate(exact):
            for n, share in enumerate(visits(survival, k, length)):
                yield computed(started[number, n], share)
            yield computed(left[number, 0], recursion(survival, k, length)[0])
    for name, twin in RANKED.items():
        for tree in TREES[1:3]:
            law = RANK_RULES[name].rank_law(columns, 2)
            tree_moments = calls_of_tree(*tree_survival(law, library_tree(tree)), lengths, variance=True)
            at_leaf = [
                leaf_calls(rank_laws(twin.given, target.__getitem__, draft.__getitem__, text, 2), tree, length)
                for text in texts.all
            ]
            exact = texts.survivals(survival_by_tree(twin.given, tree))
            yield from _moments(tree_moments, recursion, exact, depth(tree), length, at_leaf)
    weights, shares = (floats(target[()]), floats(draft[()]))
    for n, value in enumerate(PathLaws(shares[:, None]).times(weights, 2, 1)):
        after = draft[()][n + 1] if n + 1 < len(shares) else Fraction(0)
        yield computed(value, target[()][n] * after)


def _moments(
    moments: TextCalls,
    recursion: Callable[..., Any],
    exact: list[Survival],
    k: int,
    length: int,
    full: list[Fraction] | None = None,
    *,
    prefill: bool = False,
) -> Iterator[Compared]:
    for number, survival in enumerate(exact):
        mean, variance = recursion(survival, k, length, prefill=prefill)
        yield computed(moments.expected[number], mean)
        yield computed(moments.variance[number], variance)
        if full is not None:
            yield computed(moments.full[number], full[number])


PerCall = Callable[[list[Survival], int, int], Fraction]
"""Tokens per call of several texts, from their survivals, the most drafts and the texts' length."""


def tokens_per_call(exact: list[Survival], k: int, length: int) -> Fraction:
    """All tokens over all expected calls."""
    return Fraction(len(exact) * length) / total(calls(survival, k, length)[0] for survival in exact)


def mean_of_starts(exact: list[Survival], k: int, length: int) -> Fraction:
    """1 + the accepted drafts of a call averaged over all starts."""
    accepted = [
        total(i * share for i, share in enumerate(accepted_law(survival, n, k, length)))
        for survival in exact
        for n in range(length)
    ]
    return 1 + total(accepted) / len(accepted)


def predicted(per_call: PerCall, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """A plan of every rule with a chain, a batch and a tree; two numbers per token; a prefill; the best tree found."""
    texts, tree = Texts(target, draft, length), TREES[1]
    trace = texts.trace()
    shapes: dict[Any, Tree] = {drafting.Chain(k): chain(k), drafting.Batch(2): TREES[0], library_tree(tree): tree}
    for prediction in plan(trace, rules=list(CHECKED.values()), shapes=list(shapes)).predictions:
        yield from _prediction(prediction, texts, per_call, shapes[prediction.wanted])
    columns = [np.split(trace.columns[name], len(texts.all)) for name in ("log_target", "log_draft")]
    two_numbers = Trace.from_log_probabilities(zip(*columns, strict=True))
    for name in ("token", "block"):
        yield from _prediction(predict(two_numbers, RULES[name], drafting.Chain(k)), texts, per_call, chain(k))
        exact = texts.survivals(CHAINS[name].survival)
        prefilled = predict(trace, RULES[name], drafting.Chain(k), prefill_emits_token=True)
        taken = total(calls(survival, k, length, prefill=True)[0] for survival in exact)
        yield computed(prefilled.tokens_per_call.best, len(exact) * length / taken)
    for name, rule in CHECKED.items():
        if takes(rule, BestTree(3)):
            best = predict(trace, rule, predict(trace, rule, BestTree(3)).shape)
            nodes = frozenset(best.shape.tree().paths)
            yield from _prediction(best, texts, per_call, nodes)
            (again,) = calls_by_shape(trace, rule, [best.shape])
            exact = texts.survivals(survival_by_tree(RANKED[name].given, nodes))
            for number, survival in enumerate(exact):
                yield computed(again.calls.expected[number], calls(survival, depth(nodes), length)[0])


def _prediction(prediction: Prediction, texts: Texts, per_call: PerCall, tree: Tree) -> Iterator[Compared]:
    name = prediction.rule.name
    chained = prediction.shape.is_chain
    of = CHAINS[name].survival if chained else survival_by_tree(RANKED[name].given, tree)
    exact = texts.survivals(of)
    value = per_call(exact, depth(tree), texts.length)
    yield computed(prediction.tokens_per_call.best, value)
    yield computed(prediction.accepted_length.best, value - 1)
    first = total(survival(n, 1) for survival in exact for n in range(texts.length))
    yield computed(prediction.acceptance.best, first / (len(exact) * texts.length))
    for interval in (prediction.tokens_per_call, prediction.acceptance):
        yield at_most(Fraction(interval.low), Fraction(interval.best))
        yield at_most(Fraction(interval.best), Fraction(interval.high))


# Whole decodings of a rule, by enumeration: the text's law and the expected calls.


Judged = Callable[..., Compared | Iterable[Compared]]


def mean_calls(rule: Rule, target: Model, draft: Model, k: int, length: int) -> Fraction:
    """Expected calls of a whole text."""
    law = Decoding(rule, k, length).law(target, draft)
    return total(len(accepted) * share for (_, accepted), share in law.items())


def lossless(rules: Sequence[Rule], target: Model, draft: Model, k: int, length: int) -> Iterator[Compared]:
    """The law of a whole text, several calls in a row, is the target's."""
    for rule in rules:
        yield equal(output_law(Decoding(rule, k, length).law(target, draft)), text_law(target, length))


def of_tables(claim: Judged) -> Judged:
    """A claim about models, for cases that hold them as tables."""
    return lambda target, draft, **case: claim(target.__getitem__, draft.__getitem__, **case)


def of_pairs(claim: Judged, **case: int) -> Judged:
    """A claim about models, for pairs of pmfs that hold at every position."""
    return lambda p, q: claim(constant(p), constant(q), **case)


def turning(pmf: Pmf) -> Model:
    """A model made of one pmf: it is turned by the tokens before, so that every prefix matters."""
    return lambda prefix: tuple(pmf[(x + sum(prefix)) % len(pmf)] for x in range(len(pmf)))


def turned(p: Pmf, q: Pmf, longest: int = 3) -> tuple[Table, Table]:
    """Tables of the models that turn a pair of pmfs."""
    every = prefixes(len(p), longest + 1)
    target, draft = ({prefix: turning(pmf)(prefix) for prefix in every} for pmf in (p, q))
    return target, draft


# §7's bound on a single call in fractions, and the library's terms, limits and ratios against it.


def accepted(rule: Rule, target: Model, draft: Model, k: int) -> Fraction:
    """E[tau] of one call, run through."""
    return total(count * share for (_, count), share in rule(target, draft, (), k).items())


def bound(target: Model, draft: Model, k: int) -> Fraction:
    """Sum over i of 1 - TV between both models' laws of i tokens, written out."""
    runs = (run for i in range(1, k + 1) for run in product(range(len(target(()))), repeat=i))
    return total(min(probability(target, (), run), probability(draft, (), run)) for run in runs)


def library_terms(terms_of: SurvivalOf, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's terms at every start, their mean over target-sampled text, and the limit of a trace."""
    texts = Texts(target, draft, length)
    trace, exactly = texts.trace(), texts.survivals(terms_of)
    terms = call_terms(trace.columns, k)
    yield from at_every_start(terms, exactly, k, length)
    shares = list(text_law(target.__getitem__, length).values())
    yield computed(np.dot(floats(shares), terms[::length].sum(axis=1)), bound(target.__getitem__, draft.__getitem__, k))
    room = [sum((of(n, i) for i in range(1, k + 1)), Fraction(1)) for of in exactly for n in range(length - k + 1)]
    limit = total(room) / len(room)
    yield computed(one_call_bound(Prompts(trace.texts), trace, [k])[k].best, limit)


def ratio_of_sums(shift: int, above: tuple[int, ...], below: tuple[int, ...]) -> Iterator[Compared]:
    """Ratios of sums over prompts, two texts to a prompt, and an interval around them."""
    texts = [TextInfo(str(number), 1, prompt=str(number // 2)) for number in range(len(above))]
    prompts = Prompts(texts)
    interval = ratio(prompts.sum(floats(above)), prompts.sum_rows(floats(below)), limits=(0.0, 9.0))
    yield computed(interval.best, Fraction(sum(above) + shift, sum(below)))
    yield at_most(Fraction(interval.low), Fraction(interval.best))
    yield at_most(Fraction(interval.best), Fraction(interval.high))

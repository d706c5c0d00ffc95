"""§10: drafts that depend on where the call starts, as those of heads that read the target's hidden states."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import RANK_RULES, Texts, at_every_start, columns_of, library_tree
from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES, PathTwin, SurvivalOf, chain, survival_by_tree
from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import MASSES
from proofs_check.twins import path_theorem
from proofs_check.twins.block_values import SOLVED, Goal, Problem, Start, fewest_calls, least
from proofs_check.twins.path_theorem import Survival, all_calls_law, calls, least_calls
from proofs_check.twins.tree_theorem import depth
from spectheory import Trace, drafting, predict
from spectheory.drafting import Shape
from spectheory.prediction import trace_limits
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.text_limit import call_terms
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification import RULES, PathRule
from spectheory.verification.by_start import PREFIX

HeadTable = Mapping[tuple[Prefix, Prefix], Pmf]
"""A pmf for each text before a call and each run of drafts in it."""

Reading = Callable[[SurvivalOf, Model, HeadTable, Prefix], Survival]
"""From a survival of drafts by position to that of a head's."""


def from_start(head: HeadTable, start: Prefix) -> Model:
    """The draft of the call after `start`; of shorter texts the first drafts, which the call does not read."""
    return lambda prefix: head[prefix[: len(start)], prefix[len(start) :]]


def headed(rule: Rule, head: HeadTable) -> Rule:
    """A whole call whose drafts come from the head."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        return rule(target, from_start(head, prefix), prefix, k)

    return call


def by_start(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """§10: the survival with the pmfs of the call's own start."""
    return lambda n, i: of(target, from_start(head, text[:n]), text)(n, i)


def by_position(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """The per-position reading: every draft has the pmf of a first draft at its position."""
    return of(target, lambda prefix: head[prefix, ()], text)


TREE = TREES[1]


def random_heads(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int) -> Iterator[Case]:
    """Random targets and heads {target, head, k, length}, for each (tokens, length, k)."""
    rng = random.Random(f"heads {effort.seed}")
    for _ in range(effort.pick(rounds, 8 * rounds)):
        for tokens, length, k in sizes:
            deepest = max(k, depth(TREE))
            target = random_model(rng, tokens, length + deepest, 8)
            head = {
                (start, run): random_pmf(rng, tokens, 8)
                for start in prefixes(tokens, length)
                for run in prefixes(tokens, length - len(start) + deepest)
            }
            yield {"target": target, "head": head, "k": k, "length": length}


CALLED: dict[str, PathTwin] = {
    **{name: CHAINS[name] for name in ("token", "block", "argmax", "race", "independent", "recursive")},
    **{
        f"{name}, tree": PathTwin(RANKED[name].call(TREE, len), survival_by_tree(RANKED[name].given, TREE))
        for name in ("race", "recursive", "topk")
    },
}
"""Whole calls, by rules of the library's names: chains, and a tree of two levels."""


def head_calls(reading: Reading, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's; given all of it the calls are independent with the survival of the reading."""
    p = target.__getitem__
    texts = text_law(p, length)
    for name, twin in CALLED.items():
        drafts = depth(TREE) if name.endswith("tree") else k
        law = Decoding(headed(twin.algorithm, head), drafts, length).law(p, p)
        yield equal(output_law(law), texts)
        for text in texts:
            survival = reading(twin.survival, p, head, text)
            yield equal(given_text(law, text), all_calls_law(survival, drafts, length))


# The library's columns by start (§10) against the exact values, from pmfs to columns and predictions.


CHECKED = ("token", "block", "argmax", "greedy", "independent", "race", "poisson", "recursive", "topk")
"""Rules that read columns by start."""


def head_trace(target: Table, head: HeadTable, k: int, length: int) -> Trace:
    """All texts with the columns by start to depth k, and those of the first drafts by position."""
    texts = Texts(target, {start: head[start, ()] for start, run in head if not run}, length)
    by_depth = [_at_depth(texts, head, i) for i in range(k)]
    deep = {name: np.stack([at[name] for at in by_depth], axis=1) for name in by_depth[0]}
    plain = texts.trace()
    return replace(plain, columns={**plain.columns, **deep})


def _at_depth(texts: Texts, head: HeadTable, i: int) -> dict[str, NDArray[Any]]:
    """The columns by start of draft i + 1 of the call at each position; past the end those of the last position."""
    rows = []
    for text in texts.all:
        for n in range(texts.length):
            m = min(n + i, texts.length - 1)
            rows.append((texts.target[text[:m]], head[text[:n], text[n:m]], text[m]))
    columns = columns_of(rows)
    ours = {name: columns[name.removeprefix(PREFIX)] for name in BY_START if name.removeprefix(PREFIX) in columns}
    return {name: values[:, :START_RANKS] if values.ndim == 2 else values for name, values in ours.items()}


def exactly(reading: Reading, of: SurvivalOf, texts: Texts, head: HeadTable) -> list[Survival]:
    """The exact survival of each text."""
    return [reading(of, texts.target.__getitem__, head, text) for text in texts.all]


def library_calls(reading: Reading, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """Survivals, calls and tokens per call of every rule with a chain, and with a tree if it has ranks."""
    texts, trace = Texts(target, {}, length), head_trace(target, head, k, length)
    for name in CHECKED:
        exact = exactly(reading, CHAINS[name].survival, texts, head)
        yield from _shape(trace, RULES[name], drafting.Chain(k), exact, k, length)
    for name in RANK_RULES.keys() & set(CHECKED):
        for tree in TREES[:3]:
            exact = exactly(reading, survival_by_tree(RANKED[name].given, tree), texts, head)
            yield from _shape(trace, RULES[name], library_tree(tree), exact, depth(tree), length)
        best = predict(trace, RULES[name], BestTree(3)).shape
        paths = frozenset(best.tree().paths)
        of = CHAINS[name].survival if paths == chain(len(paths)) else survival_by_tree(RANKED[name].given, paths)
        yield from _shape(trace, RULES[name], best, exactly(reading, of, texts, head), depth(paths), length)
    terms = exactly(reading, path_theorem.one_call_terms, texts, head)
    yield from at_every_start(call_terms(trace.columns, k), terms, k, length)


def _shape(
    trace: Trace, rule: PathRule, shape: Shape, exact: list[Survival], most: int, length: int
) -> Iterator[Compared]:
    survival, leaves = survival_of(rule, shape, trace.columns)
    moments = calls_of_tree(survival, leaves, trace.lengths, variance=True)
    taken = [calls(of, most, length) for of in exact]
    yield from at_every_start(survival, exact, most, length)
    for number in range(len(exact)):
        yield computed(moments.expected[number], taken[number][0])
        yield computed(moments.variance[number], taken[number][1])
    tokens = Fraction(len(exact) * length) / total(mean for mean, _ in taken)
    yield computed(predict(trace, rule, shape).tokens_per_call.best, tokens)


HEADS = "over random targets and heads, whose pmfs at every start and run of drafts are unrelated, zeros included"


# Lists of accepted lengths


def calls_of(accepted: Sequence[int], k: int) -> int:
    """Calls of k drafts where `accepted` is how many of any number of drafts from each start hold."""
    start = calls = 0
    while start < len(accepted):
        start, calls = start + min(accepted[start], k) + 1, calls + 1
    return calls


def recut(accepted: Sequence[int], k: int, fewer: int, unseen: int) -> int:
    """Calls of `fewer` drafts read off the calls of k: each shows which positions hold, all but its bonus token's."""
    holds, start = [unseen] * len(accepted), 0
    while start < len(accepted):
        end = start + min(accepted[start], k)
        holds[start:end] = [1] * (end - start)
        if end < start + k and end < len(accepted):
            holds[end] = 0
        start = end + 1
    runs = [0] * (len(accepted) + 1)
    for n in reversed(range(len(accepted))):
        runs[n] = runs[n + 1] + 1 if holds[n] else 0
    return calls_of(runs[:-1], fewer)


def within(accepted: tuple[int, ...], k: int, fewer: int) -> Iterator[Compared]:
    """The calls of fewer drafts lie between the two readings of the bonus positions."""
    calls = Fraction(calls_of(accepted, fewer))
    yield at_most(Fraction(recut(accepted, k, fewer, 1)), calls)
    yield at_most(calls, Fraction(recut(accepted, k, fewer, 0)))


def lists(_: Effort) -> Iterator[Case]:
    """Accepted lengths at every start, the shortest text first, then by k."""
    for length in range(1, 6):
        for k in range(1, min(length, 3) + 1):
            for fewer in range(1, k):
                for accepted in product(*(range(length - n + 1) for n in range(length))):
                    yield {"accepted": accepted, "k": k, "fewer": fewer}


ONE_RUN = Assumption(
    "a(n+1) = a(n) - 1 wherever a(n) > 0, as a draft model has it at temperature 0",
    lambda accepted, **_: all(not a or b == a - 1 for a, b in zip(accepted, (*accepted[1:], 0), strict=True)),
)

P10 = Entry(
    id="§10",
    title="Drafts that depend on where the call starts",
    kind="identity",
    plain="let q_(n,i) be the pmf of draft i of a call that starts at n, given that the drafts before it equal the "
    "text. Given the whole text, the calls are independent with the laws of §7 with q_(n,i) in place of q_(n+i): "
    "prod_(j<=i) min(1, rho_(n,j)) for token verification, min(1, min_(j<=i) prod_(l<=j) rho_(n,l)) for block "
    "verification, prod_j 1[x_(n+j) = argmax q_(n,j)] for argmax drafts, products and sums over nodes of the rank "
    "laws at (n, j) for races, lists and trees",
    latex=r"P(\tau \ge i \mid x) = \prod_{j\le i} \min(1, \rho_{n,j}),\quad \min\Big(1, \min_{j\le i} \prod_{l\le j} "
    r"\rho_{n,l}\Big)\ \text{(block)},\qquad \rho_{n,i} = q_{n,i}(x_{n+i}) / p_{n+i}(x_{n+i})",
    assumptions=(
        "the text is the target's sample",
        "a call's drafts come from pmfs that depend on the text before the call and on its drafts before, never "
        "on the text to come or on what earlier calls drafted",
    ),
    evidence=(
        exact(
            Claim(
                "the text is the target's, and given all of it the calls are independent with the survivals by "
                "start (token, block, argmax, race, match and recursive chains; a tree of three rules)",
                partial(head_calls, by_start),
            ),
            lambda effort: random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 2),
            over=HEADS,
            wrong=Claim("each draft has the pmf of a first draft at its position", partial(head_calls, by_position)),
        ),
        agreement(
            Claim(
                "the library's survivals, calls and tokens per call from columns by start and depth, chains and "
                "trees, the best tree found among them, and the terms of the one-call bound",
                partial(library_calls, by_start),
            ),
            lambda effort: random_heads(effort, ((2, 3, 2), (2, 4, 3), (3, 2, 3)), 1),
            over=f"all texts, {HEADS}",
            wrong=Claim("they are those of columns by position", partial(library_calls, by_position)),
        ),
    ),
    calculators=(
        *(f"spectheory.verification.by_start.{name}" for name in ("AtDepth", "along_calls", "by_depth", "log_ratio")),
        "spectheory.prediction.text_limit.call_terms",
        "spectheory.predict",
    ),
    without={
        "symbolic": "the steps are those of §7; its proof never uses that a draft's pmf is the same at every start",
        "search": "the cases are enumerated in fractions",
        "simulation": "decoders for heads are held to it in the tests",
    },
)

P10_RECUT = Entry(
    id="§10/recut",
    title="A head's accepted lengths, cut to fewer drafts",
    kind="refuted",
    plain="the accepted lengths of the calls at k give the calls at k' < k, up to the bonus positions (for a draft "
    "model at temperature 0 they do, as an interval: each call shows which positions hold, all but its bonus "
    "token's; for a head they do not, as it drafts anew from every start)",
    latex=r"a_k(n),\ n \in \text{starts at } k \ \Rightarrow\ \text{calls at } k' < k",
    assumptions=("temperature 0: whether a draft holds is a function of start and depth",),
    evidence=(
        counterexample(
            Claim("the calls of fewer drafts lie between the two readings of the bonus positions", within),
            lists,
            over="a(n) of any number of drafts at every start n (accepted); first by the length of the text, k and "
            "the fewer drafts",
            true=Claim("they do for lists that a draft model can have", within, (ONE_RUN,)),
        ),
    ),
)


# L, the limit of whole decodings where drafts depend on the start of their call, so that B7 does not hold (§12).


DRAWN = ("token", "block", "race", "poisson", "recursive", "independent")
"""Lossless rules whose chain of drafts is drawn."""


def least_of_text(name: str, target: Table, head: HeadTable, k: int, text: Prefix) -> Fraction:
    """L(0) of a text, from the survival of a rule: block verification's is the right one."""
    return least_calls(by_start(CHAINS[name].survival, target.__getitem__, head, text), k, len(text))


def decoding_of_head(target: Table, head: HeadTable, k: int, length: int) -> Problem:
    """The decoding that a case describes."""
    drafts, ended = lambda text: from_start(head, text), lambda text: len(text) >= length
    return Problem(target.__getitem__, drafts, lambda _: k, ended, len(target[()]))


def policies(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """In the mean over texts no policy takes fewer calls, by a linear programme over all of them."""
    law = text_law(target.__getitem__, length).items()
    least = total(share * least_of_text(name, target, head, k, text) for text, share in law)
    yield at_most(least, Fraction(fewest_calls(decoding_of_head(target, head, k, length))) + SOLVED)


def attained(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """For each text the fewest calls along it that a policy can have, lossless on all texts, are L(0)."""
    given, p = decoding_of_head(target, head, k, length), target.__getitem__

    def price(text: Prefix, start: Start) -> float:
        """The probability that a text that has come so far becomes this one."""
        before = start[0]
        return float(probability(p, before, text[len(before) :])) if text[: len(before)] == before else 0.0

    for text, share in text_law(p, length).items():
        later = least(given, Goal(partial(price, text)))
        fewest = 1 + Fraction(later) / share
        yield at_most(abs(fewest - least_of_text(name, target, head, k, text)), SOLVED / share)


def along_texts(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """Along every text each rule takes so many calls or more."""
    p = target.__getitem__
    for text in text_law(p, length):
        least = least_of_text(name, target, head, k, text)
        for rule in DRAWN:
            yield at_most(least, calls(by_start(CHAINS[rule].survival, p, head, text), k, length)[0])


def library_limit(limited: bool, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The library's L of each text; or block verification's calls in its place."""
    trace = head_trace(target, head, k, length)
    fewest = trace_limits.fewest_calls(trace, [k])[k]
    for text, each in zip(text_law(target.__getitem__, length), fewest.tolist(), strict=True):
        survival = by_start(CHAINS["block"].survival, target.__getitem__, head, text)
        yield computed(each, least_calls(survival, k, length) if limited else calls(survival, k, length)[0])


def heads(effort: Effort) -> Iterator[Case]:
    """The head of B7/starts, then random ones."""
    yield certain_head((1, 2, 0, 0), 2)
    yield from random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 4, 2), (3, 2, 2)), 3)


def certain_head(right: Sequence[int], k: int) -> Case:
    """A target that always says 0, and a head that is right on so many drafts of the call from each start."""
    sure, wrong = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    head_cases = random_heads(Effort(), ((2, len(right), k),), 1)
    case = next(iter(head_cases))
    target = dict.fromkeys(case["target"], sure)
    head = {(start, run): sure if len(run) < right[len(start)] else wrong for start, run in case["head"]}
    return {"target": target, "head": head, "k": k, "length": len(right)}


STEPS: tuple[Step, ...] = (
    *MASSES,
    valid(
        "here q and Q are those of the call's own start. The text after x is fresh given that tau >= i and the drafts "
        "begin with x, so given the whole text P(tau >= i) = s_i(x)/P(x) <= mu_i(x)/P(x) = M_i, whatever was before",
        lambda s, m, P: at_most(s / P, m / P),
        lambda s, m, P: [P > 0, s >= 0, s <= m],
    ),
    same(
        "with a_i = P(tau >= i), a_0 = 1, and m_i = min over j <= i of L(n+j+1): E m_tau = m_0 + sum_(i>=1) a_i (m_i - "
        "m_(i-1)), here with two drafts",
        lambda a, b, m, n, r: ((1 - a) * m + (a - b) * n + b * r, m + a * (n - m) + b * (r - n)),
    ),
    valid(
        "m does not rise, so a_i <= M_i gives E m_tau >= m_0 + sum M_i (m_i - m_(i-1)) = L(n) - 1",
        lambda a, b, A, B, m, n, r: at_most(m + A * (n - m) + B * (r - n), m + a * (n - m) + b * (r - n)),
        lambda a, b, A, B, m, n, r: [a <= A, b <= B, n <= m, r <= n],
    ),
    valid(
        "backwards from the end: if J >= L is what any policy still needs at all later positions, it needs 1 + E J(n + "
        "tau + 1) >= 1 + E L(n + tau + 1) >= 1 + E m_tau >= L(n), here with two outcomes",
        lambda a, J, K, k, u, v, L: at_most(L, 1 + a * J + (1 - a) * K),
        lambda a, J, K, k, u, v, L: [a >= 0, a <= 1, u <= J, v <= K, 1 + a * u + (1 - a) * v >= L],
    ),
)
"""No policy needs fewer calls along any text."""

TOYS = (
    "over the head of B7/starts, then random targets and heads, whose pmfs at every start and run of drafts are "
    "unrelated, zeros included"
)

P12_L = Entry(
    id="§12/L",
    title="The limit of a whole decoding for drafts by start",
    kind="lower bound",
    plain="let M_i(n) be block verification's survival with the pmfs of the call's own start, M_0 = 1, M_(k+1) = 0."
    " Given the text, every lossless fresh policy on chains of at most k drafts drawn from such pmfs needs L(0) "
    "calls or more, L(n) = 1 + sum_(i<=k) (M_i - M_(i+1)) min over j <= i of L(n+j+1), L = 0 from the end on. It "
    "need not be attained; block verification may need more (B7/starts), and for a draft model it needs V >= E L",
    latex=r"L(n) = 1 + \sum_{i=0}^{k} (M_i - M_{i+1}) \min_{j\le i} L(n+j+1) \le E[\text{calls} \mid x]",
    assumptions=(
        "every call is lossless and fresh: given all before it, the text from its start on is the target's",
        "a call draws one chain of at most k drafts from pmfs that depend on the text before the call and on its "
        "drafts before",
    ),
    evidence=(
        proof("masses by start, summation by parts, induction from the end", STEPS),
        exact(
            Claim(
                "in the mean over texts no policy needs fewer calls, by a linear programme over all of them",
                partial(policies, "block"),
            ),
            heads,
            over=TOYS,
            wrong=Claim("nor than L from token verification's survival", partial(policies, "token")),
        ),
        exact(
            Claim(
                "along every text token, block, race, poisson, recursive and match chains need L calls or more",
                partial(along_texts, "block"),
            ),
            heads,
            over=TOYS,
            wrong=Claim("L from token verification's survival, or more", partial(along_texts, "token")),
        ),
        agreement(
            Claim("the library's L of every text, from columns by start", partial(library_limit, True)),
            heads,
            over=f"all texts, {TOYS}",
            wrong=Claim("block verification's calls are", partial(library_limit, False)),
        ),
    ),
    calculators=public("prediction.trace_limits", "least_calls fewest_calls"),
    without={
        "search": "the cases are enumerated in fractions",
        "simulation": "decoders for heads are held to §10 in the tests; whole policies are enumerated here",
    },
)

P12_L_ATTAINED = Entry(
    id="§12/L-attained",
    title="The limit L is attained, for each text by a rule of its own",
    kind="optimality",
    plain="for each single text some lossless fresh policy makes L(0) calls along it, its survival being S_i = sum_j "
    "(M_j - M_(j+1)) 1[j* >= i], j* the place of the least of L(n+1), ..., L(n+j+1). On other texts it may need more",
    latex=r"\min_{\text{policies}} E[\text{calls}\mid x] = L(0),\qquad S_i = \sum_j (M_j - M_{j+1})\,1[j^*(j) \ge i]",
    assumptions=P12_L.assumptions,
    evidence=(
        exact(
            Claim(
                "for every text the optimum of a linear programme over all policies, whose cost is the calls along "
                "that text alone, is L(0) to 1e-8",
                partial(attained, "block"),
            ),
            heads,
            over=TOYS,
            wrong=Claim("it is L from token verification's survival", partial(attained, "token")),
        ),
    ),
    without={
        "certified": "no logarithm enters",
        "symbolic": "S falls and is at most M, so that a call may accept less than block verification, decided by "
        "coins; with it each step of the bound is an equality along the text",
        "search": "the cases are enumerated, and by linear programmes",
        "simulation": "every policy is in the programme",
    },
)

"""§7: what a call accepts, given the whole text it became part of; all calls together stand in :mod:`.calls`."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import (
    RANK_RULES,
    all_calls,
    counted,
    mean_of_starts,
    predicted,
    rank_columns,
    survivals,
    tokens_per_call,
    turned,
)
from proofs_check.agreement.path_cases import (
    CHAINS,
    RANKED,
    TREES,
    PathTwin,
    RankTwin,
    SurvivalOf,
    by_position,
    in_one_pass,
    marginal,
    random_chains,
    started,
    with_edges,
)
from proofs_check.algorithms.drafts import copying, repeated
from proofs_check.algorithms.enumeration import output_law
from proofs_check.algorithms.lossless_calls import most_accepted
from proofs_check.algorithms.tree_enumeration import Tree, node_number
from proofs_check.algorithms.tree_enumeration import given_text as ends_given_text
from proofs_check.library.cases import grid
from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import BLOCK, LARGEST, POSITIONS
from proofs_check.theorems.path.call_counts import chains, mean_over_starts, trees, without_spread
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import all_calls_law, product_survival
from proofs_check.twins.tree_theorem import RankLaw, all_ends_law, depth, rank_laws
from spectheory.verification.registry import VALIDATED_TREE_RULES

# Decoding with one piece of noise for each position of the text, kept from call to call, run through in fractions.


def token_at(pmf: Pmf, part: int, parts: int) -> int:
    """The token whose share of the cumulative pmf, of multiples of 1/parts, holds the part."""
    return next(token for token, within in enumerate(accumulate(pmf)) if within * parts > part)


def kept_agreement(p: Pmf, q: Pmf, token: int, parts: int) -> Fraction:
    """P(the draft is the output | output = token) at one position."""
    parts_of_token = [part for part in range(parts) if token_at(p, part, parts) == token]
    return Fraction(sum(token_at(q, part, parts) == token for part in parts_of_token), len(parts_of_token))


def decoded(target: Model, draft: Model, k: int, length: int, noise: Prefix, parts: int) -> tuple[Prefix, Prefix]:
    """The text and the accepted drafts of every call, all decided by the noise of the positions."""
    text: Prefix = ()
    accepted: Prefix = ()
    while len(text) < length:
        ahead = noise[len(text) :]
        drafts: Prefix = ()
        for part in ahead[:k]:
            drafts = (*drafts, token_at(draft(text + drafts), part, parts))
        count = 0
        while count < k and drafts[count] == token_at(target(text + drafts[:count]), ahead[count], parts):
            count += 1
        text += (*drafts[:count], token_at(target(text + drafts[:count]), ahead[count], parts))
        accepted = (*accepted, count)
    return text[:length], accepted


def kept(shared: bool, target: Table, draft: Table, k: int, length: int, parts: int) -> Iterator[Compared]:
    """The text is the target's; given all of it, calls are independent with the product of the agreements."""
    p, q = target.__getitem__, draft.__getitem__
    noises = product(range(parts), repeat=1 if shared else length + k)  # shared: one piece of noise for all positions
    pieces = [noise * (length + k) if shared else noise for noise in noises]
    law_of = law((decoded(p, q, k, length, noise, parts), Fraction(1, len(pieces))) for noise in pieces)
    texts = text_law(p, length)
    yield equal(output_law(law_of), texts)
    for text in texts:
        survival = product_survival(lambda a, b, token: kept_agreement(a, b, token, parts), p, q, text)
        yield equal(given_text(law_of, text), all_calls_law(survival, k, length))


def noisy_cases(effort: Effort) -> Iterator[Case]:
    """All noise of random models, drafts and outputs read off one cumulative scale."""
    rng = random.Random(f"noise {effort.seed}")
    for tokens, parts, k, length in ((2, 4, 1, 3), (2, 4, 2, 3), (3, 4, 2, 3), (2, 3, 3, 3)) * effort.pick(1, 6):
        pmfs = list(grid(tokens, parts))
        target, draft = ({prefix: rng.choice(pmfs) for prefix in prefixes(tokens, length + k)} for _ in range(2))
        yield {"target": target, "draft": draft, "k": k, "length": length, "parts": parts}


# All calls of a text together, their mean and variance (§7): proof, algorithms, library and simulation.


STEPS: tuple[Step, ...] = (
    in_words(
        "what a call leaves to come is a fresh sample of the target whatever the call saw, so probabilities multiply: "
        "calls before with S A, A the target's probability of their tokens, this one with s P, later text R; given the "
        "text that is S A s P R/(A P R) = S s: calls are independent",
        lambda S, A, s, P, R: (S * A * s * P * R / (A * P * R), S * s),
    ),
    same(
        "the last call may reach past the end: summed over the tokens there, y and all others, M_i stays M_i, so the "
        "laws are those of a longer text; and they are the same if fewer drafts are made there, as M_i knows no k",
        lambda M, y: (M * y + M * (1 - y), M),
    ),
    same(
        "the calls T from n on are 1 + T', T' those from n+i+1 on and independent of tau = i; a term of the mean is "
        "s (1 + c) = s + s c and the s sum to 1: C(n) = 1 + sum s C(n+i+1)",
        lambda s, c: (s * (1 + c), s + s * c),
    ),
    same(
        "a term of the second moment, T' of mean c and variance v: s E[(1+T')^2] = s ((1+c)^2 + v) = s (1 + 2c + c^2 + "
        "v), so with A = sum s c and B = sum s (c^2 + v) it is 1 + 2A + B",
        lambda s, c, v: (s * ((1 + c) ** 2 + v), s * (1 + 2 * c + (c**2 + v))),
    ),
    same(
        "less the square of the mean 1 + A: V(n) = sum s (V + C^2)(n+i+1) - (sum s C(n+i+1))^2",
        lambda A, B: (1 + 2 * A + B - (1 + A) ** 2, B - A**2),
    ),
)
"""Independence, mean and variance."""

few = with_edges(
    "Edges; then texts of 3 tokens out of 2 and of 2 out of 3.", ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 3
)

RECURSION = "C(n) = 1 + sum_i P(tau=i) C(n+i+1) and the second moment's recursion give mean and variance of the calls"

CALLED = {"chains": "yin2024", "length": 20}
"""The paper's test bed: texts of 20 tokens."""

TREED = tuple(rule.name for rule in VALIDATED_TREE_RULES)
"""Rules that take trees."""

CALLS = (
    proof("calls are independent given the text; mean and variance, for any number of branches", STEPS),
    exact(
        Claim(
            f"chains of every rule: {RECURSION}, 1 + C(1) with a prefill that emits a token; drafting less at the "
            "end changes no call; full acceptances and the starts' expected numbers",
            partial(chains, path_theorem.calls),
        ),
        few,
        over="against whole decodings of random models",
        wrong=Claim("the second moment is 1 + sum s Q", partial(chains, without_spread)),
    ),
    exact(
        Claim(
            f"trees of every rule with ranks: {RECURSION}; calls that end at a leaf", partial(trees, path_theorem.calls)
        ),
        lambda effort: random_chains(effort, ((2, 3, 2), (3, 2, 2)), 3),
        over="against whole decodings of random models",
        wrong=Claim("the calls are N/(1 + mean survival over starts)", partial(trees, mean_over_starts)),
    ),
    exact(
        Claim(
            "rules that decide each position by noise of its own may keep it from call to call: calls are independent "
            "with the same laws, though a position that was drafted after a wrong prefix uses its noise again",
            partial(kept, False),
        ),
        noisy_cases,
        wrong=Claim("positions may share one piece of noise", partial(kept, True)),
    ),
    agreement(
        Claim("the library's calls, variances, full acceptances and starts", partial(counted, path_theorem.calls)),
        few,
        over="chains of all lengths and trees, all texts of random models",
        wrong=Claim("the second moment is 1 + sum s Q", partial(counted, without_spread)),
    ),
    agreement(
        Claim(
            "predict and plan: tokens per call = all tokens over all expected calls, for every rule with a chain, a "
            "batch, a tree and the best tree found, from two numbers per token, and with a prefill that emits one",
            partial(predicted, tokens_per_call),
        ),
        few,
        over="traces of all texts of random models",
        wrong=Claim("tokens per call = 1 + mean accepted drafts over starts", partial(predicted, mean_of_starts)),
    ),
    simulated(
        "calls of texts by token verification, 1, 3 and 6 drafts a call",
        [("token", {**CALLED, "k": k}) for k in (1, 3, 6)],
        stated("§7"),
        wrong=("one draft more", stated("§7", k=lambda k: k + 1)),
    ),
    simulated(
        "calls of texts by block verification, 2 and 3 drafts a call",
        [("block", {**CALLED, "k": k}) for k in (2, 3)],
        stated("§7"),
        wrong=("those of token verification", stated("§7", kind="token")),
    ),
    simulated(
        "calls of texts of 6 tokens by races, distinct recursive rejection and top-k, three nodes a call",
        [("decode", {**CALLED, "length": 6, "rule": rule, "paths": [[1], [2], [1, 1]]}) for rule in TREED],
        stated("§7"),
        wrong=("those of chains of three", stated("§7", paths=[[1], [1, 1], [1, 1, 1]])),
        trials=(5_000, 50_000),
    ),
)
"""What the entry of §7 says about calls."""


# Whole algorithms


def ends(given: RankLaw, twin: RankTwin, tree: Tree, target: Table, draft: Table, length: int) -> Iterator[Compared]:
    """The same for a tree: the nodes at which the calls end."""
    p, q = target.__getitem__, draft.__getitem__
    law = Decoding(twin.call(tree, node_number(tree)), depth(tree), length).law(p, q)
    texts, most = text_law(p, length), max(rank for node in tree for rank in node)
    yield equal(output_law(law), texts)
    for text in texts:
        laws = rank_laws(given, p, q, text, most)
        yield equal(ends_given_text(law, text, tree), all_ends_law(laws, tree, length))


def all_ends(twins: Mapping[str, RankTwin], target: Table, draft: Table, length: int, **_: int) -> Iterator[Compared]:
    """Every rule with ranks on every tree it takes."""
    for name, twin in twins.items():
        for tree in TREES[:3] if RANK_RULES[name].consecutive else TREES:
            yield from ends(twin.given, twin, tree, target, draft, length)


def largest(survival: SurvivalOf, target: Table, draft: Table, k: int, **_: int) -> Iterator[Compared]:
    """At every text and depth: the most of any lossless call, by a linear programme."""
    p, q = target.__getitem__, draft.__getitem__
    for (text, i), most in most_accepted(p, q, k).items():
        yield equal(most, survival(p, q, text)(0, i))


MEAN_RANKS = {name: marginal(twin) for name, twin in RANKED.items()}

PUBLIC = {
    "verification": "TokenVerification BlockVerification LookupMatch RULES PATH_RULES Rule "
    "PathRule PositionRule RankRule Columns",
    "drafting": "Copied Grown Parallel Schedule Sequential",
    "prediction.paths": "TextCalls calls_of_texts calls_of_chains tree_survival calls_of_tree calls_and_visits "
    "PathLaws",
    "prediction.best_tree": "BestTree",
    "prediction.shape_calls": "ShapeCalls takes drafted calls_by_drafted calls_by_shape survival_of",
}
"""Calculators by their module; the front door's are named below."""

SWAPPED_SHARE = by_position(lambda p, q, x: min(Fraction(1), p[x] / q[x]) if q[x] else Fraction(1))
SWAPPED = {"token": replace(CHAINS["token"], survival=SWAPPED_SHARE)}
PRODUCT_TWIN = {"block": replace(CHAINS["block"], survival=CHAINS["token"].survival)}
SINGLE = {name: twin for name, twin in CHAINS.items() if name != "block"}
TEXTS = "over random models of any order without stationarity, zeros included, and edges"

small = with_edges(
    "Edges; then texts of 3 tokens out of 2 and of 2 out of 3, chains of 1 to 3 drafts.",
    ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 1), (3, 2, 2)),
    5,
)

wide = with_edges("The same, with room for two levels of a tree.", ((2, 3, 2), (3, 2, 2)), 4)

one_call = with_edges(
    "Single calls of two drafts, on 2 and 3 tokens, and of three on 2.", ((2, 1, 2), (3, 1, 2), (2, 1, 3)), 3
)


traced = with_edges("Traces of all texts.", ((2, 3, 1), (2, 3, 3), (3, 2, 2)), 3)


def of_turned(twins: Mapping[str, PathTwin], p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The same for models made of a pair of pmfs, texts of two tokens, two drafts."""
    return all_calls(twins, *turned(p, q), k=2, length=2)


SAYS = "the text is the target's, and given all of it the calls are independent with"

GIVEN = Claim(
    f"{SAYS} the survivals of token, race, poisson, recursive, match and greedy rules", partial(all_calls, SINGLE)
)

BLOCKS = Claim(
    f"{SAYS} the running minimum of the cumulative ratio (block verification)",
    partial(all_calls, {"block": CHAINS["block"]}),
)

PRODUCT = Claim("block verification has the product of min(1, rho)", partial(all_calls, PRODUCT_TWIN))

MAIN = {name: CHAINS[name] for name in ("token", "block", "race")}

IN_ONE_PASS = {**MAIN, "argmax": CHAINS["argmax"]}

EVIDENCE = (
    proof("token verification, every rule that decides position by position, and trees", POSITIONS),
    proof("block verification", BLOCK),
    proof(
        "no lossless rule accepts more than block verification at any text and depth, if the target goes on by itself",
        LARGEST,
    ),
    exact(
        GIVEN,
        small,
        over=TEXTS,
        wrong=Claim(
            "token verification has min(1, p/q)",
            partial(all_calls, SWAPPED),
        ),
    ),
    exact(BLOCKS, small, over=TEXTS, wrong=PRODUCT),
    exact(
        Claim(
            f"{SAYS} the sum over nodes of the rank laws given the text (trees of every rule with ranks)",
            partial(all_ends, RANKED),
        ),
        wide,
        over=TEXTS,
        wrong=Claim("the rank law may be averaged over the output", partial(all_ends, MEAN_RANKS)),
    ),
    exact(
        Claim(
            "the same where drafts, and how many there are, depend on the start of the call as well",
            partial(all_calls, {name: started(twin) for name, twin in MAIN.items()}),
        ),
        small,
        over=TEXTS,
        wrong=Claim(
            "the survival is that of the even starts everywhere",
            partial(all_calls, {n: replace(started(twin), survival=twin.survival) for n, twin in MAIN.items()}),
        ),
    ),
    exact(
        Claim(
            "drafts drawn in one pass, each from its marginal whatever the drafts before it (parallel heads), or its "
            "most probable token, with the marginals of the start as the draft's pmfs",
            partial(all_calls, {name: in_one_pass(twin) for name, twin in IN_ONE_PASS.items()}),
        ),
        small,
        over=TEXTS,
        wrong=Claim(
            "with the pmfs of a draft that reads its own drafts",
            partial(all_calls, {n: replace(in_one_pass(t), survival=t.survival) for n, t in IN_ONE_PASS.items()}),
        ),
    ),
    exact(
        Claim(
            "drafts copied from the text before the call (prompt lookup) are accepted as far as the text repeats them",
            partial(all_calls, {name: PathTwin(copying(twin.algorithm), repeated) for name, twin in MAIN.items()}),
        ),
        lambda effort: random_chains(effort, ((2, 4, 3), (2, 5, 2)), 3),
        over=TEXTS,
        wrong=Claim(
            "as if they were drawn from the draft",
            partial(all_calls, {n: replace(twin, algorithm=copying(twin.algorithm)) for n, twin in MAIN.items()}),
        ),
    ),
    exact(
        Claim(
            "the largest survival of any lossless call whose later text is drawn afresh, by a linear programme in "
            "fractions, is block verification's",
            partial(largest, CHAINS["block"].survival),
        ),
        one_call,
        over=TEXTS,
        wrong=Claim("it is token verification's", partial(largest, CHAINS["token"].survival)),
    ),
    searched(
        Claim("token, block and race verification as above", partial(of_turned, MAIN)),
        lambda: exact_pairs(3),
        over="models that turn one pair of pmfs on 2 or 3 tokens, weights from 0 to 1e30",
        wrong=Claim("block verification has the product of min(1, rho)", partial(of_turned, PRODUCT_TWIN)),
    ),
    agreement(
        Claim(
            "the library's a(x) and survival of every rule in RULES, at every start",
            partial(survivals, lambda name: CHAINS[name].survival),
        ),
        traced,
        over="from columns it works out from the pmfs, all texts of random models",
        wrong=Claim("they are token verification's", partial(survivals, lambda _: CHAINS["token"].survival)),
    ),
    agreement(
        Claim("the library's rank law given the text, and acceptance of two candidates", partial(rank_columns, RANKED)),
        traced,
        over="rules with ranks, all texts of random models",
        wrong=Claim("they are the mean rank law", partial(rank_columns, MEAN_RANKS)),
    ),
)

OF_TOKEN = ("token_is_lossless_call", "token_survival", "token_along_text", "token_calls_along")
OF_BLOCK = ("block_is_lossless", "block_survival", "block_along_text", "block_calls_along")
FORMAL = proved_in_coq(
    "given the text, any lossless fresh call accepts the drafts x with probability s(x)/P(x); s is prod min(p, q) for "
    "token verification, and block verification's recursion for block verification, run as algorithms; along a text "
    "of positive probability that is prod min(1, rho), and the least product of the first ratios, at most 1; the "
    "recursion C(n) has the mean V over the target's texts",
    ("path_theorem", *OF_TOKEN, *OF_BLOCK),
    wrong=("both rules have the same survival", "not_one_survival"),
)

P7 = Entry(
    id="§7",
    title="The path theorem: calls from the text alone",
    kind="identity",
    plain="given the whole output text x, the accepted drafts tau of a call that starts at n have P(tau >= i) = "
    "prod_(j<=i) a(x_(n+j)) for rules that decide each position by itself (token min(1, rho), race 1/(1+g), match "
    "q, argmax and greedy 0 or 1); min(1, min_(j<=i) rho_(n+1)..rho_(n+j)) for block verification, the most of any "
    "lossless rule whose later text is drawn afresh; the sum over nodes v of depth i of prod_j P(R = r_j(v) | "
    "x_(n+j)) for trees. Calls are independent given x, so C(n) = 1 + sum_i P(tau=i) C(n+i+1), C = 0 from the end "
    "N on, V(n) = sum_i P(tau=i) (V + C^2)(n+i+1) - (C(n)-1)^2, and tokens per call are N/C(0), 1 + C(1) calls if "
    "a prefill emits the first token",
    latex=r"P(\tau \ge i \mid x) = \prod_{j\le i} a(x_{n+j}),\quad \min\Big(1, \min_{j\le i} \prod_{l\le j} "
    r"\rho_{n+l}\Big)\ \text{(block)},\quad \sum_{|v|=i} \prod_{j\le i} P(R_{n+j} = r_j(v) \mid x_{n+j})\ "
    r"\text{(trees)};\qquad C(n) = 1 + \sum_i P(\tau = i \mid x)\, C(n+i+1)",
    assumptions=(
        "the text is the target's sample (greedy rules: its greedy text); else the numbers are for that output",
        "drafts come from pmfs that depend on the text before them, and on the start of the call if the survival "
        "is taken for that start, never on the text to come",
        "the number of drafts does not depend on what earlier calls accepted",
        "text after a call is drawn afresh, or from noise of its own at each position (races)",
    ),
    evidence=(*EVIDENCE, *CALLS, FORMAL),
    calculators=(
        *(f"spectheory.{module}.{name}" for module, names in PUBLIC.items() for name in names.split()),
        *(f"spectheory.{name}" for name in ("predict", "plan", "rules", "tree", "judge", "compare", "gate", "noise")),
        *(f"spectheory.{name}" for name in ("Prediction", "Trace", "Interval")),
    ),
)

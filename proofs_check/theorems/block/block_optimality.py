"""B7: block verification needs the fewest expected calls of any lossless rule, over a whole decoding."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts, turning
from proofs_check.agreement.path_cases import CHAINS, edge_chains, random_chains
from proofs_check.algorithms.enumeration import race_coupling, starts_of
from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import FAMILY, LENGTHS, REGRET, THEOREM
from proofs_check.statement.findings import Kind
from proofs_check.twins.block_values import *
from simulations.counts import Mean
from simulations.verdicts.predictions import Predicted
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import BlockVerification, PathRule, TokenVerification

# Cases for statements on whole decodings (B7): random models with ends, lengths and costs; one-hot ones by length.


Sizes = tuple[tuple[int, int, int], ...]
"""Tokens, length of the text, drafts of a call."""

SMALL: Sizes = ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 1), (3, 2, 2))
LONG: Sizes = ((2, 4, 1), (2, 4, 2), (2, 4, 3), (2, 5, 2), (3, 3, 1), (3, 3, 2))


def problem(target: Table, draft: Table, k: int, length: int, end: int | None) -> Problem:
    """The decoding that a case describes."""
    return texts(target.__getitem__, draft.__getitem__, k, length, end)


def ending(sizes: Sizes, rounds: int) -> Callable[[Effort], Iterator[Case]]:
    """Edges, then random models; every other one ends at the token 0 too."""

    def draw(effort: Effort) -> Iterator[Case]:
        for number, case in enumerate((*edge_chains(), *random_chains(effort, sizes, rounds))):
            yield {**case, "end": 0 if number % 2 else None}

    return draw


def whole(effort: Effort) -> Iterator[Case]:
    """Random models whose texts end at a length alone."""
    return random_chains(effort, SMALL, 2)


# Drafts and costs that depend on the text

Numbers = Mapping[Prefix, Fraction]


def varied(steepest: int, rounds: int) -> Callable[[Effort], Iterator[Case]]:
    """Random numbers of drafts by text, up to 3, that fall by `steepest` at most from a token to the next."""

    def draw(effort: Effort) -> Iterator[Case]:
        rng = random.Random(f"lengths {effort.seed}")
        for case in random_chains(effort, ((2, 4, 3), (2, 5, 3), (3, 3, 3)), rounds):
            drafts: dict[Prefix, int] = {(): rng.randint(0, 3)}
            for text in prefixes(len(case["target"][()]), case["length"]):
                fewest = max(drafts[text] - steepest, 0)
                drafts |= {(*text, z): rng.randint(fewest, 3) for z in range(len(case["target"][()]))}
            yield {**case, "drafts": drafts, "costs": {}}

    return draw


def priced(rounds: int) -> Callable[[Effort], Iterator[Case]]:
    """Random costs by text, so many times as often in a deep run."""

    def draw(effort: Effort) -> Iterator[Case]:
        """Random models and costs that the next token of the draft does not raise in the mean."""
        rng = random.Random(f"costs {effort.seed}")
        for case in random_chains(effort, ((2, 4, 2), (2, 4, 3), (3, 3, 2)), rounds):
            costs: dict[Prefix, Fraction] = {(): Fraction(1)}
            for text in prefixes(len(case["target"][()]), case["length"]):
                q = case["draft"][text]
                factors = [Fraction(rng.choice((0, 1, 2, 3, 6)), 2) for _ in q]
                mean = max(total(share * factor for share, factor in zip(q, factors, strict=True)), Fraction(1))
                costs |= {(*text, z): costs[text] * f / mean for z, f in enumerate(factors)}
            yield {**case, "drafts": {}, "costs": costs}

    return draw


def by_text(target: Table, draft: Table, k: int, length: int, drafts: Mapping[Prefix, int], costs: Numbers) -> Problem:
    """The decoding of a case with drafts or costs by text."""
    made = problem(target, draft, k, length, None)
    if drafts:
        made = replace(made, drafts=drafts.__getitem__)
    return replace(made, cost=costs.__getitem__) if costs else made


def near(optimum: float, exact: Fraction) -> Iterator[Compared]:
    """A solver's optimum and the exact one."""
    yield at_most(abs(Fraction(optimum) - exact), SOLVED)


def optimal(of: MassesOf, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """The fewest expected calls of any policy, with and without a memory of the calls before."""
    given = problem(target, draft, k, length, end)
    stated = expected_calls(given, of)(())
    yield from near(fewest_calls(given), stated)
    if length < 4:
        yield from near(fewest_calls(given, remember=True), stated)


def optimal_by_text(of: MassesOf, **case: Any) -> Iterator[Compared]:
    """The same with drafts or costs by text; and D is non-negative."""
    given = by_text(**case)
    value = expected_calls(given, of)
    fall = drop(given, value)
    yield from near(fewest_calls(given), value(()))
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))


def decoded(names: Sequence[str], sign: int, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Whole decodings run through: none takes fewer calls, and what it loses is the sum over its calls (the regret)."""
    given = problem(target, draft, k, length, None)
    p, q = given.target, given.draft_from(())
    value = expected_calls(given)
    fall = drop(given, value)
    for name in names:
        rule = CHAINS[name].algorithm

        def loss(text: Any, rule: Any = rule) -> Fraction:
            masses = masses_of_law(given, rule(p, q, text, k), k)
            return weighed(text, block_masses(given, text), fall) - weighed(text, masses, fall)

        starts = starts_of(Decoding(rule, k, length).law(p, q))
        calls, lost = total(starts.values()), total(number * loss(text) for text, number in starts.items())
        yield at_most(value(()), calls)
        yield equal(calls, value(()) + sign * lost)


def longer(
    of: MassesOf, more: int, target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """V with `more` drafts a call than k - 1 is at most V with k - 1, at every text."""
    given = problem(target, draft, k, length, end)
    few, many = (expected_calls(given.drafting(max(drafts, 0)), of) for drafts in (k - 1, k - 1 + more))
    for text in going_on(given):
        yield at_most(many(text), few(text))


def own_family(of: MassesOf, accepts: Callable[[Any, Any], Sequence[Any]], **case: Any) -> Iterator[Compared]:
    """s_i^w(zx) <= c(z) s_(i-1)^(wz)(x) with the shares c, which sum to at most 1; the rule's own D is 0 or more."""
    given = problem(**case)
    fall = drop(given, expected_calls(given, of))
    for text in going_on(given):
        masses = of(given, text)
        shares = accepts(given.target(text), case["draft"][text])
        yield at_most(total(shares), Fraction(1))
        yield at_most(Fraction(0), fall(text))
        for z, c in enumerate(shares):
            if given.ended((*text, z)):
                continue
            for i, depth in enumerate(of(given, (*text, z))[: given.drafts(text)]):
                for run, mass in depth.items():
                    yield at_most(masses[i + 1][z, *run], c * mass)


def run_through_masses(name: str) -> MassesOf:
    """The masses of a rule of the library, from its algorithm."""

    def masses(given: Problem, text: Any) -> Any:
        k = given.drafts(text)
        return masses_of_law(given, CHAINS[name].algorithm(given.target, given.draft_from(text), text, k), k)

    return masses


def library_calls(rule: PathRule, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's expected calls along texts, in the mean over the target's texts, are the least of any policy."""
    texts = Texts(target, draft, length)
    survival = rule.path_survival(texts.trace().columns, k)
    calls = calls_of_texts(survival, texts.lengths).expected
    shares = list(text_law(target.__getitem__, length).values())
    yield computed(np.dot(floats(shares), calls), expected_calls(problem(target, draft, k, length, None))(()))


# The steps of B7 at single calls, in fractions: masses of whole algorithms, what calls cost, renewal, induction.


FRESH = ("token", "block", "race", "poisson", "recursive", "independent")
"""Rules of the library whose drafts are drawn from q and whose later text is drawn afresh."""


def run_through(given: Problem, names: Sequence[str]) -> Iterator[tuple[str, Prefix, CallLaw, Masses]]:
    """The law of one call of each rule after every text that goes on, from its algorithm, and its masses."""
    for text in going_on(given):
        for name in names:
            k = given.drafts(text)
            law = CHAINS[name].algorithm(given.target, given.draft_from(text), text, k)
            yield name, text, law, masses_of_law(given, law, k)


def no_more(
    most: MassesOf, names: Sequence[str], target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """(i): a call stops with p s - s', and no mass is above `most`."""
    given = problem(target, draft, k, length, end)
    for _, text, law, masses in run_through(given, names):
        stopped = {output: share for output, share in stops(given, text, masses).items() if share}
        yield equal(stopped, {output: share for (output, _), share in law.items()})
        bound = most(given, text)
        for depth, limit in zip(masses, bound, strict=True):
            for run, mass in depth.items():
                yield at_most(mass, limit[run])


def attained(stated: MassesOf, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """Block verification's own masses, run through, are the recursion's and the closed form."""
    given = problem(target, draft, k, length, end)
    for _, text, _, masses in run_through(given, ("block",)):
        yield equal(masses, stated(given, text))
        yield equal(masses, least_of_products(given, text))


def decomposed(
    shift: int, names: Sequence[str], target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """(ii): one call of a rule and block verification afterwards, as counted and by the drops; and what it loses."""
    given = problem(target, draft, k, length, end)
    value = expected_calls(given)
    fall = drop(given, value)
    for _, text, law, masses in run_through(given, names):
        counted = sum((share * value(text + output) for (output, _), share in law.items()), Fraction(1))
        drops = weighed(text, masses[1 + shift :], fall)
        yield equal(counted, 1 + given.following(text, value) - drops)
        if not shift:
            yield equal(counted - value(text), weighed(text, block_masses(given, text), fall) - drops - fall(text))


def renewed(of: MassesOf, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """The sum of mu D is 1 where the text goes on; D is 0 where it has ended."""
    given = problem(target, draft, k, length, end)
    fall = drop(given, expected_calls(given))
    for text in going_on(given):
        yield equal(weighed(text, of(given, text), fall), Fraction(1))
        for z in range(given.tokens):
            if given.ended((*text, z)):
                yield equal(fall((*text, z)), Fraction(0))


def shifted(first: bool, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """(iii): mu_i^w(zx) <= q(z|w) mu_(i-1)^(wz)(x); not `first`: with p(z|w) in place of q."""
    given = problem(target, draft, k, length, end)
    for text in going_on(given):
        masses = block_masses(given, text)
        factor = draft[text] if first else target[text]
        for z in range(given.tokens):
            after = block_masses(given, (*text, z))
            for i in range(1, k + 1):
                for run, mass in after[i - 1].items():
                    yield at_most(masses[i][z, *run], factor[z] * mass)


def falling(
    of: MassesOf, most: Fraction, target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """(iv): 0 <= D <= 1 of a rule's own value, at every text."""
    given = problem(target, draft, k, length, end)
    fall = drop(given, expected_calls(given, of))
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))
        yield at_most(fall(text), most)


def every_step(of: MassesOf, p: Pmf, q: Pmf) -> Iterator[Compared]:
    """All steps for texts of three tokens and two drafts of models made of a pair: what the search tries to break."""
    given = texts(turning(p), turning(q), 2, 3)
    fall = drop(given, expected_calls(given, of))
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))
        yield at_most(fall(text), Fraction(1))
        masses, shares = block_masses(given, text), given.draft_from(text)(text)
        yield equal(weighed(text, masses, fall), Fraction(1))
        for z, share in enumerate(shares):
            for run, mass in block_masses(given, (*text, z))[1].items():
                yield at_most(masses[2][z, *run], share * mass)


ONE = Fraction(1)
MODELS = (
    "random models of any order without stationarity, zeros included; texts of 2 to 5 tokens, or up to an end token"
)

# Simulation: the library's other lossless rules on yin2024's chains, against block verification's calls by recursion

SIMULATED_CHAINS = {"chains": "yin2024", "length": 20, "k": 3}

SIMULATED_TREES = {"chains": "yin2024", "length": 6, "paths": [[1], [1, 1]]}
"""Chains of two drafts, for simulators of any rule."""


def no_fewer(more: int, _: str, given: Parameters) -> Iterator[Predicted]:
    """Calls are no fewer than block verification's with so many drafts more."""
    from simulations.simulators.decoding import calls_of  # needs numba

    k = given.get("k") or len(given["paths"])
    least = calls_of("block", {"chains": "yin2024", "length": given["length"], "k": k + more}).expected
    yield Predicted("calls per text", "B7", Mean("calls", 1, given["length"]), least, "lower bound")


FEWER = ("no fewer than with one draft less", partial(no_fewer, -1))

ASSUMPTIONS = (
    "every call is lossless and fresh: given all that was before it, and whatever it did, the text from its start on "
    "is the target's",
    "a call draws one chain of at most k drafts from the draft's pmfs, which depend on the text alone, not on where "
    "the call starts; what the call does with them may depend on all earlier calls and on coins",
    "the text ends at a length, or at the first token of some kind, or both: texts that have ended stay so",
)


def decodings(sizes: Any = SMALL, rounds: int = 3) -> Any:
    """Edges and random models."""
    return ending(sizes, rounds)


# B7's corollaries: longer chains, other rules' own values, drafts and costs that depend on the text.


ANY_ORDER = "random models of any order, zeros included; texts of 2 to 5 tokens, or up to an end token"

ENUMERATED: dict[Kind, str] = {
    "certified": "no logarithm enters",
    "search": "the cases are enumerated in fractions; B7 searches the steps",
}


def minima(p: Any, q: Any) -> tuple[Any, ...]:
    """The shares that token verification accepts."""
    return tuple(smaller(a, b) for a, b in zip(p, q, strict=True))


def raced(p: Any, q: Any) -> tuple[Any, ...]:
    """The shares that a race accepts."""
    joint = race_coupling(p, q)
    return tuple(joint.get((x, x), Fraction(0)) for x in range(len(p)))


B7 = Entry(
    id="B7",
    title="Block verification is optimal over a whole decoding",
    kind="optimality",
    plain="block verification minimises the expected number of calls of the whole decoding over all lossless fresh "
    "policies on chains drawn from the draft. With V(w) its expected calls left after the text w, D(w) = V(w) - E_z~p "
    "V(wz), s_i(x) = P(tau >= i, the drafts begin with x) of any such call and mu_i(x) = min over j of Q(x_1..x_j) "
    "P(x_(j+1)..x_i): (i) s_i <= mu_i, with equality for block verification; (ii) one call with s and block "
    "verification afterwards cost 1 + E V(wX_1) - sum_(i>=1) s_i(x) D(wx), so sum_(i>=0) mu_i(x) D(wx) = 1 where the "
    "text goes on; (iii) mu_i^w(zx) <= q(z|w) mu_(i-1)^(wz)(x); (iv) 0 <= D <= 1. So larger masses never cost",
    latex=r"\mu_i(x) = \min_{0\le j\le i} Q(x_{1..j})\,P(x_{j+1..i}),\qquad \sum_{i=0}^{k}\sum_{|x|=i}\mu_i(x)\,D(wx) "
    r"= 1,\qquad 0 \le D \le 1,\qquad \min_{\text{policies}} E[\text{calls}] = V(\varnothing)",
    assumptions=ASSUMPTIONS,
    evidence=(
        proof("masses, the cost of a call, the renewal identity, the induction, every policy", THEOREM),
        exact(
            Claim(
                "(i) calls of token, block, race, poisson, recursive and match rules, run through, stop with "
                "p s_i - s_(i+1) and have s_i <= mu_i",
                partial(no_more, block_masses, FRESH),
            ),
            decodings(rounds=1),
            over=MODELS,
            wrong=Claim("s_i is at most token verification's", partial(no_more, token_masses, FRESH)),
        ),
        exact(
            Claim(
                "(i) block verification, run through, has s = mu, by the recursion and by the minimum over j",
                partial(attained, block_masses),
            ),
            decodings(),
            over=MODELS,
            wrong=Claim("it has token verification's masses", partial(attained, token_masses)),
        ),
        exact(
            Claim(
                "(ii) one call of each rule and block verification afterwards cost 1 + E V - sum s D, and V + "
                "sum (mu - s) D",
                partial(decomposed, 0, FRESH),
            ),
            decodings(rounds=1),
            over=MODELS,
            wrong=Claim("without the first draft's masses", partial(decomposed, 1, FRESH)),
        ),
        exact(
            Claim(
                "(ii) the sum of mu D is 1 where the text goes on and D = 0 where it has ended",
                partial(renewed, block_masses),
            ),
            decodings(LONG),
            over=MODELS,
            wrong=Claim("so is that of token verification's masses", partial(renewed, token_masses)),
        ),
        exact(
            Claim("(iii) mu_i^w(zx) <= q(z|w) mu_(i-1)^(wz)(x) at every text and run", partial(shifted, True)),
            decodings(),
            over=MODELS,
            wrong=Claim("with p(z|w) in place of q(z|w)", partial(shifted, False)),
        ),
        exact(
            Claim("(iv) 0 <= D <= 1 at every text", partial(falling, block_masses, ONE)),
            decodings(LONG),
            over=MODELS,
            wrong=Claim("D <= 3/4", partial(falling, block_masses, Fraction(3, 4))),
        ),
        exact(
            Claim(
                "the optimum of a linear programme over all policies (joint probabilities of starts, drafts, "
                "accepted drafts and outputs, in one programme for the whole decoding; up to three tokens "
                "also with a memory of all earlier calls) is V to 1e-8",
                partial(optimal, block_masses),
            ),
            decodings(LONG, 4),
            over=MODELS,
            wrong=Claim("it is token verification's", partial(optimal, token_masses)),
        ),
        searched(
            Claim("renewal, (iii) and (iv) at every text", partial(every_step, block_masses)),
            lambda: exact_pairs(2),
            over="models that turn a pair of pmfs on two tokens, weights from 0 to 1e30; texts of three tokens, "
            "two drafts",
            wrong=Claim("the sum of mu D is 1 with the D of token verification", partial(every_step, token_masses)),
        ),
        agreement(
            Claim(
                "the library's expected calls of block verification, in the mean over the target's texts, are V",
                partial(library_calls, BlockVerification()),
            ),
            whole,
            over="traces of all texts of random models",
            wrong=Claim("token verification's are", partial(library_calls, TokenVerification())),
        ),
        simulated(
            "no fewer calls than block verification's by recursion: block and token verification, three drafts",
            [("block", SIMULATED_CHAINS), ("token", SIMULATED_CHAINS)],
            partial(no_fewer, 0),
            wrong=FEWER,
        ),
        simulated(
            "nor do races and recursive rejection with two drafts",
            [("decode", {**SIMULATED_TREES, "rule": rule}) for rule in ("race", "recursive")],
            partial(no_fewer, 0),
            wrong=FEWER,
            trials=(4_000, 40_000),
        ),
    ),
    calculators=("spectheory.verification.BlockVerification", "spectheory.prediction.paths.calls_of_texts"),
)

B7_REGRET = Entry(
    id="B7/regret",
    title="What another rule loses to block verification, exactly",
    kind="identity",
    plain="the expected calls of any lossless fresh policy are V + E sum over its calls of sum_i sum_x (mu_i - "
    "s_i)(x) D(wx), w the text before the call, s its masses there",
    latex=r"E[\text{calls}] = V(\varnothing) + E\sum_{\text{calls } w}\sum_{i=1}^{k}\sum_{|x|=i}"
    r"(\mu_i - s_i)(x)\,D(wx)",
    assumptions=ASSUMPTIONS,
    evidence=(
        proof("one call, then the losses of all calls", REGRET),
        exact(
            Claim(
                "whole decodings of token, race, poisson, recursive and match rules: calls = V + the losses of all "
                "calls, and at least V",
                partial(decoded, FRESH, 1),
            ),
            whole,
            over="random models, texts of 2 and 3 tokens, calls counted on every run of drafts and coins",
            wrong=Claim("V minus the losses", partial(decoded, FRESH, -1)),
        ),
    ),
    without={
        "certified": "no logarithm enters",
        "search": "an identity: the cases are enumerated in fractions",
        "simulation": "the rules' calls are simulated under §7",
    },
)

B7_LONGER = Entry(
    id="B7/longer",
    title="Longer chains never cost calls",
    kind="upper bound",
    plain="V_(k+1)(w) <= V_k(w) for block verification, and for token verification and every rule whose masses obey "
    "s_i^w(zx) <= c_w(z) s_(i-1)^(wz)(x) with sum_z c_w(z) <= 1 and do not depend on k: their own D is 0 or more too",
    latex=r"V_{k+1} \le V_k,\qquad s_i^w(zx) \le c_w(z)\, s_{i-1}^{wz}(x),\ \sum_z c_w(z) \le 1 \ \Rightarrow\ D \ge 0",
    assumptions=("as for B7; the mean over the target's texts: along one text longer chains may cost calls",),
    evidence=(
        proof("the induction with any c; one call of k drafts against k+1", FAMILY),
        exact(
            Claim("V_k <= V_(k-1) at every text, block verification, k to 3", partial(longer, block_masses, 1)),
            ending(LONG, 3),
            over=ANY_ORDER,
            wrong=Claim("V_(k-2) <= V_(k-1)", partial(longer, block_masses, -1)),
        ),
        exact(
            Claim("the same of token verification's values", partial(longer, token_masses, 1)),
            ending(LONG, 3),
            over=ANY_ORDER,
            wrong=Claim("V_(k-2) <= V_(k-1)", partial(longer, token_masses, -1)),
        ),
        exact(
            Claim(
                "token verification's masses: the inequality with c = min(p, q), and its own D is 0 or more",
                partial(own_family, token_masses, minima),
            ),
            ending(SMALL, 3),
            over=ANY_ORDER,
            wrong=Claim("block verification's obey it too", partial(own_family, block_masses, minima)),
        ),
        exact(
            Claim(
                "races, run through: with c the probability that both winners are z",
                partial(own_family, run_through_masses("race"), raced),
            ),
            ending(SMALL, 1),
            over=ANY_ORDER,
            wrong=Claim("token verification's obey that too", partial(own_family, token_masses, raced)),
        ),
    ),
    without={**ENUMERATED, "simulation": "the figure *block* counts calls over k"},
)

B7_LENGTHS = Entry(
    id="B7/lengths",
    title="Drafts and costs that depend on the text",
    kind="optimality",
    plain="block verification stays optimal, and D >= 0, where the number of drafts k(w) depends on the text with "
    "k(wz) >= k(w) - 1, and where a call costs c(w) with sum_z q(z|w) c(wz) <= c(w)",
    latex=r"k(wz) \ge k(w) - 1;\qquad \sum_z q(z\mid w)\, c(wz) \le c(w)",
    assumptions=("as for B7; a policy may draft at most k(w) tokens; c(w) >= 0",),
    evidence=(
        proof("what changes in the induction", LENGTHS),
        exact(
            Claim(
                "drafts by text: a linear programme over all policies has the optimum V, and D >= 0",
                partial(optimal_by_text, block_masses),
            ),
            varied(1, 5),
            over="random models and numbers of drafts, 0 to 3, that fall by one a token at most",
            wrong=Claim("token verification is optimal", partial(optimal_by_text, token_masses)),
        ),
        exact(
            Claim("costs by text: the same", partial(optimal_by_text, block_masses)),
            priced(5),
            wrong=Claim("token verification is optimal", partial(optimal_by_text, token_masses)),
        ),
    ),
    without={**ENUMERATED, "simulation": "simulators have one number of drafts"},
)

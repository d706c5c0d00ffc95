"""B7: statements that look like the theorem, or like a step of it, and are false; each with its smallest case found."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.block_values import *
from proofs_check.twins.path_theorem import Survival

# Look-alikes of B7 at small models: gadgets behind one-hot tokens, single texts, rules by depth, drafts by start.


NONE, HALF, ONE = Fraction(0), Fraction(1, 2), Fraction(1)
FIRST, SECOND = (ONE, NONE), (NONE, ONE)

Pair = tuple[Pmf, Pmf]

# Gadgets: `lead` tokens on which both models agree, then a pair of pmfs, then another pair after the token 0; after the
# token 1 the models are disjoint


def gadget(root: Pair, after: Pair, lead: int, k: int) -> Problem:
    """Texts of lead + 3 tokens, k drafts a call; the last token is the same for both models."""

    def model(side: int) -> Model:
        def pmf(text: Prefix) -> Pmf:
            if len(text) == lead:
                return root[side]
            if len(text) != lead + 1:
                return FIRST
            return (FIRST, SECOND)[side] if text[-1] else after[side]

        return pmf

    return texts(model(0), model(1), k, lead + 3)


def gadgets(leads: Sequence[int], ks: Sequence[int]) -> Callable[[Effort], Iterator[Case]]:
    """Every pair of pairs in halves, the shortest texts and chains first."""

    def draw(_: Effort) -> Iterator[Case]:
        both = [(pair["p"], pair["q"]) for pair in cases.pairs(2, 2)]
        for lead, k, root, after in product(leads, ks, both, both):
            yield {"root": root, "after": after, "lead": lead, "k": k}

    return draw


G: Case = {"root": ((HALF, HALF), FIRST), "after": ((HALF, HALF), (Fraction(1, 4), Fraction(3, 4))), "lead": 2, "k": 2}


def stopped_early(given: Problem, drafts: int) -> Problem:
    """The policy whose first call takes so many drafts at most, and whose others are block verification."""
    return replace(given, drafts=lambda text: given.drafts(text) if text else drafts)


def rarest(calls: int, root: Pair, after: Pair, lead: int, k: int) -> Iterator[Compared]:
    """A first call with fewer drafts makes long decodings no rarer; with calls = 0, nor calls fewer."""
    given = gadget(root, after, lead, k)
    for drafts in range(k):
        other = stopped_early(given, drafts)
        if calls:
            yield at_most(beyond(given, calls), beyond(other, calls))
        else:
            yield at_most(expected_calls(given)(()), expected_calls(other)(()))


def of_gadget(law: tuple[Fraction, ...], root: Pair, after: Pair, lead: int, k: int) -> Iterator[Compared]:
    """P(calls > 2), E[calls] and E[min(calls, 3)] of block verification and of a first call stopped after one draft."""
    given = gadget(root, after, lead, k)
    for problem_, (tail, mean, capped) in zip((given, stopped_early(given, 1)), (law[:3], law[3:]), strict=True):
        yield equal(beyond(problem_, 2), tail)
        yield equal(expected_calls(problem_)(()), mean)
        yield equal(sum((beyond(problem_, t) for t in range(3)), NONE), capped)


def shorter(calls: int, root: Pair, after: Pair, lead: int, k: int) -> Iterator[Compared]:
    """With one draft more per call long decodings are no likelier; with calls = 0, nor calls more."""
    given = gadget(root, after, lead, k)
    longer = given.drafting(k + 1)
    if calls:
        yield at_most(beyond(longer, calls), beyond(given, calls))
    else:
        yield at_most(expected_calls(longer)(()), expected_calls(given)(()))


def preserved(steps: int, root: Pair, after: Pair, lead: int, k: int) -> Iterator[Compared]:
    """T...T 1 falls along the target's text: f(w) is at least the mean of f(wz), f = 1 where the text goes on at first.

    T f is the cost of one call of block verification and f afterwards; V is its fixed point, reached after 3 steps.
    """
    given = gadget(root, after, lead, k)

    def value(text: Prefix, left: int) -> Fraction:
        if given.ended(text):
            return NONE
        if not left:
            return ONE
        return now_and_then(given, text, block_masses(given, text), lambda later: value(later, left - 1))

    for text in ((), *((z,) for z in range(2))):
        yield at_most(given.following(text, lambda later: value(later, steps)), value(text, steps))


# Tokens after some calls


def crowded(share: Fraction, accepted: Fraction, k: int) -> Problem:
    """Both agree on k tokens; then p = (share, rest) against a certain first token, and one drafted with `accepted`.

    They agree on k - 2 more, and are disjoint from there on and after any other token.
    """

    def target(text: Prefix) -> Pmf:
        return (share, 1 - share) if len(text) == k else FIRST

    def draft(text: Prefix) -> Pmf:
        n = len(text) - k - 1
        if 1 in text or n >= k - 1:
            return SECOND
        return (accepted, 1 - accepted) if n == 0 else FIRST

    return texts(target, draft, k, 4 * k + 4)


def crowds(_: Effort) -> Iterator[Case]:
    """Shares in halves and thirds, the fewest drafts first."""
    shares = (HALF, Fraction(2, 3), ONE)
    for k, share, accepted in product((1, 2, 3, 4), shares, shares):
        yield {"share": share, "accepted": accepted, "k": k}


def most_tokens(calls: int, share: Fraction, accepted: Fraction, k: int) -> Iterator[Compared]:
    """A first call with fewer drafts gives no more tokens after so many calls."""
    given = crowded(share, accepted, k)
    for drafts in range(k):
        yield at_most(tokens_after(stopped_early(given, drafts), calls), tokens_after(given, calls))


# Single texts


def running(ratios: Sequence[Fraction]) -> Survival:
    """Block verification's survival from the ratios q/p along a text."""
    return lambda n, i: min(math.prod(ratios[n : n + j], start=ONE) for j in range(i + 1))


def by_position(ratios: Sequence[Fraction]) -> Survival:
    """Token verification's."""
    return lambda n, i: math.prod((min(ONE, ratio) for ratio in ratios[n : n + i]), start=ONE)


def along_one_text(
    of: Callable[[Sequence[Fraction]], Survival], ratios: tuple[Fraction, ...], k: int
) -> Iterator[Compared]:
    """Along the text a first call with fewer drafts saves no expected calls."""
    survival, length = of(ratios), len(ratios)

    def left(n: int) -> Fraction:
        if n >= length:
            return NONE
        return path_theorem.calls(lambda m, i: survival(n + m, i), k, length - n)[0]

    for drafts in range(k):
        law = path_theorem.accepted_law(survival, 0, drafts, length)
        yield at_most(left(0), 1 + sum((share * left(i + 1) for i, share in enumerate(law)), NONE))


def ratios_of_texts(_: Effort) -> Iterator[Case]:
    """Ratios q/p along the text of 1/2, 1 and 2; first by the length of the text and k."""
    for length in range(1, 6):
        for k, ratios in product(range(1, min(length, 2) + 1), product((HALF, ONE, 2 * ONE), repeat=length)):
            yield {"ratios": ratios, "k": k}


# One text, certain for the target. Rules by position: p = q, so every draft is right


def certain(text: Prefix, k: int) -> Problem:
    """Both models say the text."""

    def model(before: Prefix) -> Pmf:
        return SECOND if any(text[len(before) :][:1]) else FIRST

    return texts(model, model, k, len(text))


def zeros_alone(depths: int | None, problem: Problem, text: Prefix) -> Masses:
    """Token verification that accepts the token 0 alone at the first `depths` drafts of a call, or at all of them."""
    return [
        {run: NONE if any(run[:depths]) else mass for run, mass in depth.items()}
        for depth in token_masses(problem, text)
    ]


def longer_by_depth(depths: int | None, text: Prefix, k: int) -> Iterator[Compared]:
    """With one draft more per call the expected calls are no more."""
    given, of = certain(text, k), partial(zeros_alone, depths)
    yield at_most(expected_calls(given.drafting(k + 1), of)(()), expected_calls(given, of)(()))


def free_token(depths: int | None, text: Prefix, k: int) -> Iterator[Compared]:
    """A token given away costs no calls: D is 0 or more after every part of the text."""
    given = certain(text, k)
    D = drop(given, expected_calls(given, partial(zeros_alone, depths)))
    yield from (at_least(D(text[:n]), NONE) for n in range(len(text)))


# Drafts by position and by start


def right(numbers: Sequence[int], k: int | None) -> Problem:
    """At start n the first `numbers[n]` drafts are right, the next is wrong; with k = None they are all there are."""

    def draft_from(text: Prefix) -> Model:
        return lambda later: FIRST if len(later) - len(text) < numbers[len(text)] else SECOND

    made = texts(lambda _: FIRST, lambda _: FIRST, k or 0, len(numbers))
    if k is None:
        return replace(made, drafts=lambda text: numbers[len(text)])
    return replace(made, draft_from=draft_from)


def starts(k: int | None) -> Callable[[Effort], Iterator[Case]]:
    """Numbers from 0 to 2 at each start, the shortest text first."""

    def draw(_: Effort) -> Iterator[Case]:
        for length in range(1, 5):
            yield from all_of(numbers=product(range(3), repeat=length), k=(k,))

    return draw


def fewest(numbers: Sequence[int], k: int | None) -> Iterator[Compared]:
    """No policy takes fewer calls than block verification, by a linear programme."""
    given = right(numbers, k)
    yield at_most(expected_calls(given)(()), Fraction(fewest_calls(given)) + SOLVED)


def stale(fresh: bool, root: Pair, after: Pair, lead: int, k: int) -> Iterator[Compared]:
    """No policy whose whole text has the target's law takes fewer calls; `fresh`: none with calls that are fresh."""
    given = gadget(root, after, lead, k)
    yield at_most(expected_calls(given)(()), Fraction(fewest_calls(given, fresh=fresh)) + SOLVED)


BY_GADGET = (
    "texts of `lead` tokens on which both models agree, then p, q = root, then after the token 0 p, q = after, after "
    "the token 1 disjoint; first by lead, k and the order of pmfs in halves"
)

ON_G = (Fraction(5, 8), Fraction(21, 8), Fraction(21, 8), Fraction(1, 2), Fraction(3), Fraction(5, 2))

FALL_BY_ONE = (
    Assumption(
        "the numbers fall by one a token at most", lambda numbers, **_: all(b >= a - 1 for a, b in pairwise(numbers))
    ),
)

FRESH = ("calls are lossless and fresh, chains drawn from the draft",)

B7_IN_LAW = Entry(
    id="B7/in-law",
    title="Block verification as the best in every respect",
    kind="refuted",
    plain="block verification minimises P(calls > t) for every t, or E min(calls, t) (it minimises the mean alone: "
    "on gadget G behind two certain tokens, 5 tokens, k = 2, it has P(calls > 2) = 5/8 and E = 21/8, a first call "
    "that stops after one draft 1/2 and 3, and E min(calls, 3) 5/2 against 21/8)",
    latex=r"P(\text{calls} > t)\ \text{is least for block verification, for every } t",
    assumptions=FRESH,
    evidence=(
        counterexample(
            Claim("a first call with fewer drafts makes calls > 2 no rarer", partial(rarest, 2)),
            gadgets((0, 1, 2), (1, 2)),
            over=BY_GADGET,
            true=Claim("it makes the mean no smaller", partial(rarest, 0)),
        ),
        counterexample(
            Claim("P(calls > 2) on gadget G", partial(rarest, 2)),
            lambda _: [G],
            over="root p = (1/2, 1/2), q = (1, 0), after 0 p = (1/2, 1/2), q = (1/4, 3/4)",
            true=Claim(
                "P(calls > 2), E and E min(calls, 3) are 5/8, 21/8, 21/8, and 1/2, 3, 5/2 stopped early",
                partial(of_gadget, ON_G),
            ),
        ),
    ),
)

B7_TOKENS = Entry(
    id="B7/tokens",
    title="The most tokens after any number of calls",
    kind="refuted",
    plain="block verification maximises the expected number of tokens after i calls, for every i (for i = 1 it "
    "does; for i = 2 and k = 3 a first call that gives one token less may leave the second call at a better start)",
    latex=r"E[N(i)]\ \text{is largest for block verification, for every } i",
    assumptions=(*FRESH, "texts go on: none ends before the calls do"),
    evidence=(
        counterexample(
            Claim("a first call with fewer drafts gives no more tokens after two calls", partial(most_tokens, 2)),
            crowds,
            over="k tokens on which both models agree, then p = (share, 1 - share) against a certain first token, "
            "then a certain token drafted with probability `accepted`, then k - 2 tokens on which both agree, then "
            "disjoint; first by k and the shares 1/2, 2/3, 1",
            true=Claim("no more after one call", partial(most_tokens, 1)),
        ),
    ),
)

B7_LONGER_IN_LAW = Entry(
    id="B7/longer-in-law",
    title="Longer chains and rare long decodings",
    kind="refuted",
    plain="one draft more per call makes P(calls > t) no larger, for every t (the mean falls; behind three certain "
    "tokens k = 3 may have the larger P(calls > 2))",
    latex=r"P_{k+1}(\text{calls} > t) \le P_k(\text{calls} > t)",
    assumptions=("block verification on chains drawn from the draft",),
    evidence=(
        counterexample(
            Claim("P(calls > 2) with k + 1 drafts is no more than with k", partial(shorter, 2)),
            gadgets((0, 1, 2, 3), (1, 2)),
            over=BY_GADGET,
            true=Claim("nor are the expected calls", partial(shorter, 0)),
        ),
        counterexample(
            Claim("on gadget G behind three certain tokens, k = 2 against 3", partial(shorter, 2)),
            lambda _: [{**G, "lead": 3}],
            over="texts of 6 tokens",
            true=Claim("the expected calls fall", partial(shorter, 0)),
        ),
    ),
)

B7_OPERATOR = Entry(
    id="B7/operator",
    title="A shorter proof that fails",
    kind="refuted",
    plain="T f(w) = 1 + E sum_i (M_i - M_(i+1)) f(w x_1..x_(i+1)), the cost of one call of block verification and "
    "f afterwards, takes supermartingales along the target's text to supermartingales (T 1 need not be one; V, its "
    "fixed point, is)",
    latex=r"f(w) \ge E_z f(wz)\ \forall w \ \Rightarrow\ Tf(w) \ge E_z\, Tf(wz)\ \forall w",
    assumptions=("f = 0 where the text has ended",),
    evidence=(
        counterexample(
            Claim("T 1 falls along the text, 1 where the text goes on", partial(preserved, 1)),
            gadgets((0,), (1, 2)),
            over=BY_GADGET,
            true=Claim("V = T T T 1 does", partial(preserved, 3)),
        ),
    ),
)

B7_ONE_TEXT = Entry(
    id="B7/one-text",
    title="More acceptance along a single text",
    kind="refuted",
    plain="along every single text accepting more never costs expected calls (the mean over the target's texts "
    "never rises; along one text it may, where ratios above 1 make up for ratios below 1)",
    latex=r"C(0) \le 1 + \sum_{i<k'} P(\tau' = i)\, C(i+1)\ \text{for } k' < k\ \text{along each text}",
    assumptions=("block verification; the later calls are the same",),
    evidence=(
        counterexample(
            Claim("a first call with fewer drafts saves no expected calls", partial(along_one_text, running)),
            ratios_of_texts,
            true=Claim("with token verification it saves none along any text", partial(along_one_text, by_position)),
        ),
    ),
)

B7_LENGTHS_FREE = Entry(
    id="B7/lengths-free",
    title="Drafts by text without the condition k(wz) >= k(w) - 1",
    kind="refuted",
    plain="block verification is optimal whatever the number of drafts allowed after each text (k = 1, 2, 0, 0 by "
    "position: the accepted draft of the first call skips the start with two)",
    latex=r"k(w)\ \text{arbitrary} \Rightarrow V \le E[\text{calls}]\ \text{of every policy}",
    assumptions=("p = q, every draft is right; a call at n may draft k(n) tokens",),
    evidence=(
        counterexample(
            Claim("no policy takes fewer calls, by a linear programme", fewest),
            starts(None),
            over="numbers of drafts from 0 to 2 by position; the shortest text first",
            true=Claim("none does", fewest, FALL_BY_ONE),
        ),
        refuted_in_coq(
            "k = 1, 2, 0, 0 and p = q on texts of four tokens",
            "not_any_lengths",
            true=("k(wz) >= k(w) - 1 given, V is least", ("B7_optimal",)),
        ),
    ),
)

B7_NOT_FRESH = Entry(
    id="B7/not-fresh",
    title="Lossless over the whole text, not in each call",
    kind="refuted",
    plain="block verification is optimal among all policies whose whole text has the target's law (a policy may "
    "let the text of later calls depend on what it drafted before: where the first draft is right half of the time "
    "and the second token is a fair coin, that coin may be the first draft's luck, and the next call knows it)",
    latex=r"x \sim P\ \Rightarrow\ V \le E[\text{calls}]",
    assumptions=("chains drawn from the draft; losslessness of the whole text alone",),
    evidence=(
        counterexample(
            Claim("no policy takes fewer calls, by a linear programme", partial(stale, False)),
            gadgets((0,), (1,)),
            over=BY_GADGET,
            true=Claim("none whose every call is fresh does", partial(stale, True)),
        ),
        refuted_in_coq(
            "the second token repeats whether the first draft was right",
            "not_without_freshness",
            true=("policies whose calls are fresh need V or more", ("B7_optimal",)),
        ),
    ),
)

B7_BY_DEPTH = Entry(
    id="B7/by-depth",
    title="Longer chains under a rule that accepts differently by depth",
    kind="refuted",
    plain="longer chains never cost calls under any rule that decides position by position, and its own D is 0 or more "
    "(true of one that decides in the same way at every depth; one that accepts the token 0 alone as the first draft "
    "of a call, and any later draft, takes 2 calls for the text 000010 with k = 2 and 3 with k = 3, where D = -1)",
    latex=r"P(\tau \ge i) = \prod_{j \le i} a_j(x_{n+j}) \Rightarrow V_{k+1} \le V_k",
    assumptions=("p = q, one text is certain; whether depth j accepts a token depends on the token and on j",),
    evidence=(
        counterexample(
            Claim("one draft more costs no calls", partial(longer_by_depth, 1)),
            lambda _: (
                {"text": text, "k": k} for n in range(1, 7) for k in (1, 2, 3) for text in product((0, 1), repeat=n)
            ),
            over="texts of 0 and 1; the shortest text and the fewest drafts first",
            true=Claim("none does where every depth accepts 0 alone", partial(longer_by_depth, None)),
        ),
        counterexample(
            Claim("D is 0 or more after every part of the text", partial(free_token, 1)),
            lambda _: [{"text": (0, 0, 0, 0, 1, 0), "k": 3}],
            over="at that text",
            true=Claim("it is where every depth accepts 0 alone", partial(free_token, None)),
        ),
        refuted_in_coq(
            "a first draft that must be 0, any later one",
            "not_by_depth",
            true=("rules that decide in the same way at every depth", ("B7_longer",)),
        ),
    ),
)

B7_STARTS = Entry(
    id="B7/starts",
    title="Drafts that depend on where the call starts",
    kind="refuted",
    plain="block verification is optimal for heads and copied drafts, whose drafts depend on the start of the call "
    "(k = 2, 4 tokens: from 0 one draft is right, from 1 two, from 2 and 3 none: block verification takes 3 calls, "
    "rejecting everything in the first call 2)",
    latex=r"q_{n,i}\ \text{by start} \Rightarrow V \le E[\text{calls}]\ \text{of every policy}",
    assumptions=("every call is lossless and fresh",),
    evidence=(
        counterexample(
            Claim("no policy takes fewer calls, by a linear programme", fewest),
            starts(2),
            over="certain targets; numbers of right drafts from 0 to 2 by start; the shortest text first",
            true=Claim("none does", fewest, FALL_BY_ONE),
        ),
    ),
)

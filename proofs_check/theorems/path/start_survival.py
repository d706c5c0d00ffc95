"""§10: drafts that depend on where the call starts, as those of heads that read the target's hidden states."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.path.start_cases import by_position, by_start, head_calls, library, random_heads

HEADS = "over random targets and heads, whose pmfs at every start and run of drafts are unrelated, zeros included"


def decoded(effort: Effort) -> Iterator[Case]:
    """Texts of 3 tokens out of 2 and of 2 out of 3."""
    yield from random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2)), 2)


def traced(effort: Effort) -> Iterator[Case]:
    """Texts with room for two levels of a tree."""
    yield from random_heads(effort, ((2, 3, 2), (2, 4, 3), (3, 2, 3)), 1)


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
            decoded,
            over=HEADS,
            wrong=Claim("each draft has the pmf of a first draft at its position", partial(head_calls, by_position)),
        ),
        agreement(
            Claim(
                "the library's survivals, calls and tokens per call from columns by start and depth, chains and "
                "trees, the best tree found among them, and the terms of the one-call bound",
                partial(library, by_start),
            ),
            traced,
            over=f"all texts, {HEADS}",
            wrong=Claim("they are those of columns by position", partial(library, by_position)),
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

"""B7: statements that look like the theorem, or like a step of it, and are false; each with its smallest case found."""

from __future__ import annotations

from proofs_check.agreement.block_counterexamples import (
    G,
    along_one_text,
    binary,
    by_position,
    crowds,
    draftable,
    fewest,
    free_token,
    gadgets,
    longer_by_depth,
    most_tokens,
    of_gadget,
    preserved,
    rarest,
    ratios_of_texts,
    running,
    shorter,
    stale,
    starts,
)
from proofs_check.prelude import *

BY_GADGET = (
    "texts of `lead` tokens on which both models agree, then p, q = root, then after the token 0 p, q = after, after "
    "the token 1 disjoint; first by lead, k and the order of pmfs in halves"
)

ON_G = (Fraction(5, 8), Fraction(21, 8), Fraction(21, 8), Fraction(1, 2), Fraction(3), Fraction(5, 2))

FALL_BY_ONE = (Assumption("the numbers fall by one a token at most", draftable),)

FRESH = ("calls are lossless and fresh, chains drawn from the draft",)

ENTRIES = (
    Entry(
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
    ),
    Entry(
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
    ),
    Entry(
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
    ),
    Entry(
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
    ),
    Entry(
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
                over="ratios q/p along the text of 1/2, 1 and 2; first by the length of the text and k",
                true=Claim(
                    "with token verification it saves none along any text", partial(along_one_text, by_position)
                ),
            ),
        ),
    ),
    Entry(
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
        ),
    ),
    Entry(
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
        ),
    ),
    Entry(
        id="B7/by-depth",
        title="Longer chains under a rule that accepts differently by depth",
        kind="refuted",
        plain="longer chains never cost calls under any rule that decides position by position, and its own D is 0 or "
        "more (true of one that decides in the same way at every depth; one that accepts the token 0 alone as the "
        "first draft of a call, and any later draft, takes 2 calls for the text 000010 with k = 2 and 3 with k = 3, "
        "where D = -1)",
        latex=r"P(\tau \ge i) = \prod_{j \le i} a_j(x_{n+j}) \Rightarrow V_{k+1} \le V_k",
        assumptions=("p = q, one text is certain; whether depth j accepts a token depends on the token and on j",),
        evidence=(
            counterexample(
                Claim("one draft more costs no calls", partial(longer_by_depth, 1)),
                binary,
                over="texts of 0 and 1; the shortest text and the fewest drafts first",
                true=Claim("none does where every depth accepts 0 alone", partial(longer_by_depth, None)),
            ),
            counterexample(
                Claim("D is 0 or more after every part of the text", partial(free_token, 1)),
                lambda _: [{"text": (0, 0, 0, 0, 1, 0), "k": 3}],
                over="at that text",
                true=Claim("it is where every depth accepts 0 alone", partial(free_token, None)),
            ),
        ),
    ),
    Entry(
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
    ),
)
"""What this file refutes."""

"""§13: what counters by position count, and where calls end."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import CHECKED, Texts
from proofs_check.agreement.path_cases import CHAINS, PathTwin, with_edges
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival
from proofs_check.twins.tree_theorem import visits
from spectheory.drafting import Chain
from spectheory.prediction.at_starts import CallStarts, survival_at_starts
from spectheory.verification import RULES

Weights = Callable[[Survival, int, int], list[Fraction]]
"""Survival, k and length of the text to a weight of each start."""


def uniform(_: Survival, __: int, length: int) -> list[Fraction]:
    """Every position alike: what a mean over the text weighs by."""
    return [Fraction(1)] * length


class Counted:
    """What a decoding counts, expected given its text: calls that accept i drafts or more, and where calls end.

    As counters of an engine: of the calls with room for all k drafts, those that accept at least 0, ..., k; and, at
    each token but the last, the calls that end there with a rejection.
    """

    def __init__(self, twin: PathTwin, target: Model, draft: Model, text: Prefix, k: int) -> None:
        law = Decoding(twin.algorithm, k, len(text)).law(twin.target(target), draft)
        self.counts, self.lost = [Fraction(0)] * (k + 1), [Fraction(0)] * len(text)
        for accepted, share in given_text(law, text).items():
            start = 0
            for drafts in accepted:
                if start + k <= len(text):
                    for i in range(drafts + 1):
                        self.counts[i] += share
                if drafts < k and start + drafts < len(text) - 1:
                    self.lost[start + drafts] += share
                start += drafts + 1


def counters(weights: Weights, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Counted shares against the weighted survival, multiplied out, for every rule and text."""
    p, q = target.__getitem__, draft.__getitem__
    for twin in CHAINS.values():
        for text in text_law(twin.target(p), length):
            survival = twin.survival(p, q, text)
            yield from shared(Counted(twin, p, q, text, k).counts, survival, weights(survival, k, length), length)


def shared(
    counts: Sequence[Fraction], survival: Survival, weights: Sequence[Fraction], length: int
) -> Iterator[Compared]:
    """Counts of i = 0, ..., k drafts against the survival weighted by the starts with room for k."""
    k = len(counts) - 1
    starts = weights[: max(length - k + 1, 0)]
    for i in range(1, k + 1):
        weighted = total(w * survival(n, i) for n, w in enumerate(starts))
        yield equal(counts[i] * total(starts), counts[0] * weighted)


def walked(weights: Weights, p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The same for a text whose drafts are accepted with the shares of both pmfs in turn: all runs of calls, k = 2."""
    shares, k = (*p, *q), 2
    counts = [Fraction(0)] * (k + 1)

    def go(start: int, weight: Fraction) -> None:
        inside = start + k <= len(shares)
        for i in range(min(k, len(shares) - start) + 1):
            counts[i] += weight * inside  # a call with i accepted drafts, which go on
            ends = 1 - shares[start + i] if i < k and start + i < len(shares) else Fraction(1)
            if ends and start + i + 1 < len(shares):
                go(start + i + 1, weight * ends)
            weight *= 1 - ends if i < k else 1

    go(0, Fraction(1))

    def survival(n: int, i: int) -> Fraction:
        return math.prod(shares[n : n + i], start=Fraction(1))

    yield from shared(counts, survival, weights(survival, k, len(shares)), len(shares))


def library_shares(shift: int, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's shares, and its calls lost at each token, over all texts of a target together."""
    texts = Texts(target, draft, length)
    trace = texts.trace()
    for name in set(CHECKED) & {"token", "block", "race", "argmax"}:
        decodings = [Counted(CHAINS[name], target.__getitem__, draft.__getitem__, text, k) for text in texts.all]
        totals = [total(one.counts[i] for one in decodings) for i in range(k + 1)]
        rule = RULES[name]
        shares = survival_at_starts(trace, rule, k, prefill_emits_token=False)
        for share, count in zip(shares, totals[1:], strict=True):
            yield computed(share, count / totals[0])
        rejected, _ = CallStarts.of(trace, rule, Chain(k)).ends
        lost = [share for one in decodings for share in one.lost]
        for place in range(len(lost)):
            yield computed(rejected[place], lost[place - shift])


at_every_call = with_edges(
    "Edges; then texts of 3 and 4 tokens out of 2, and of 3 out of 3.", ((2, 3, 1), (2, 3, 2), (2, 4, 2), (3, 3, 1)), 2
)

STEPS = (
    in_words(
        "calls are independent given the text (§7): of the calls that start at n, v in expectation, a share s accepts "
        "i drafts or more, wherever earlier calls ended; they add v s to the counter and v to the calls",
        lambda v, s: (v * s, s * v),
    ),
    same(
        "of the calls from n, those that end after j drafts are those that accept j or more less those that accept j + "
        "1 or more: v (s - t) = v s - v t; each of them starts the next call at n + j + 1, which is the recursion of v",
        lambda v, s, t: (v * (s - t), v * s - v * t),
    ),
    same(
        "a counter over the calls is a mean weighted by starts: (v s + w t)/(v + w) = s + (t - s) w/(v + w), the plain "
        "mean of s and t for v = w alone, or s = t",
        lambda v, w, s, t: ((v * s + w * t) / (v + w), s + (t - s) * w / (v + w)),
    ),
)

AT_STARTS = Claim(
    "counted shares are the survival weighted by the calls that start at each position", partial(counters, visits)
)
ANYWHERE = Claim("they are the mean survival over positions", partial(counters, uniform))

P13 = Entry(
    id="§13",
    title="Counters by position",
    kind="identity",
    plain="of the calls of a decoding with k drafts, the share that accepts i or more is S_i(k) = sum_n v(n) "
    "P(tau >= i | n) / sum_n v(n), v(n) the expected number of calls that start at n: one at 0, and sum_j v(n - j "
    "- 1) P(tau = j | n - j - 1). Sums are over the positions with room for k drafts. Calls that end at token m "
    "with a rejection are sum_(j<k) v(m - j) P(tau = j | m - j) in expectation",
    latex=r"S_i(k) = \frac{\sum_n v(n)\, P(\tau \ge i \mid n)}{\sum_n v(n)}, \qquad "
    r"v(m) = 1[m = 0] + \sum_j v(m-j-1)\, P(\tau = j \mid m-j-1)",
    assumptions=("as in §7: numbers are expected given the text", "a counter of several texts adds both sums up"),
    evidence=(
        proof("counters are means over the starts of calls", STEPS),
        exact(
            AT_STARTS, at_every_call, over="whole decodings by every rule of random models, all texts", wrong=ANYWHERE
        ),
        searched(
            Claim(AT_STARTS.says, partial(walked, visits)),
            lambda: exact_pairs(2),
            over="all runs of calls of two drafts, along texts whose drafts are accepted with any shares",
            wrong=Claim(ANYWHERE.says, partial(walked, uniform)),
        ),
        agreement(
            Claim("the library's shares, and its calls lost at each token", partial(library_shares, 0)),
            at_every_call,
            over="all texts of random models together",
            wrong=Claim("its calls are lost one token later", partial(library_shares, 1)),
        ),
    ),
    calculators=public("prediction.at_starts", "survival_at_starts CallStarts"),
)

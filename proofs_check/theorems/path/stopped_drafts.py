"""§11: draft lengths decided by the draft."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts, at_every_start
from proofs_check.agreement.path_cases import CHAINS, STOPPABLE, constant, drafts_of, random_chains, room
from proofs_check.algorithms.drafts import STOPS, Stop, ended_by
from proofs_check.algorithms.enumeration import (
    output_law,
    starts_of,
)
from proofs_check.evidence.simulated import STOPPED
from proofs_check.forms.divergences import overlap
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival, all_calls_law, likelihood_ratio
from proofs_check.twins.tree_theorem import visits
from spectheory.drafting import read_stop
from spectheory.prediction.stopped import Drafted, drafted_along, stopped_survival
from spectheory.verification import RULES

# Chains that the draft ends (§11) in fractions: whole calls beside the survival, drafted tokens beside their estimate.


Cut = Callable[[Stop, Survival, Model, Prefix], Survival]
"""From a survival without a stop to that of stopped chains."""


def drafted(stop: Stop, draft: Model, text: Prefix, n: int, j: int) -> bool:
    """Whether a call from n drafts its j-th token, if the drafts before it equal the text."""
    return stop.goes_on(draft, text[:n], text[n : n + j - 1])


def cut_along(stop: Stop, survival: Survival, draft: Model, text: Prefix) -> Survival:
    """§11: the survival, 0 where drafting stops along the text before draft i."""
    return lambda n, i: survival(n, i) if not i or drafted(stop, draft, text, n, i) else Fraction(0)


def uncut(stop: Stop, survival: Survival, draft: Model, text: Prefix) -> Survival:
    """The wrong reading: as if every call drafted k tokens."""
    return survival


def stopped_calls(cut: Cut, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's; given all of it the calls are independent with the survival said."""
    q = draft.__getitem__
    for name, rule in STOPPABLE.items():
        twin = CHAINS[name]
        p = twin.target(target.__getitem__)
        texts = text_law(p, length)
        for stop, by_target in product(STOPS, (False, True)):
            law = Decoding(ended_by(stop, rule, by_target=by_target), k, length).law(p, q)
            yield equal(output_law(law), texts)
            for text in texts:
                survival = cut(stop, twin.survival(p, q, text), p if by_target else q, text)
                yield equal(given_text(law, text), all_calls_law(survival, k, length))


def library_survivals(cut: Cut, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's survivals of stopped chains, from the columns of all texts."""
    texts = Texts(target, draft, length)
    columns = stop_columns(texts)
    for name in STOPPABLE:
        exact = texts.survivals(CHAINS[name].survival)
        for stop in STOPS:
            survivals = stopped_survival(RULES[name], read_stop(stop.written), k, columns)
            pairs = zip(texts.all, exact, strict=True)
            stopped = [cut(stop, survival, draft.__getitem__, text) for text, survival in pairs]
            yield from at_every_start(survivals, stopped, k, length)


def stop_columns(texts: Texts) -> dict[str, NDArray[Any]]:
    """The columns of all texts, those that stopping rules read among them."""
    q = np.array([texts.draft[text[:n]] for text in texts.all for n in range(texts.length)], dtype=float)
    terms = np.log(q, out=np.zeros_like(q), where=q > 0) * q
    return {**texts.trace().columns, "draft_top": q.max(axis=1), "draft_entropy": -terms.sum(axis=1)}


# Drafted tokens

Weight = Callable[[Model, Model, Prefix, int], Fraction]
"""The weight of a text's token: target, draft, the text before it, the token."""


def ratio(target: Model, draft: Model, before: Prefix, token: int) -> Fraction:
    """The likelihood ratio q/p."""
    return likelihood_ratio(target(before), draft(before), token)


def unweighted(target: Model, draft: Model, before: Prefix, token: int) -> Fraction:
    """No weight: as if the drafts were the text."""
    return Fraction(1)


def counted(name: str, stop: Stop, target: Model, draft: Model, k: int, length: int, j: int) -> Fraction:
    """Expected calls that draft j tokens or more: every run of drafts after every start."""
    q = drafts_of(CHAINS[name], name, draft)

    def goes_on(_: Model, prefix: Prefix, path: Prefix) -> bool:
        return stop.goes_on(draft, prefix, path)  # by the draft's own pmfs, also where its first choice is drafted

    whole = Decoding(ended_by(stop, STOPPABLE[name]), k, length, spare=1).law(target, draft)
    return total(
        calls * share
        for before, calls in starts_of(whole).items()
        for path, share in draft_paths(q, before, room(k, length, len(before)), goes_on)
        if len(path) >= j
    )


def along(
    weight: Weight, name: str, stop: Stop, target: Model, draft: Model, k: int, length: int, j: int
) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Means over texts: certain lower bound, the two estimates with this weight, certain upper bound."""
    q, sums = drafts_of(CHAINS[name], name, draft), [Fraction(0)] * 4
    for text, share in text_law(target, length).items():
        whole = CHAINS[name].survival(target, draft, text)
        survival = cut_along(stop, whole, draft, text)
        for n, calls in enumerate(visits(survival, k, length)):
            if j > room(k, length, n):
                continue
            lengths = [i for i in range(1, room(k, length, n) + 1) if drafted(stop, draft, text, n, i)]
            most, weights = max(lengths, default=0), [Fraction(1)]
            for i in range(n, length):
                weights.append(weights[-1] * weight(target, q, text[:i], text[i]))
            shorter = most < j
            parts = (
                Fraction(0) if shorter else whole(n, j - 1),
                Fraction(0) if shorter else weights[j - 1],
                1 - weights[most] if shorter else Fraction(1),
                1 - whole(n, most) if shorter else Fraction(1),
            )
            sums = [old + share * calls * part for old, part in zip(sums, parts, strict=True)]
    return sums[0], sums[1], sums[2], sums[3]


ESTIMATED = ("token", "block", "argmax")


def _counts(
    weight: Weight, target: Table, draft: Table, k: int, length: int
) -> Iterator[tuple[Fraction, tuple[Fraction, Fraction, Fraction, Fraction]]]:
    """The calls that draft j tokens or more, counted, and what is said along texts, for every rule, stop and j."""
    p, q = target.__getitem__, draft.__getitem__
    for name in ESTIMATED:
        for stop in STOPS:
            for j in range(1, k + 1):
                yield counted(name, stop, p, q, k, length, j), along(weight, name, stop, p, q, k, length, j)


def estimates(weight: Weight, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Both estimates have the mean that is counted."""
    for mean, (_, going, stopping, _) in _counts(weight, target, draft, k, length):
        yield equal(going, mean)
        yield equal(stopping, mean)


def certain(swapped: bool, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The certain bounds enclose what is counted; `swapped`: the lower one as an upper one."""
    for mean, (low, _, _, high) in _counts(ratio, target, draft, k, length):
        yield at_most(low, mean)
        yield at_most(mean, low if swapped else high)


def library_lengths(weight: Weight, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's bounds and estimates, in the mean over all texts of the target."""
    p, q = target.__getitem__, draft.__getitem__
    texts = Texts(target, draft, length)
    shares = np.array([float(share) for share in text_law(p, length).values()])
    columns, trace = stop_columns(texts), texts.trace()
    for name in ESTIMATED:
        calls = Drafted(trace, RULES[name], k)
        for stop in STOPS:
            read = read_stop(stop.written)
            lengths = calls.lengths_of_calls(drafted_along(columns, read, k).sum(axis=1), keeps=stop.keeps)
            for j in range(1, k + 1):
                exact = along(weight, name, stop, p, q, k, length, j)
                means = (lengths.low, lengths.going, lengths.stopping, lengths.high)
                for ours, theirs in zip(means, exact, strict=True):
                    yield computed(shares @ ours[:, j - 1], theirs)


# Cases


def small(effort: Effort) -> Iterator[Case]:
    """Texts of 3 tokens out of 2 and of 2 out of 3, chains of 2 drafts, and of 3."""
    return random_chains(effort, ((2, 3, 2), (2, 3, 3), (3, 2, 2)), 8)


def supported(effort: Effort) -> Iterator[Case]:
    """Texts with room for all drafts but near their end; the target can output every token."""
    for case in random_chains(effort, ((2, 4, 2), (2, 4, 3), (3, 3, 2))):
        target = {prefix: tuple((share + 1) / (1 + len(p)) for share in p) for prefix, p in case["target"].items()}
        yield {**case, "target": target}


MODELS = "over random models of any order without stationarity, zeros included"
BY_DENOMINATOR = "first by the common denominator of one pair on 2 tokens"
FULL = "over random models of any order, whose targets can output every token"
NO_SEARCH = "the cases are enumerated in fractions"


def one_pair(
    judged: Callable[[Fraction, Fraction, Fraction], Iterable[Compared]], p: Any, q: Any
) -> Iterator[Compared]:
    """Token verification of 2 drafts, texts of 3 tokens: calls that draft 2, the lower and the upper estimate."""
    for stop in STOPS:
        asked = ("token", stop, constant(p), constant(q), 2, 3, 2)
        _, going, stopping, _ = along(ratio, *asked)
        yield from judged(counted(*asked), going, stopping)


Drops = Callable[[Fraction, Fraction], bool]
"""Whether a drafted token is dropped, from its p and q."""


def first_token(drops: Drops, p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """Law of a call's first token: one draft, which is dropped or judged by token verification."""
    dropped = total(b for a, b in zip(p, q, strict=True) if drops(a, b))
    kept = [Fraction(0) if drops(a, b) else min(a, b) for a, b in zip(p, q, strict=True)]
    rejected = 1 - dropped - sum(kept)
    excess = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    shares = [each / sum(excess) if any(excess) else Fraction(0) for each in excess]
    return tuple(k + dropped * a + rejected * s for k, a, s in zip(kept, p, shares, strict=True))


def coin_taken_for_stop(p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """Law of a call's first token: a rejected draft is taken for a stop, and the token is drawn from p."""
    agreed = overlap(p, q)
    return tuple(min(a, b) + (1 - agreed) * a for a, b in zip(p, q, strict=True))


def by_target_sample(p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """Law of a call's first token: where the target's sample is the token 0 it is the output, else one is drafted."""
    drafted = first_token(lambda p, q: False, p, q)
    return tuple(p[0] * (x == 0) + (1 - p[0]) * share for x, share in enumerate(drafted))


def lossless(law: Callable[[AnyPmf, AnyPmf], tuple[Fraction, ...]], p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The token is the target's."""
    yield equal(law(p, q), p)


KEPT = Claim("judged in place of dropped, it does", partial(lossless, partial(first_token, lambda p, q: False)))
SELECTED = (
    ("a draft of q below 0.4 dropped", partial(first_token, lambda p, q: q < Fraction(2, 5)), KEPT),
    ("a draft of p below q dropped", partial(first_token, lambda p, q: p < q), KEPT),
    ("a rejected draft taken for a stop", coin_taken_for_stop, KEPT),
    (
        "no draft where the target's sample, the output there, is 0",
        by_target_sample,
        Claim(
            "with no draft where its p(0) is below 1/2 it is",
            partial(lossless, lambda p, q: tuple(p) if 2 * p[0] < 1 else first_token(lambda p, q: False, p, q)),
        ),
    ),
)
"""Stops that select among the tokens, and what selects none."""

P11 = Entry(
    id="§11",
    title="Chains whose length the draft decides",
    kind="identity",
    plain="let drafting stop where a function of the pmfs, the draft's or the target's, and of the tokens drafted "
    "so far says so. The output is the target's, and given the whole text the calls are independent with the "
    "rule's own survival, set to 0 from the first draft i that is not drafted along the text",
    latex=r"P(\tau \ge i \mid x) = \Big(\prod_{j\le i} a_{n,j}\Big)\, 1[\text{not stopped before } i "
    r"\text{ along the text}]",
    assumptions=(
        "whether draft i is drafted is decided by the drafts before it and the pmfs up to its own, by no sample of "
        "the target: a token once drawn is judged",
        "the text is the target's sample; given other text, the prediction is for that text as output",
    ),
    evidence=(
        exact(
            Claim(
                "the text is the target's, and given all of it the calls are independent with the survival cut "
                "where drafting stops (token, block, race, independent, argmax and greedy; a stop by the token's "
                "probability, by the largest one, by the entropy, of the draft or of the target)",
                partial(stopped_calls, cut_along),
            ),
            small,
            over=MODELS,
            wrong=Claim("with the survival of chains that always draft k", partial(stopped_calls, uncut)),
        ),
        agreement(
            Claim("the library's survivals", partial(library_survivals, cut_along)),
            small,
            over=f"all texts, {MODELS}",
            wrong=Claim("they are those of chains that always draft k", partial(library_survivals, uncut)),
        ),
        simulated(
            "calls and drafted tokens of texts by token verification, drafting stopped by each rule, on Markov chains",
            STOPPED,
            stated("§11", "§11/drafted"),
            wrong=("those of chains that always draft k", stated("§11", "§11/drafted", stop=None)),
            trials=(40_000, 400_000),
        ),
    ),
    calculators=public("drafting", "StoppingRule read_stop")
    + public("prediction.stopped", "drafted_along stopped_survival check_stops"),
    without={
        "symbolic": "the proof of §7 goes through as it stands: that a draft is judged at all depends on the "
        "drafts before it alone, which on the event tau >= i are the text",
        "search": NO_SEARCH,
    },
)

P11_DRAFTED = Entry(
    id="§11/drafted",
    title="Drafted tokens from the text",
    kind="identity",
    plain="with v(n) the expected calls from n, w_(n,j) the product of the first j ratios q/p from n on, L(n) the "
    "length drafted along the text and r(n) the most that a call drafts, the calls of a text that draft j tokens "
    "or more are in the mean over texts E sum_n v(n) w_(n,j-1) 1[L(n) >= j], and as well "
    "E sum_n v(n) 1[j <= r(n)] (1 - w_(n,L(n)) 1[L(n) < j])",
    latex=r"E[\#\{\text{calls drafting} \ge j\}] = E_x \sum_n v(n)\, w_{n,j-1}\, 1[L(n) \ge j] "
    r"= E_x \sum_n v(n)\, 1[j \le r(n)]\big(1 - w_{n,L(n)}\, 1[L(n) < j]\big)",
    assumptions=(
        "the target can output every token that the draft may draft; a ratio of a first choice is 1/p",
        "a call with m tokens to go drafts at most m - 1: r(n) is the least of that and k",
    ),
    evidence=(
        exact(
            Claim(
                "both are the mean of the drafts counted (token, block and argmax; three stopping rules)",
                partial(estimates, ratio),
            ),
            supported,
            over=FULL,
            wrong=Claim("without the ratios they are", partial(estimates, unweighted)),
        ),
        agreement(
            Claim("the library's estimates and bounds", partial(library_lengths, ratio)),
            supported,
            over=f"all texts, {FULL}",
            wrong=Claim("they have no ratios", partial(library_lengths, unweighted)),
        ),
    ),
    calculators=public("prediction.stopped", "Drafted DraftedLengths"),
    without={
        "symbolic": "one step: v(n) is a function of the text before n, and given it the ratios turn the mean over "
        "the target's text into that over the draft's",
        "simulation": "simulated with §11",
        "search": NO_SEARCH,
    },
)

P11_CERTAIN = Entry(
    id="§11/certain",
    title="Certain bounds on drafted tokens",
    kind="bounds",
    plain="a call that accepted tau drafts drafted min(tau + 1, L) or more, and L if it accepted L: so of the "
    "calls from n, P(tau >= j-1) 1[L >= j] draft j tokens or more, and P(tau = L) 1[L < j] do not; none drafts "
    "more than r(n)",
    latex=r"P(\tau \ge j-1)\,1[L \ge j] \;\le\; P(\text{drafts} \ge j) \;\le\; "
    r"1[j \le r(n)]\,\big(1 - P(\tau = L)\,1[L < j]\big)",
    assumptions=("the stop is a function of the drafts, as in §11", "r(n) as in §11/drafted"),
    evidence=(
        exact(
            Claim("both enclose the drafts counted", partial(certain, False)),
            supported,
            over=FULL,
            wrong=Claim("no call drafts more than min(tau + 1, L)", partial(certain, True)),
        ),
    ),
    calculators=("spectheory.prediction.stopped.DraftedLengths",),
    without={
        "symbolic": "each bound is an event that implies another",
        "certified": "no logarithm enters; the library's numbers are compared in §11/drafted",
        "simulation": "simulated with §11",
        "search": NO_SEARCH,
    },
)

P11_UNBIASED = Entry(
    id="§11/unbiased",
    title="The estimate of drafted tokens where the draft leaves the target's support",
    kind="refuted",
    plain="the ratios' estimate of drafted tokens has the right mean at temperature 0 and with filters too (a "
    "draft that the target cannot output is in no text: the estimate by calls that go on is too low, that by calls "
    "that stop too high)",
    latex=r"E[\#\{\text{calls drafting} \ge j\}] = E_x \sum_n v(n)\, w_{n,j-1}\, 1[L(n) \ge j]",
    assumptions=("drafts drawn from q, verified as by token verification",),
    evidence=(
        counterexample(
            Claim("it is what is counted", partial(one_pair, lambda mean, going, _: [equal(going, mean)])),
            lambda _: cases.pairs(2, 5),
            over=f"{BY_DENOMINATOR}, 2 drafts and 3 tokens",
            true=Claim(
                "what is counted lies between the two estimates",
                partial(one_pair, lambda mean, going, stopping: [at_most(going, mean), at_most(mean, stopping)]),
            ),
        ),
    ),
)

P11_DROPPED = Entry(
    id="§11/dropped",
    title="Stops that are no functions of the drafts before",
    kind="refuted",
    plain="any stop is lossless (one that drops the token it has just drawn is not, nor one that looks at the target's "
    "sample or at the coins of acceptance: the tokens that stay are a selection; one that reads the target's pmf is)",
    latex=r"P(X_1 = x) = p(x)",
    assumptions=("one draft drawn from q, token verification; after a stop the next token is drawn from p",),
    evidence=tuple(
        counterexample(
            Claim(f"with {false} the token is the target's", partial(lossless, law)),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=true,
        )
        for false, law, true in SELECTED
    ),
)

"""C7: how many experts several tokens touch together, whatever the skew of their routes, and by a routing log."""

from __future__ import annotations

from proofs_check.prelude import *
from spectheory.cost import Routing, distinct_experts

Route = tuple[int, ...]
"""The experts of a token in a layer."""
Law = Sequence[tuple[Route, Fraction]]
"""Routes with their probabilities."""


def touched(law: Law, tokens: int) -> Fraction:
    """Mean number of distinct experts of tokens with independent routes of one law, over every choice."""
    mean = Fraction(0)
    for routes in product(law, repeat=tokens):
        mean += math.prod([weight for _, weight in routes]) * len({expert for route, _ in routes for expert in route})
    return mean


def bound(experts: int, chosen: int, tokens: int) -> Fraction:
    """E (1 - (1 - r/E)^m)."""
    missed: Fraction = math.prod([1 - Fraction(chosen, experts)] * tokens, start=Fraction(1))
    return experts * (1 - missed)


def laws(effort: Effort) -> Iterator[Case]:
    """Every law in parts of a few, of one or two of 3 or 4 experts, up to four tokens."""
    parts = effort.pick(2, 4)
    for experts, chosen in ((3, 1), (3, 2), (4, 1), (4, 2)):
        routes = list(combinations(range(experts), chosen))
        for picked in combinations_with_replacement(routes, parts):
            law = [(route, Fraction(picked.count(route), parts)) for route in dict.fromkeys(picked)]
            for tokens in range(1, 5):
                yield {"experts": experts, "chosen": chosen, "law": tuple(law), "tokens": tokens}


def between(experts: int, chosen: int, law: Law, tokens: int) -> Iterator[Compared]:
    """No fewer than of one token, no more than by uniform routes."""
    mean = touched(law, tokens)
    yield at_least(mean, chosen)
    yield at_most(mean, bound(experts, chosen, tokens))


def alike(experts: int, chosen: int, law: Law, tokens: int) -> Iterator[Compared]:
    """Tokens that keep the route of the one before with probability 1/2, played out."""
    mean, kept = Fraction(0), Fraction(1, 2)
    for fresh in product((0, 1), repeat=tokens - 1):
        segments = 1 + sum(fresh)
        mean += math.prod([kept] * (tokens - 1)) * touched(law, segments)
    yield at_least(mean, chosen)
    yield at_most(mean, bound(experts, chosen, tokens))


def avoiding(experts: int, chosen: int, law: Law, tokens: int) -> Compared:
    """A second token that takes other experts than the first wherever it can, the first by the law."""
    second = min(2 * chosen, experts) if tokens > 1 else chosen
    return at_most(second, bound(experts, chosen, min(tokens, 2)))


def uniform(effort: Effort) -> Iterator[Case]:
    """Uniform routes over all choices."""
    for experts, chosen, tokens in product(range(2, effort.pick(5, 6)), (1, 2), range(1, 4)):
        routes = list(combinations(range(experts), chosen))
        law = tuple((route, Fraction(1, len(routes))) for route in routes)
        yield {"experts": experts, "chosen": chosen, "law": law, "tokens": tokens}


def library_bounds(experts: int, chosen: int, law: Law, tokens: int) -> Iterator[Compared]:
    """The library's ends: the upper one is the mean of uniform routes, played out."""
    found = distinct_experts(experts, chosen, tokens)
    yield computed(found.high, touched(law, tokens))
    yield computed(found.low, Fraction(chosen))
    several = distinct_experts(experts, chosen, 1, tokens)
    yield computed(several.low, touched(law, tokens))


def logs(effort: Effort) -> Iterator[Case]:
    """Routing logs of two short texts with two layers, drawn once."""
    draw = random.Random(0)
    for experts, chosen in ((3, 1), (4, 2), (6, 3)):
        for _ in range(effort.pick(2, 8)):
            texts = tuple(
                tuple(tuple(tuple(draw.sample(range(experts), chosen)) for _ in range(2)) for _ in range(length))
                for length in (draw.randint(3, 6), draw.randint(4, 7))
            )
            for tokens, batch in ((1, 1), (2, 1), (3, 1), (2, 3)):
                yield {"experts": experts, "texts": texts, "tokens": tokens, "batch": batch}


def windows(texts: Any, layer: int, tokens: int) -> list[set[int]]:
    """The experts that every window of consecutive tokens touches in a layer."""
    return [
        {expert for token in text[start : start + tokens] for expert in token[layer]}
        for text in texts
        for start in range(len(text) - tokens + 1)
    ]


def counted(experts: int, texts: Any, tokens: int, batch: int) -> Compared:
    """A log's mean: over all windows of one text, and over every choice of windows of several."""
    means = []
    for layer in (0, 1):
        sets = windows(texts, layer, tokens)
        chosen = product(sets, repeat=batch)
        means.append(Fraction(sum(len(set().union(*each)) for each in chosen), len(sets) ** batch))
    return computed(Routing(texts, experts).distinct(tokens, batch), total(means) / 2)


def as_independent(experts: int, texts: Any, tokens: int, batch: int) -> Compared:
    """The law of independent uniform routes stands for the log."""
    high = bound(experts, len(texts[0][0][0]), tokens * batch)
    return computed(Routing(texts, experts).distinct(tokens, batch), high)


CONCAVE: tuple[Step, ...] = (
    same(
        "x, b >= 0 and B = b^(m-1): x times the tangent of x^m at b, minus the tangent of x^(m+1) there, is a square",
        lambda x, b, B, m: (
            x * (B * b + m * B * (x - b)) - (B * b * b + (m + 1) * B * b * (x - b)),
            m * B * (x - b) * (x - b),
        ),
    ),
    valid(
        "so by induction on m every x^m lies above its tangent at b: what x^m >= T gives x^(m+1) >= xT",
        lambda x, X, T: at_least(x * X, x * T),
        lambda x, X, T: [x >= 0, X >= T],
    ),
    valid(
        "with x = 1 - p and b = 1 - a: an expert of probability p is touched with 1 - X, at most 1 - B - t(a - p), "
        "where t(a - p) is the tangent's rise",
        lambda X, B, t, a, p: at_most(1 - X, 1 - B - t * (a - p)),
        lambda X, B, t, a, p: [B + t * (a - p) <= X],
    ),
    same(
        "probabilities of E experts sum to r = aE, so the rises cancel: the sum is at most E(1 - (1 - a)^m); for three",
        lambda B, t, a, p, q: (
            (1 - B - t * (a - p)) + (1 - B - t * (a - q)) + (1 - B - t * (a - (3 * a - p - q))),
            3 * (1 - B),
        ),
    ),
    valid(
        "several tokens touch what the first one does: at least r",
        lambda first, others: at_least(first + others, first),
        lambda first, others: [others >= 0],
    ),
)
"""Concavity: skew lowers the mean."""

C7 = Entry(
    id="C7",
    title="Distinct experts of several tokens",
    kind="upper bound",
    plain="m tokens, each routed to r of E experts of a layer with i.i.d. routes, touch at most E(1 - (1 - r/E)^m) in "
    "the mean, whatever the skew, and at least r; tokens that keep routes of those before touch fewer",
    latex=r"r\le\mathbb E\Big|\bigcup_{i\le m}R_i\Big|\le E\,\big(1-(1-r/E)^m\big)",
    assumptions=("routes of tokens are independent and of one law, or alike; tokens do not avoid others' experts",),
    calculators=public("cost", "Routing distinct_experts"),
    evidence=(
        proof("concavity, by a tangent; monotone in the tokens", CONCAVE),
        exact(
            Claim("between r and the mean of uniform routes", between),
            laws,
            over="every law in halves (full: quarters) on 1 or 2 of 3 or 4 experts, up to 4 tokens",
            wrong=Claim(
                "skewed routes touch at least as many as uniform ones",
                lambda experts, chosen, law, tokens: at_least(touched(law, tokens), bound(experts, chosen, tokens)),
            ),
        ),
        exact(
            Claim("routes that are kept with probability 1/2 touch no more", alike),
            laws,
            over="the same laws",
            wrong=Claim("tokens that avoid the experts of others touch no more", avoiding),
        ),
        agreement(
            Claim("the library's bounds, and uniform routes played out", library_bounds),
            uniform,
            wrong=Claim(
                "m tokens touch m r experts",
                lambda experts, chosen, law, tokens: computed(
                    distinct_experts(experts, chosen, tokens).high, Fraction(chosen * tokens)
                ),
            ),
        ),
        agreement(
            Claim("a routing log, window by window and choice by choice", counted),
            logs,
            wrong=Claim("windows of a log are independent tokens", as_independent),
        ),
    ),
    without={
        "search": "the laws are enumerated",
        "simulation": "every route is enumerated, and a log is counted",
    },
)

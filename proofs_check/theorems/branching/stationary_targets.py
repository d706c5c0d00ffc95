"""B9: stationary ergodic targets, with the condition under which E[X]/log P tends to 1/h, and without it."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.branching.random_pmf_trees import best, grown
from spectheory.limits import window_bound

# A stationary ergodic target with long certain stretches (B9): a renewal process on three tokens, in fractions.


U, Z, S = 0, 1, 2


def mean_block(r: Fraction) -> Fraction:
    """Mean tokens of a block: of its code, and of its stretch."""
    return 1 / (1 - r) + 2 * (1 - r) / (1 - 2 * r)


def entropy_rate(r: Fraction) -> Real:
    """Nats per token: the coin is thrown once for each token of a code."""
    coin = -(r * log(r) + (1 - r) * log(1 - r))
    return coin / (1 - r) / mean_block(r)


def left_with(r: Fraction, m: int) -> Fraction:
    """Probability that a random start has m certain tokens before it, m >= 1: any level j with 2^j >= m."""
    level = max((m - 1).bit_length(), 1)
    return r ** (level - 1) / mean_block(r)


def in_code(r: Fraction) -> Fraction:
    """Probability that a random start lies in a code."""
    return 1 / (1 - r) / mean_block(r)


def in_block(r: Fraction, level: int) -> Model:
    """The pmf after a prefix that begins in a code, level - 1 u after the block's start: a new block has level 1."""
    coin: Pmf = (r, 1 - r, Fraction(0))
    certain: Pmf = (Fraction(0), Fraction(0), Fraction(1))

    def model(prefix: Prefix) -> Pmf:
        at, left = level, 0
        for token in prefix:
            if left:
                left -= 1
                at = at if left else 1
            elif token == U:
                at += 1
            else:
                left = 1 << at
        return certain if left else coin

    return model


def values(r: Fraction, capacity: int, level: int = 1) -> list[Fraction]:
    """E[X] of the best tree of 0, 1, ..., P prefixes that starts in a code at a level."""
    sums = [Fraction(0)]
    for weight, _ in grown(in_block(r, level), capacity):
        sums.append(sums[-1] + weight)
    return sums


def stationary_value(r: Fraction, capacity: int) -> Fraction:
    """E[X] of the best trees of P prefixes at a random start: in a stretch, its tokens, then the tree after them.

    In a code the drafter knows the u before the start. From the level with 2^level >= P on no stretch ends in the tree,
    and the levels are alike.
    """
    after = values(r, capacity)
    shares = [left_with(r, m) for m in range(1, capacity)]
    deepest = max((capacity - 1).bit_length(), 1)
    whole = r ** (deepest - 1) * in_code(r) * values(r, capacity, deepest)[capacity]
    for level in range(1, deepest):
        whole += r ** (level - 1) / mean_block(r) * values(r, capacity, level)[capacity]
    whole += total(share * (m + after[capacity - m]) for m, share in enumerate(shares, start=1))
    return whole + (1 - in_code(r) - total(shares)) * capacity


def certain_part(r: Fraction, capacity: int) -> Fraction:
    """E min(left, P), the certain tokens of a random start that P prefixes hold."""
    shares = [left_with(r, m) for m in range(1, capacity)]
    inside = total(share * m for m, share in enumerate(shares, start=1))
    return inside + (1 - in_code(r) - total(shares)) * capacity


Rows = Sequence[Pmf]
"""Of a Markov chain: the pmf of the next token after each token."""


def weights_after(rows: Rows, state: int, tokens: int) -> list[tuple[Fraction, Fraction]]:
    """The weight W_w of every text of so many tokens after a state, beside its probability: the same number."""
    weights = []
    for text in product(range(len(rows)), repeat=tokens):
        weight, at = Fraction(1), state
        for token in text:
            weight, at = weight * rows[at][token], token
        if weight > 0:
            weights.append((weight, weight))
    return weights


def window_of(rows: Rows) -> tuple[int, Fraction, Fraction]:
    """Tokens w of a window, c = e^-delta, and epsilon, the least probability over states that W_w <= c."""
    tokens = len(rows)
    laws = [weights_after(rows, state, tokens) for state in range(len(rows))]
    c = max(weight for law in laws for weight, _ in law if weight < 1)
    return tokens, c, min(total(share for weight, share in law if weight <= c) for law in laws)


UNPREDICTABLE = Assumption("after every token the next ones are uncertain", lambda rows, **_: _uncertain(rows))


def _uncertain(rows: Rows) -> bool:
    """Whether no state lies on certain tokens without end."""
    for state in range(len(rows)):
        at = state
        for _ in rows:
            if max(rows[at]) < 1:
                break
            at = rows[at].index(Fraction(1))
        else:
            return False
    return True


def number_law(rows: Rows, state: int, least: Fraction) -> dict[int, Fraction]:
    """The law of N(t), the tokens of a text whose weight is at least `least` = e^-t: every text, token by token."""

    def next_token(place: tuple[int, int, Fraction]) -> Iterable[tuple[Any, Fraction]] | None:
        n, at, weight = place
        return (((n + 1, z, weight * p), p) for z, p in enumerate(rows[at])) if weight >= least else None

    return law((n - 1, share) for (n, *_), share in end_of((0, state, Fraction(1)), next_token).items())


def sandwich(rows: Rows, state: int, steps: int, depth: int, lost: int = 0) -> Iterator[Compared]:
    """E min(N, D) <= E[X] at P = D e^t, E[X] <= E N + P e^-t, and the moments of N by windows; `lost` is the control's.

    At t = steps * delta everything is a fraction.
    """
    tokens, c, often = window_of(rows)
    least = c**steps
    law = number_law(rows, state, least)
    mean = total(n * share for n, share in law.items())
    square = total(n * n * share for n, share in law.items())

    def value(capacity: int) -> Fraction:
        return best(lambda prefix: rows[prefix[-1] if prefix else state], capacity)

    nodes = math.floor(depth / least)
    yield at_most(total(min(n, depth) * share for n, share in law.items()), value(nodes))
    for capacity in (1, 2, nodes):
        yield at_most(value(capacity), mean + (1 - lost) * capacity * least)
    yield at_most(mean, tokens * (steps + 1) / often - 1)
    yield at_most(square, (tokens * (steps + 1)) ** 2 * (2 - often) / often**2)


def chain_cases(effort: Effort) -> Iterator[Case]:
    """Chains on 2 or 3 tokens, certain rows among them; t up to 3 steps."""
    rng = random.Random(effort.seed)
    count = 0
    while count < effort.pick(40, 300):
        tokens = 2 + count % 2
        rows = tuple(random_pmf(rng, tokens, 2) for _ in range(tokens))
        if _uncertain(rows):
            _, c, _ = window_of(rows)
            if c <= Fraction(3, 4):
                yield {"rows": rows, "state": count % tokens, "steps": 1 + count % 3, "depth": 1 + count % 4}
                count += 1


def drawn_chains() -> st.SearchStrategy[Case]:
    """Chains on 2 tokens."""
    row = st.integers(1, 4).map(lambda part: (Fraction(part, 5), Fraction(5 - part, 5)))
    rows = st.tuples(row, row)
    return st.fixed_dictionaries(
        {"rows": rows, "state": st.integers(0, 1), "steps": st.integers(1, 2), "depth": st.integers(1, 3)}
    )


def by_windows(rows: Rows, state: int, steps: int, depth: int, lost: int = 0) -> Iterator[Compared]:
    """E[X] against w (log P/delta + 1)/epsilon; without the 1/epsilon for the control."""
    tokens, c, often = window_of(rows)
    for capacity in (2, 5, 4 * depth):
        value = best(lambda prefix: rows[prefix[-1] if prefix else state], capacity)
        yield at_most(value, tokens * (log(Fraction(capacity)) / -log(c) + 1) / (4 if lost else often))


def window_library(rows: Rows, state: int, steps: int, depth: int, lost: int = 0) -> Iterator[Compared]:
    """The library's bound at P between e^(n delta) and e^((n+1) delta), where the whole number of steps is n."""
    tokens, c, often = window_of(rows)
    capacity = math.ceil(1 / c**steps)
    whole = 0
    while 1 / c ** (whole + 1) <= capacity:
        whole += 1
    if 1 / c**whole != capacity:  # where they are equal, rounding decides
        value = window_bound(capacity, tokens, -math.log(c), float(often))
        yield computed(value, min(tokens * (whole + 1 + lost) / often, Fraction(capacity)))
    yield computed(window_bound(1, 1, 1.0, 1.0), Fraction(1))


SQUEEZE: tuple[Step, ...] = (
    cited(
        "given the whole past, S_n is a sum of n stationary ergodic terms of mean h: S_n/n tends to h almost surely",
        "Birkhoff's ergodic theorem",
    ),
    valid(
        "S_N <= t < S_{N+1} at N = N(t): N/t <= N/S_N and (N+1)/t >= (N+1)/S_{N+1}, which both tend to 1/h, as N(t) "
        "grows without end: N(t)/t tends to 1/h almost surely",
        lambda N, t, S, R: [at_most(N / t, N / S), at_most((N + 1) / R, (N + 1) / t)],
        lambda N, t, S, R: [N > 0, t > 0, S > 0, t >= S, t < R],
    ),
    valid(
        "upper: each term of B6's sum is at most 1[S <= t], so E[X] <= E N(t) + P e^-t = E N(log P) + 1 at t = log P",
        lambda w, c, P, N: [at_most(positive_part(1 - c / w), 1), equal(N + P * c, N + 1)],
        lambda w, c, P, N: [w > 0, c > 0, P > 0, P * c == 1],
    ),
    valid(
        "lower: the m prefixes of one length with pi >= c = e^-t weigh at most 1 together: m <= 1/c, so those of "
        "length 1 to D are a tree of at most D e^t prefixes",
        lambda m, c, total: at_most(m, 1 / c),
        lambda m, c, total: [c > 0, total >= m * c, total <= 1],
    ),
    valid(
        "its weight is sum_{n<=D} P(S_n <= t) = E min(N(t), D), as S_n does not fall: for two lengths, with x = "
        "1[S_1 <= t] and y = 1[S_2 <= t] <= x, N = x + y and min(N, 1) = x",
        lambda x, y: equal(x, x * (x + y) - x * y),
        lambda x, y: [x * (1 - x) == 0, y * (1 - y) == 0, y <= x],
    ),
    same(
        "with D = b t, P = b t e^t: log P = t + log(b t), and log P/t tends to 1",
        lambda b: (_limit(lambda t: (t + _log(b * t)) / t), b / b),
    ),
    cited(
        "so for every b > 1/h the lower limit of E[X]/log P is at least that of E min(N(t)/t, b), which is 1/h: min "
        "is bounded by b; this half needs no condition",
        "dominated convergence",
    ),
    cited(
        "and if N(t)/t is uniformly integrable, E N(t)/t tends to 1/h: E[X]/log P does too",
        "Vitali's convergence theorem",
    ),
)

WINDOWS: tuple[Step, ...] = (
    valid(
        "if m = floor(t/delta) + 1 of the first K windows have a surprisal of delta or more, S_{wK} >= m delta > t and "
        "N(t) < w K",
        lambda m, d, t, S: at_most(t, S),
        lambda m, d, t, S: [d > 0, m * d <= S, t < m * d],
    ),
    same(
        "K is at most a sum of m waiting times with success epsilon, of mean sum_k k e (1-e)^(k-1) = 1/e: its partial "
        "sums are (1 - (1-e)^n (1 + n e))/e",
        lambda e, n: (
            (1 - (1 - e) ** (n + 1) * (1 + (n + 1) * e)) / e - (1 - (1 - e) ** n * (1 + n * e)) / e,
            (n + 1) * e * (1 - e) ** n,
        ),
        integers=("n",),
    ),
    same(
        "and second moment (2 - e)/e^2: with G = 1 for success at once, else 1 + G' of the same law, E G^2 = e + "
        "(1-e)(1 + 2/e + E G^2)",
        lambda e: (e + (1 - e) * (1 + 2 / e + (2 - e) / e**2), (2 - e) / e**2),
    ),
    valid(
        "(x + y)^2 <= 2 (x^2 + y^2), and so for m terms m times the sum of squares: E N(t)^2 <= w^2 m^2 (2 - e)/e^2; "
        "as m/t is bounded, N(t)/t is bounded in mean square, so uniformly integrable",
        lambda x, y: at_most((x + y) * (x + y), 2 * (x * x + y * y)),
    ),
    valid(
        "E N(log P) + 1 <= w m/e - 1 + 1",
        lambda N, w, m, e: at_most(N + 1, w * m / e),
        lambda N, w, m, e: [e > 0, w > 0, m > 0, w * m / e - 1 >= N],
    ),
)


def _limit(of: object) -> object:
    from proofs_check.statement import calculus

    t = calculus.algebra().Symbol("t", positive=True)
    return calculus.limit(of(t), t, calculus.algebra().oo)  # type: ignore[operator]


def _log(x: object) -> object:
    from proofs_check.statement import calculus

    return calculus.log(x)


# Without the condition


def stretched(r: Fraction, capacity: int, value: Fraction, short: Fraction, short_form: bool = False) -> Compared:
    """E[X] against log P/h + 1, at r, or at 1/8 where the stretches have a mean remaining length."""
    rate: Real = entropy_rate(Fraction(1, 8) if short_form else r)
    return at_most(short if short_form else value, log(Fraction(capacity)) / rate + 1)


def stretch_cases(_: Effort) -> Iterator[Case]:
    """Blocks with r = 2/5, P = 2, 4, ..., 256."""
    for n in range(1, 9):
        r, capacity = Fraction(2, 5), 1 << n
        short = stationary_value(Fraction(1, 8), capacity)
        yield {"r": r, "capacity": capacity, "value": stationary_value(r, capacity), "short": short}


def certain_growth(n: int, integrable: bool = False) -> Compared:
    """The certain tokens that 2^n prefixes hold, in the mean, against a line in n."""
    return at_most(certain_part(Fraction(1, 8) if integrable else Fraction(2, 5), 1 << n), Fraction(2 * (n + 1)))


SAYS = "E min(N(t), D) <= E[X] at P = D e^t; E[X] <= E N(t) + P e^-t; E N(t) and E N(t)^2 by windows"
SANDWICH = Claim(SAYS, sandwich, (UNPREDICTABLE,))
SANDWICH_WRONG = Claim("E[X] <= E N(t)", lambda **case: sandwich(**case, lost=1), (UNPREDICTABLE,))

B9 = Entry(
    id="B9",
    title="Stationary ergodic targets",
    kind="asymptotic",
    plain="for a stationary ergodic target of entropy rate 0 < h < infinity, N(t) = #{i : S_i <= t}: N(t)/t -> 1/h "
    "almost surely and lim inf E[X]/log P >= 1/h; if N(t)/t is uniformly integrable E[X]/log P -> 1/h. Enough: "
    "whatever the text before, the next w tokens have a surprisal >= delta with probability >= epsilon; then E[X] "
    "<= w (floor(log P/delta) + 1)/epsilon",
    latex=r"\frac{N(t)}{t} \to \frac1h,\quad \frac{E[X]}{\log P} \to \frac1h,\quad "
    r"E[X] \le E N(\log P) + 1 \le \frac{w(\lfloor\log P/\delta\rfloor + 1)}{\epsilon}",
    assumptions=(
        "the drafter knows the target and the whole text before, not the sampling (B4)",
        "N(t)/t is uniformly integrable, for the upper half; finite Markov chains without certain cycles meet the "
        "window condition",
    ),
    calculators=("spectheory.limits.window_bound",),
    evidence=(
        proof(
            "the ergodic theorem, inverted; B6 from above, the prefixes of probability e^-t and more from below",
            SQUEEZE,
        ),
        proof("windows: N(t) is at most a sum of waiting times", WINDOWS),
        exact(SANDWICH, chain_cases, over="Markov chains on 2 or 3 tokens, every text", wrong=SANDWICH_WRONG),
        certified(
            Claim("E[X] <= w (log P/delta + 1)/epsilon", by_windows, (UNPREDICTABLE,)),
            chain_cases,
            over="Markov chains on 2 or 3 tokens, P up to 16",
            wrong=Claim("E[X] <= w (log P/delta + 1)/4", lambda **case: by_windows(**case, lost=1), (UNPREDICTABLE,)),
        ),
        agreement(
            Claim("the library's window bound", window_library, (UNPREDICTABLE,)),
            chain_cases,
            over="Markov chains on 2 or 3 tokens, P up to 64",
            wrong=Claim("with one window more", lambda **case: window_library(**case, lost=1), (UNPREDICTABLE,)),
        ),
        searched(SANDWICH, drawn_chains, wrong=SANDWICH_WRONG),
    ),
)

B9_STRETCHES = Entry(
    id="B9/stretches",
    title="B9 without its condition",
    kind="refuted",
    plain="E[X] <= log P/h + 1 for every stationary ergodic target of entropy rate h > 0. With blocks u^(j-1) z "
    "s^(2^j), u of probability r = 2/5, a random start has m certain tokens before it with probability of order "
    "m^-1.32: E[X] grows at least like P^0.678, and E N(t) is infinite for every t",
    latex=r"\frac{E[X]}{\log P} \to \frac1h \text{ for every stationary ergodic target}",
    assumptions=("stationary, ergodic, three tokens, 0 < h",),
    evidence=(
        counterexample(
            Claim("E[X] <= log P/h + 1", stretched),
            stretch_cases,
            true=Claim("it holds for r = 1/8, of short stretches", lambda **case: stretched(**case, short_form=True)),
            kind="certified",
        ),
        counterexample(
            Claim("the certain tokens among P = 2^n prefixes are at most 2 (n + 1) in the mean", certain_growth),
            lambda effort: all_of(n=range(1, 12)),
            over="blocks with r = 2/5, n = 1 to 11",
            true=Claim("they are for r = 1/8", lambda n: certain_growth(n, integrable=True)),
        ),
    ),
)

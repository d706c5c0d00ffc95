"""§15: which drafts of which requests to verify, for the most tokens per second of a whole batch."""

from __future__ import annotations

from proofs_check.prelude import *
from spectheory.deployment.batch_budget import best_budget, call_laws, sum_law
from spectheory.deployment.budgets import BudgetChoice, plan_budgets
from spectheory.deployment.step_times import StepTable
from spectheory.trace import Trace

# One step, in any arithmetic: every choice of prefixes, and the best threshold.


Rows = Sequence[Sequence[Real]]
"""P(a request accepts its first i drafts), i = 1..K, a row for each request."""


def rate(rows: Rows, times: Sequence[Real], lengths: Sequence[int]) -> Real:
    """Tokens over time of a step that verifies so many drafts of each request."""
    tokens = total(1 + total(row[:k]) for row, k in zip(rows, lengths, strict=True))
    return tokens / times[sum(lengths)]


def of_all(rows: Rows, times: Sequence[Real]) -> Real:
    """The best of all choices of prefixes."""
    return max(rate(rows, times, chosen) for chosen in product(range(len(rows[0]) + 1), repeat=len(rows)))


def by_order(rows: Rows, times: Sequence[Real]) -> Real:
    """The best number of drafts, those of the largest values, of whatever requests."""
    values = sorted((value for row in rows for value in row), reverse=True)
    sums = accumulate(values, initial=Fraction(len(rows)))
    return max(tokens / time for tokens, time in zip(sums, times, strict=True))


def one_step(rows: Rows, times: Sequence[Real]) -> Compared:
    """The largest values give the best of all choices of prefixes."""
    return equal(by_order(rows, times), of_all(rows, times))


def library_step(least: bool, rows: Rows, times: Sequence[Real]) -> Iterator[Compared]:
    """The library's choice."""
    choice = best_budget([[float(value) for value in row] for row in rows], [float(time) for time in times])
    best = of_all(rows, times)
    yield computed(choice.rate, rate(rows, times, [0] * len(rows)) if least else best)
    if not least:
        yield equal(rate(rows, times, choice.lengths.tolist()), best)


def _stairs(rng: random.Random, most: int) -> list[Fraction]:
    """Times that do not fall: a line, stairs, or any steps."""
    width, kind, slope = rng.randint(2, 4), rng.randrange(3), Fraction(1, rng.randint(1, 12))
    if kind < 2:
        return [1 + slope * (-(-j // width) * width if kind else j) for j in range(most + 1)]
    return list(accumulate((Fraction(rng.randint(0, 3), 7) for _ in range(most)), initial=Fraction(1)))


def steps_of_requests(effort: Effort) -> Iterator[Case]:
    """Random requests, up to 4 of up to 3 drafts, with ties; times on lines, with stairs, and any that rise."""
    rng = random.Random(f"budgets {effort.seed}")
    for _ in range(effort.pick(120, 600)):
        requests, k = rng.randint(1, 4), rng.randint(1, 3)
        rows = [sorted((Fraction(rng.randint(0, 6), 6) for _ in range(k)), reverse=True) for _ in range(requests)]
        yield {"rows": rows, "times": _stairs(rng, requests * k)}


def rising_requests(effort: Effort) -> Iterator[Case]:
    """The same with values that rise along a request, as no probability of acceptance does."""
    for case in steps_of_requests(effort):
        yield {**case, "rows": [row[::-1] for row in case["rows"]]}


STEP_PROOF: tuple[Step, ...] = (
    valid(
        "of two drafts verified and left out, the exchange for the larger value does not lower the tokens, and the "
        "step takes as long: so for each number of drafts the largest values are best",
        lambda tokens, s, u, t: at_most((tokens + u) / t, (tokens + s) / t),
        lambda tokens, s, u, t: [tokens > 0, u >= 0, s >= u, t > 0],
    ),
    in_words(
        "along a request values do not rise: with a later draft of value u the earlier one, s = u + d, is among the "
        "largest too, or equal to it; so they are prefixes, those with s >= threshold",
        lambda u, d: (u + d, d + u),
    ),
)

# The long run with starts that no choice moves: the threshold is throughput times the time of one more token.


def long_rate(rows: Rows, shares: Sequence[Real], step: tuple[Real, Real], batch: int, lengths: Sequence[int]) -> Real:
    """Tokens per second where a start of share w verifies so many drafts; a step takes a, and b for each token."""
    fixed, each = step
    tokens = total(w * (1 + total(row[:k])) for row, w, k in zip(rows, shares, lengths, strict=True))
    drafts = total(w * k for w, k in zip(shares, lengths, strict=True))
    return batch * tokens / (fixed + each * batch * (1 + drafts))


def fixed_point(factor: Fraction, rows: Rows, shares: Sequence[Real], step: tuple[Real, Real], batch: int) -> Compared:
    """The drafts with s >= throughput times the time of one more token give the best of all choices."""
    choices = product(range(len(rows[0]) + 1), repeat=len(rows))
    best = max(long_rate(rows, shares, step, batch, lengths) for lengths in choices)
    lengths = [sum(value >= factor * best * step[1] for value in row) for row in rows]
    return equal(long_rate(rows, shares, step, batch, lengths), best)


def starts(effort: Effort) -> Iterator[Case]:
    """Three starts with random shares, up to 3 drafts; a fixed time and one for each token; up to 8 requests."""
    rng = random.Random(f"starts {effort.seed}")
    for _ in range(effort.pick(60, 300)):
        k = rng.randint(1, 3)
        rows = [sorted((Fraction(rng.randint(1, 20), 20) for _ in range(k)), reverse=True) for _ in range(3)]
        step = Fraction(rng.randint(0, 10)), Fraction(rng.randint(1, 8), 4)
        yield {
            "rows": rows,
            "shares": list(pmf_of([rng.randint(1, 5) for _ in range(3)])),
            "step": step,
            "batch": rng.randint(1, 8),
        }


POINT_PROOF: tuple[Step, ...] = (
    same(
        "with g the best ratio of tokens N to time T, N - g T is 0 there and at most 0 elsewhere (Dinkelbach); a start "
        "of share w adds w R (s - g b) for each draft",
        lambda N, g, T, w, R, s, b: ((N + w * R * s) - g * (T + w * R * b), N - g * T + w * R * (s - g * b)),
    ),
    valid(
        "so verifying a draft with s >= g b does not lower N - g T, nor does leaving out one below",
        lambda w, R, s, g, b: at_least(w * R * (s - g * b), 0),
        lambda w, R, s, g, b: [w >= 0, R >= 1, g >= 0, b >= 0, s >= g * b],
    ),
)

# The step of the long run, and the limit: texts without end, in fractions.


class Served(NamedTuple):
    """One text, over and over: acceptances of its tokens after the first, the most drafts, requests, and times."""

    accepted: Sequence[Fraction]
    k: int
    batch: int
    times: Sequence[Fraction]

    def survival(self, n: int) -> list[Fraction]:
        """Of a call from token n on; nothing is accepted past the end."""
        inside = [*self.accepted[n : n + self.k], *[Fraction(0)] * self.k]
        return list(accumulate(inside[: self.k], lambda a, b: a * b))

    def calls(self, drafts: Sequence[int]) -> Iterator[tuple[int, int, Fraction]]:
        """A call's start, its tokens, and how often it happens in a text, by following every outcome."""

        def follow(n: int, chance: Fraction) -> Iterator[tuple[int, int, Fraction]]:
            left = len(self.accepted) - n
            if left <= 0:
                return
            reached = [Fraction(1), *self.survival(n)[: drafts[n]], Fraction(0)]
            for i, (here, beyond) in enumerate(pairwise(reached)):
                if here > beyond:
                    yield n, min(i + 1, left), chance * (here - beyond)
                    yield from follow(n + i + 1, chance * (here - beyond))

        return follow(0, Fraction(1))

    def rate(self, drafts: Sequence[int]) -> Fraction:
        """Tokens per second of independent requests, each found at any of its calls alike."""
        law, tokens, number = [Fraction(0)] * (self.k + 1), Fraction(0), Fraction(0)
        for n, given, chance in self.calls(drafts):
            law[drafts[n]] += chance
            tokens, number = tokens + given * chance, number + chance
        seconds = Fraction(0)
        for chosen in product(range(self.k + 1), repeat=self.batch):
            seconds += math.prod(law[j] / number for j in chosen) * self.times[sum(chosen)]
        return self.batch * tokens / number / seconds

    def lines(self) -> Iterator[tuple[Fraction, Fraction]]:
        """Lines below the times through two of their points: at 0, and the slope."""
        for (i, low), (j, high) in combinations(enumerate(self.times), 2):
            slope = (high - low) / (j - i)
            if all(time >= low + slope * (m - i) for m, time in enumerate(self.times)):
                yield low - slope * i, slope

    def bound(self, line: tuple[Fraction, Fraction]) -> Fraction:
        """Tokens over the least time of a text, lengths chosen with the accepted drafts known."""
        fixed, slope = line
        ahead = [Fraction(0)] * (self.k + 2)
        for n in reversed(range(len(self.accepted))):
            costs = [fixed / self.batch + slope * i + ahead[i] for i in range(self.k + 1)]
            least, reached = list(accumulate(costs, min)), [Fraction(1), *self.survival(n), Fraction(0)]
            ahead = [total((a - b) * c for (a, b), c in zip(pairwise(reached), least, strict=True)), *ahead[:-1]]
        return len(self.accepted) / ahead[0] if ahead[0] > 0 else Fraction(10**9)  # none: a steep line lies below 0


def limits(above: bool, case: Served) -> Iterator[Compared]:
    """Every choice of lengths by start stays below every line's bound, or does if the limit is the best of them."""
    rates = [case.rate(drafts) for drafts in product(range(case.k + 1), repeat=len(case.accepted))]
    least = min(map(case.bound, case.lines()))
    yield at_most(least, max(rates)) if above else at_most(max(rates), least)


def servers(effort: Effort) -> Iterator[Case]:
    """Random texts of 3 tokens, up to 2 drafts, 2 requests; times on lines, with stairs, and any that rise."""
    rng = random.Random(f"servers {effort.seed}")
    for _ in range(effort.pick(12, 60)):
        k = rng.randint(1, 2)
        accepted = [Fraction(rng.randint(0, 4), 4) for _ in range(3)]
        yield {"case": Served(accepted, k, 2, _stairs(rng, 2 * k))}


def library_laws(shifted: bool, case: Served) -> Iterator[Compared]:
    """The library's laws of a call and of a step, for every choice of lengths by start."""
    n, times = len(case.accepted), np.array([float(time) for time in case.times])
    survival = np.array([[float(value) for value in case.survival(at)] for at in range(n)])
    for drafts in product(range(case.k + 1), repeat=n):
        verified = np.array([0, *drafts])
        law, tokens = call_laws(np.vstack([survival[:1], survival]), verified, np.array([n + 1]))
        step = sum_law(law, case.batch - shifted)
        seconds = float(step @ times[: len(step)])
        yield computed(case.batch * float(tokens @ np.arange(len(tokens))) / seconds, case.rate(drafts))


def _planned(case: Served) -> BudgetChoice:
    logs = [0.0, *(math.log(a) if a else -math.inf for a in map(float, case.accepted))]
    trace = Trace.from_log_probabilities([([0.0] * len(logs), logs)])
    table = StepTable(tuple(case.batch + j for j in range(len(case.times))), tuple(map(float, case.times)))
    return plan_budgets(trace, table, batches=[case.batch], k_max=case.k).choices[0]


def library_plan(other: bool, case: Served) -> Iterator[Compared]:
    """The library's rates of plain decoding and of the longest chain, and that no policy passes its limit."""
    choice, n = _planned(case), len(case.accepted)
    left = [min(case.k, n - 1 - at) for at in range(n)]
    yield computed(choice.plain.per_second.best, case.rate([0] * n))
    yield computed(choice.longest.per_second.best, case.rate([case.k] * n if other else left))
    for point in (choice.plain, choice.fixed, choice.informed):
        yield at_most(Fraction(point.per_second.best) * (1 - Fraction(1, 10**12)), Fraction(choice.limit))


LIMIT_PROOF: tuple[Step, ...] = (
    valid(
        "a step's time is at least that on a line below the times, which is shared out: of two requests with L and M "
        "drafts each takes a/2, and b for each draft of its own",
        lambda a, b, L, M, t: at_least(t, (a / 2 + b * L) + (a / 2 + b * M)),
        lambda a, b, L, M, t: [t >= a + b * (L + M)],
    ),
    valid(
        "a call that verifies L drafts accepts m = min(L, tau): verifying m alone costs no more and leads to the same "
        "place; so a text's calls take at least T(0), in which each takes the least over all L <= tau",
        lambda a, b, L, m, T, least: at_least(a + b * L + T, least),
        lambda a, b, L, m, T, least: [b >= 0, m <= L, least <= a + b * m + T],
    ),
    in_words(
        "the seconds of all steps are at least those of all calls, a/R + b L each: N tokens take N/rate >= T, the mean "
        "over texts",
        lambda N, T: (N / T * T, N),
    ),
)

STEADY = {
    "survival": [[0.0, 0.0], [0.9, 0.72], [0.8, 0.2], [0.5, 0.45], [0.3, 0.1]] * 2,
    "lengths": [4, 6],
    "drafts": [0, 2, 1, 2, 0, 2, 2, 1, 2, 1],
    "batch": 5,
    "seconds": [1 + -(-j // 3) / 4 for j in range(11)],
}

# What may decide.


Decide = Callable[[int, Sequence[int]], bool]
"""Whether draft i = 0, 1, ... of these is verified."""


def outputs(target: Sequence[Pmf], draft: Sequence[Pmf], decide: Decide) -> list[Fraction]:
    """Law of two tokens from one call of two drafts by token verification, the target's own after it."""
    law = [Fraction(0)] * len(target[0]) ** 2
    size = len(target[0])
    for drafts in product(range(size), repeat=2):
        chance, open_share = draft[0][drafts[0]] * draft[1][drafts[1]], Fraction(1)
        out: list[tuple[tuple[int, ...], Fraction]] = []
        for i, y in enumerate(drafts):
            p, q = target[i], draft[i]
            if not decide(i, drafts):
                out += [((*drafts[:i], x), open_share * p[x]) for x in range(size)]
                open_share = Fraction(0)
                break
            taken = min(Fraction(1), p[y] / q[y]) if q[y] else Fraction(1)
            excess = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
            if total(excess):
                out += [((*drafts[:i], x), open_share * (1 - taken) * e / total(excess)) for x, e in enumerate(excess)]
            open_share *= taken
        out.append((drafts, open_share))
        for tokens, share in out:
            for x in range(size):
                whole, further = (tokens, Fraction(x == 0)) if len(tokens) == 2 else ((*tokens, x), target[1][x])
                law[whole[0] * size + whole[1]] += chance * share * further
    return law


def keeps_the_law(own: bool, target: Sequence[Pmf], draft: Sequence[Pmf]) -> Iterator[Compared]:
    """Every function of the drafts before, or of a draft's own value, leaves the output the target's."""
    size = len(target[0])
    wanted = [a * b for a in target[0] for b in target[1]]
    for first, *second in product((False, True), repeat=1 + size):

        def decide(i: int, drafts: Sequence[int], first: bool = first, second: Sequence[bool] = second) -> bool:
            return second[drafts[i]] if own else (second[drafts[0]] if i else first)

        yield equal(tuple(outputs(target, draft, decide)), tuple(wanted))


def positions(effort: Effort) -> Iterator[Case]:
    """Two positions of random pmfs on two and three tokens."""
    rng = random.Random(f"decide {effort.seed}")
    for size in (2, 3):
        for _ in range(effort.pick(8, 30)):
            yield {name: [random_pmf(rng, size) for _ in range(2)] for name in ("target", "draft")}


def dspark(share: Fraction, target: Pmf, draft: Pmf) -> Compared:
    """Verified only if the draft is token 0: token 0 is output with this probability."""
    law = outputs([target, target], [draft, draft], lambda i, drafts: i == 0 and drafts[0] == 0)
    return equal(law[0] + law[1], share)


def one_pair(_: Effort) -> Iterator[Case]:
    """Target (.7, .3), draft (.5, .5)."""
    yield {"target": (Fraction(7, 10), Fraction(3, 10)), "draft": (Fraction(1, 2), Fraction(1, 2))}


NO_SEARCH = "every choice is enumerated"

P15_BUDGET = Entry(
    id="§15/budget",
    title="The best budget of a step is a threshold",
    kind="identity",
    plain="R requests, s_(r,i) the probability that request r accepts its first i drafts, t(m) any time of a step on m "
    "tokens: the largest (sum_r 1 + sum_(i <= k_r) s_(r,i)) / t(R + sum k) is that of the drafts with s >= lambda, for "
    "some lambda, ties in order",
    latex=r"\max_k \frac{\sum_r (1 + \sum_{i\le k_r} s_{r,i})}{t(R + \sum_r k_r)} \text{ at } "
    r"k_r = \#\{i : s_{r,i} \ge \lambda\}",
    assumptions=("s falls along a request", "the lengths are chosen before the drafts are seen"),
    evidence=(
        proof("exchange, and prefixes", STEP_PROOF),
        exact(
            Claim("the best threshold equals the best of all choices of prefixes", one_step),
            steps_of_requests,
            wrong=Claim(
                "so do the largest values where they rise along a request",
                lambda rows, times: one_step([row[::-1] for row in rows], times),
            ),
        ),
        agreement(
            Claim("the library's choice and its rate", partial(library_step, False)),
            steps_of_requests,
            wrong=Claim("it is that of plain decoding", partial(library_step, True)),
        ),
    ),
    calculators=("spectheory.deployment.batch_budget.best_budget",),
    without={"search": NO_SEARCH, "simulation": NO_SEARCH},
)

P15_THRESHOLD = Entry(
    id="§15/threshold",
    title="The threshold of the long run is throughput times the time of one more token",
    kind="identity",
    plain="if a step takes a + b m and no choice moves where calls start, the most tokens per second g are those of "
    "the drafts with s >= g b",
    latex=r"\lambda = g\, b, \qquad g = \max_k \frac{R\, E[1 + \sum_{i\le k} s_i]}{a + b R (1 + E k)}",
    assumptions=("a step takes a + b m", "the law of the starts is the same for every choice"),
    evidence=(
        proof("by Dinkelbach's form of a ratio", POINT_PROOF),
        exact(
            Claim("that threshold equals the best of all choices by start", partial(fixed_point, Fraction(1))),
            starts,
            wrong=Claim("so does half the threshold", partial(fixed_point, Fraction(1, 2))),
        ),
    ),
    without={"search": NO_SEARCH, "simulation": NO_SEARCH, "certified": "fractions alone: no logarithm enters"},
)

P15_STEP = Entry(
    id="§15/step",
    title="The law of a step of many requests",
    kind="identity",
    plain="requests that are replaced at once and decide their drafts alone are independent, each found at any of its "
    "calls alike: tokens per second are R E[T] / E t(R + K_1 + ... + K_R), the law of the sum by convolution",
    latex=r"\frac{R\,E[T]}{E\,t(R + K_1 + \dots + K_R)}",
    assumptions=(
        "a request's drafts are decided by its own text and start",
        "a request that ends is replaced at once, by a text drawn alike; prompts take no step",
    ),
    evidence=(
        agreement(
            Claim("the library's law of a step, against every outcome of every call", partial(library_laws, False)),
            servers,
            wrong=Claim("a request fewer takes as long", partial(library_laws, True)),
        ),
        simulated(
            "steps of five requests, found by simulated texts alone",
            (("serving", STEADY),),
            stated("§15/step"),
            wrong=(
                "the same with other lengths",
                stated("§15/step", drafts=lambda drafts: [min(d, 1) for d in drafts]),
            ),
        ),
    ),
    calculators=(
        "spectheory.deployment.batch_budget.call_laws",
        "spectheory.deployment.batch_budget.sum_law",
    ),
    without={
        "symbolic": "a renewal of each request, and independence: nothing is left to compute",
        "exact": "the agreement is with fractions",
        "search": NO_SEARCH,
    },
)

P15_LIMIT = Entry(
    id="§15/limit",
    title="No rule that decides what to verify gives more",
    kind="upper bound",
    plain="with a + b j below the step's time for j drafts of R requests, tokens per second are at most N / E T, T the "
    "least time of a text's calls at a/R + b L for L drafts, if each call knew what will be accepted",
    latex=r"\text{tokens per second} \le \frac{N}{E\,T}, \qquad T(n) = "
    r"E_\tau\Big[\min_{L\le\tau} \tfrac aR + b L + T(n+L+1)\Big]",
    assumptions=(
        "one rule of verification, drafts from one draft; given the text, tau has its survival whatever is verified "
        "(lossless)",
        "R requests at a time, none fewer; b >= 0",
    ),
    evidence=(
        proof("a line below the times shares a step out to its calls", LIMIT_PROOF),
        exact(
            Claim("no choice of lengths by start gives more", partial(limits, False)),
            servers,
            wrong=Claim("the best choice reaches it", partial(limits, True)),
        ),
        agreement(
            Claim("the library's rates, all within its limit", partial(library_plan, False)),
            servers,
            wrong=Claim("the last calls of a text draft past its end", partial(library_plan, True)),
        ),
    ),
    calculators=("spectheory.deployment.budgets.plan_budgets",),
    without={"search": NO_SEARCH, "simulation": NO_SEARCH},
)

P15_LOSSLESS = Entry(
    id="§15/lossless",
    title="What may decide which drafts are verified",
    kind="identity",
    plain="if whether draft i is verified depends on no draft of its request but those before it, the output is the "
    "target's",
    latex=r"d_i = d_i(y_1, \dots, y_{i-1}) \Rightarrow \text{output} \sim p",
    assumptions=("drafts drawn from the draft, token verification; after an unverified draft the target's token",),
    evidence=(
        exact(
            Claim("every function of the drafts before", partial(keeps_the_law, False)),
            positions,
            wrong=Claim("every function of a draft's own value", partial(keeps_the_law, True)),
        ),
    ),
    without={
        "symbolic": "the pmf after each prefix is the target's, verified or not: §11",
        "certified": "no number of the library's",
        "search": NO_SEARCH,
        "simulation": NO_SEARCH,
    },
)

P15_LOSSY = Entry(
    id="§15/own-value",
    title="A budget that reads a draft's own value changes the text",
    kind="refuted",
    plain="a budget that verifies a draft only if it is the likelier of two leaves the output the target's: p = (.7, "
    ".3), q = (.5, .5) gives (.85, .15)",
    latex=r"P(\text{output} = 0) = p_0",
    assumptions=("the draft is verified iff it is token 0",),
    evidence=(
        counterexample(
            Claim("token 0 is output with probability .7", partial(dspark, Fraction(7, 10))),
            one_pair,
            true=Claim("token 0 is output with probability .85", partial(dspark, Fraction(17, 20))),
        ),
    ),
)

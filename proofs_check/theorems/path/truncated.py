"""§9: what the largest probabilities of two pmfs tell for certain; every calculator over every completion of a grid."""

from __future__ import annotations

from proofs_check.forms.divergences import g
from proofs_check.prelude import *
from proofs_check.statement import calculus
from proofs_check.theorems.path.completions import (
    NO_EXTRAS,
    Extras,
    Lengths,
    Pairs,
    Seen,
    any_pairs,
    best,
    every_setting,
    few_pairs,
    most_minima,
    pairs,
    seen,
)
from proofs_check.theorems.path.truncated_intervals import *
from spectheory import truncated

# What §9 rests on, in steps: ends of sums, one completion that is best, what follows from it, moments, other rules.


def _first_of(k: Real, m: Real) -> Real:
    """P(R <= k) of a geometric rank of success 1/m."""
    return 1 - (1 - 1 / m) ** k


SUMS: tuple[Step, ...] = (
    valid(
        "a token of the target's list alone has q <= b: min(p, q) <= min(p, b), and <= q",
        lambda p, q, b: (at_most(smaller(p, q), smaller(p, b)), at_most(smaller(p, q), q)),
        lambda p, q, b: [p >= 0, q >= 0, q <= b],
    ),
    valid(
        "a token of D: min(p, q) is at most min(a, b), p and q",
        lambda p, q, a, b: (
            at_most(smaller(p, q), smaller(a, b)),
            at_most(smaller(p, q), p),
            at_most(smaller(p, q), q),
        ),
        lambda p, q, a, b: [p >= 0, q >= 0, p <= a, q <= b],
    ),
    valid(
        "with draft mass x on the target's list, target mass y on the draft's, U = sum min(p, b), W = sum min(q, a), "
        "N = n min(a, b): the minima outside C sum to at most u + w + min(t-u, s-w, N), u = min(t, U), w = min(s, W)",
        lambda x, y, s, t, U, W, N: at_most(
            smaller(x, U) + smaller(y, W) + smaller(smaller(t - x, s - y), N),
            smaller(t, U) + smaller(s, W) + smaller(smaller(t - smaller(t, U), s - smaller(s, W)), N),
        ),
        lambda x, y, s, t, U, W, N: [x >= 0, x <= t, y >= 0, y <= s, U >= 0, W >= 0, N >= 0],
    ),
    valid(
        "and to at least 0, attained by tails on different tokens of D if there are enough: m of them hold s if "
        "m >= s/a",
        lambda m, s, a, p, q: (at_most(s, m * a), at_least(smaller(p, q), 0)),
        lambda m, s, a, p, q: [a > 0, m >= s / a, p >= 0, q >= 0],
    ),
    valid(
        "hockey stick: (cq - p)+ <= cq outside C, so g(c) is at most its sum over C and c(1 - q(C))",
        lambda c, p, q: at_most(positive_part(c * q - p), c * q),
        lambda c, p, q: [c >= 0, p >= 0, q >= 0],
    ),
    valid(
        "race: p/(1 + g) falls in g, so over C it is least at that largest g; other tokens add nothing less than 0",
        lambda p, g, h: at_least(p / (1 + g), p / (1 + h)),
        lambda p, g, h: [p >= 0, g >= 0, h >= g],
    ),
    valid(
        "KL: an unseen token can have q = 0 if the N others hold t, each t/N <= b, which t <= Nb allows; then it is "
        "infinite where p > 0",
        lambda t, N, b: at_most(t / N, b),
        lambda t, N, b: [N >= 1, t >= 0, t <= N * b],
    ),
)
"""High and low ends that are sums."""

ONE_COMPLETION: tuple[Step, ...] = (
    valid(
        "(cq - p)+ is at least cq - p and at least 0, and cq - p where p <= cq: for any set S of tokens g(c) >= "
        "c q(S) - p(S), equal if S holds those with p < cq and none with p > cq. So a completion is best at c if, for "
        "such an S of its own, no other has a smaller q(S) or a larger p(S)",
        lambda c, p, q: (
            at_least(positive_part(c * q - p), c * q - p),
            at_least(positive_part(c * q - p), 0),
            equal(positive_part(c * q - p), c * q - p + positive_part(p - c * q)),
        ),
    ),
    valid(
        "take q = min(b, lam p) on the target's list, p = min(a, kappa q) on the draft's, and on D either nothing, "
        "kappa lam <= 1, or the ratio p/q = kappa = 1/lam. For c <= kappa tokens of the target's list and of D have "
        "p >= cq: S does without them, its draft masses are all known, and q(S) is that of every completion",
        lambda c, kappa, lam, b, p: at_least(p, c * smaller(b, lam * p)),
        lambda c, kappa, lam, b, p: [c >= 0, c <= kappa, lam > 0, kappa * lam <= 1, p >= 0, b >= 0],
    ),
    valid(
        "and S holds a token of the draft's list, p < cq, only if p = a: its target mass is the largest, so p(S) is",
        lambda c, kappa, a, q: equal(smaller(a, kappa * q), a),
        lambda c, kappa, a, q: [c >= 0, c <= kappa, q >= 0, smaller(a, kappa * q) < c * q],
    ),
    valid(
        "for c >= kappa tokens of the draft's list have p <= cq: S may hold them all, and D; what it lacks is in the "
        "target's list, so p(S) is that of every completion",
        lambda c, kappa, a, q: at_most(smaller(a, kappa * q), c * q),
        lambda c, kappa, a, q: [kappa >= 0, c >= kappa, q >= 0, a >= 0],
    ),
    valid(
        "for kappa < c <= 1/lam, where D is empty, tokens of the target's list have p >= cq: S lacks them, and q(S) is "
        "the least there is, as all of t lies on them",
        lambda c, lam, b, p: at_least(p, c * smaller(b, lam * p)),
        lambda c, lam, b, p: [c >= 0, lam > 0, c * lam <= 1, p >= 0, b >= 0],
    ),
    valid(
        "for c > 1/lam S lacks one of them, p >= cq, only if q = b, the largest: so q(S) is the least",
        lambda c, lam, b, p: equal(smaller(b, lam * p), b),
        lambda c, lam, b, p: [lam > 0, c * lam > 1, p > 0, b >= 0, p >= c * smaller(b, lam * p)],
    ),
    valid(
        "the caps on D: the draft's list has q >= b, D has q = lam p <= b. Did D hold p > a, all of the draft's list "
        "would be at a, and s more than all unseen tokens can hold",
        lambda a, b, q, lam, p: equal(smaller(a, q / lam), a),
        lambda a, b, q, lam, p: [lam > 0, q >= b, lam * p <= b, p > a],
    ),
    valid(
        "a token asked for by name may have less: then D is full, say p = a, p/q = 1/lam < kappa. For 1/lam < c <= "
        "kappa S holds D and tokens of the draft's list at a, and lacks those of the target's at b: as large as any",
        lambda c, kappa, lam, a, b, p, q: (equal(smaller(a, kappa * q), a), equal(smaller(b, lam * p), b)),
        lambda c, kappa, lam, a, b, p, q: [
            *(lam > 0, c * lam > 1, c <= kappa, a >= 0, b >= 0, p > 0, q >= 0),
            *(smaller(a, kappa * q) < c * q, p >= c * smaller(b, lam * p)),
        ],
    ),
)
"""One completion has the least g(c) for every c; kappa and lam may be infinite: all at the cap, the rest alone."""

FOLLOWS: tuple[Step, ...] = (
    cited(
        "every f-divergence is an integral of hockey sticks g(c) with weights that are not negative, so the completion "
        "that has the least g(c) for every c has the least of each",
        "Liese and Vajda 2006",
    ),
    same(
        "KL for example: r log r - r + 1 is the integral of (c - r)/c over r <= c <= 1, and on the other side alike",
        lambda r, c: (r * calculus.log(r) - r + 1, integral((c - r) / c, c, r, 1)),
    ),
    same(
        "and chi-square: (r - 1)^2 is the integral of 2(c - r) over r <= c <= 1",
        lambda r, c: ((r - 1) ** 2, integral(2 * (c - r), c, r, 1)),
    ),
    valid(
        "k-SEQ accepts the largest min(1 - (g/rho)^k, rho - g) over rho: both fall in g, as powers keep the order",
        lambda y, z, u, v, g, h, r: (at_most(y * u, z * v), at_least(r - g, r - h)),
        lambda y, z, u, v, g, h, r: [y >= 0, y <= z, u >= 0, u <= v, g <= h],
    ),
    cited(
        "if g(c) of one pair is nowhere above that of another, a channel turns the other into it; a channel splits "
        "tokens in proportion and merges tokens",
        "Blackwell 1953",
    ),
    valid(
        "a merger lowers g: (c(q + v) - (p + u))+ <= (cq - p)+ + (cv - u)+; a split in proportion leaves it alone",
        lambda x, y: at_most(positive_part(x + y), positive_part(x) + positive_part(y)),
    ),
    same(
        "1 + g(r) is the largest of lines A + Br (A = 1 - p(S), B = q(S)), so the race's term q r/(1 + g(r)) is the "
        "least of pq/(Aq + Bp); merging two tokens raises each of these by a square",
        lambda p, q, u, v, A, B: (
            (p + u) * (q + v) / (A * (q + v) + B * (p + u)) - p * q / (A * q + B * p) - u * v / (A * v + B * u),
            A * B * (p * v - u * q) ** 2 / ((A * (q + v) + B * (p + u)) * (A * q + B * p) * (A * v + B * u)),
        ),
    ),
    same(
        "the Poisson race has q r f(m), f(m) = 1 - (1 - 1/m)^k, m = A + Br: 2f' + m f'' = -k(k-1)(1 - 1/m)^(k-2)/m^3",
        lambda k, m: (
            2 * slope(_first_of(k, m), m) + m * slope(slope(_first_of(k, m), m), m),
            -k * (k - 1) * (1 - 1 / m) ** (k - 2) / m**3,
        ),
        integers=("k",),
    ),
    valid(
        "so r f(A + Br), of second derivative B(2f' + (m - A) f''), is concave, for f falls: merging two tokens raises "
        "the sum of q r f over them, for every line and so for the largest",
        lambda A, B, m, f1, f2: at_most(B * (2 * f1 + (m - A) * f2), 0),
        lambda A, B, m, f1, f2: [A >= 0, B >= 0, m >= 1, m >= A, f1 <= 0, 2 * f1 + m * f2 <= 0],
    ),
    same(
        "R4 is 1 + the least p(H) - q(H)^k: a merger leaves fewer sets H; with a share t of a split token it is p + tx "
        "- (q + ty)^k, of second derivative -k(k-1) y^2 (q + ty)^(k-2), least at t = 0 or 1, which the whole one has",
        lambda p, q, x, y, t, k: (
            slope(slope(p + t * x - (q + t * y) ** k, t), t),
            -k * (k - 1) * y * y * (q + t * y) ** (k - 2),
        ),
        integers=("k",),
    ),
)
"""Every f-divergence, the races, k-SEQ and R4 take an end at that completion, and the other at disjoint tails."""

MOMENTS: tuple[Step, ...] = (
    same(
        "moving e from x to y changes -x log x - y log y at the rate log(x - e) - log(y + e)",
        lambda x, y, e: (
            slope(-sum(z * calculus.log(z) for z in (x - e, y + e)), e),
            calculus.log(x - e) - calculus.log(y + e),
        ),
    ),
    valid(
        "so from a token of no more to one of no less, x <= y, it falls, and back it rises, as x - e <= y + e: H(p) is "
        "least with the tail filled up to the cap token by token, largest with an even tail",
        lambda x, y, e: at_most(x - e, y + e),
        lambda x, y, e: [e >= 0, x <= y],
    ),
    same(
        "x log^2 x has the slope h = log x (log x + 2), and h(y) - h(x) = (log y - log x)(log x + log y + 2)",
        lambda x, y: (
            slope(y * calculus.log(y) ** 2, y) - slope(x * calculus.log(x) ** 2, x),
            (calculus.log(y) - calculus.log(x)) * (calculus.log(x) + calculus.log(y) + 2),
        ),
    ),
    valid(
        "for x < y that is not positive if xy <= e^-2, which x + y <= 2/e gives",
        lambda x, y, e: at_most(x * y * e * e, 1),
        lambda x, y, e: [x >= 0, y >= 0, e > 0, (x + y) * e <= 2],
    ),
    valid(
        "and two unseen tokens have x + y <= 2/e: a cap up to 1/e gives it, a larger one leaves 1 - a < 1 - 1/e <= 2/e "
        "as e <= 3. So the second moment has its ends where H has",
        lambda x, y, a, e: at_most((x + y) * e, 2),
        lambda x, y, a, e: [e > 0, e <= 3, x >= 0, y >= 0, x <= a, y <= a, x + y <= 1 - a],
    ),
)
"""Entropy and second log-moment."""

OTHER_RULES: tuple[Step, ...] = (
    valid(
        "R3: E(s) = sum (p - sq)+ falls with a slope of -1 at most: term by term (p - sq)+ - (p - uq)+ <= (u - s)q",
        lambda p, q, s, u: at_most(positive_part(p - s * q) - positive_part(p - u * q), (u - s) * q),
        lambda p, q, s, u: [p >= 0, q >= 0, s >= 0, u >= s],
    ),
    valid(
        "so with E <= F everywhere and s <= u, s + E(s) <= u + F(u): each s_r = s_(r-1) + E(s_(r-1)) lies between its "
        "values at the best completion and at disjoint tails, as E does",
        lambda s, u, Es, Fs, Fu: at_most(s + Es, u + Fu),
        lambda s, u, Es, Fs, Fu: [s <= u, Es <= Fs, Fs - Fu <= u - s],
    ),
    valid(
        "R3 low: the tail's part of E is convex; if at s it is T - us, at x <= s it is at most T - ux",
        lambda T, u, s, x, at_x: at_most(at_x, T - u * x),
        lambda T, u, s, x, at_x: [x >= 0, x <= s, s > 0, s * at_x <= (s - x) * T + x * (T - u * s)],
    ),
    valid(
        "hence s is at most S, what these lines make it, and E(s) = C(s) + T - us >= C(S) + T - uS, as C falls",
        lambda at_s, at_S, T, u, s, S: at_least(at_s + T - u * s, at_S + T - u * S),
        lambda at_s, at_S, T, u, s, S: [u >= 0, s <= S, at_S <= at_s],
    ),
    valid(
        "R3 high: if at s the tail is v, before it is at least v; s is at least S, and E(s) = C(s) + v <= C(S) + v",
        lambda at_s, at_S, v: at_most(at_s + v, at_S + v),
        lambda at_s, at_S, v: [at_S - at_s >= 0],
    ),
    valid(
        "R2: of two tokens that stay behind with probabilities x and y, the even pair z, z of the same product has the "
        "larger chance that both come: more tokens, later ranks",
        lambda x, y, z: at_most((1 - x) * (1 - y), (1 - z) * (1 - z)),
        lambda x, y, z: [x > 0, x <= 1, y > 0, y <= 1, z > 0, z * z == x * y],
    ),
    valid(
        "independent match: pq + uv >= pv + uq where p >= u, q >= v: the largest sum has both tails in one order",
        lambda p, q, u, v: at_least(p * q + u * v, p * v + u * q),
        lambda p, q, u, v: [p >= u, q >= v],
    ),
    valid(
        "top-k: j unseen tokens of h hold at least s - (h - j)a, at most ja and s",
        lambda x, y, s, a, h, j: (at_least(x, s - (h - j) * a), at_most(x, j * a), at_most(x, s)),
        lambda x, y, s, a, h, j: [x >= 0, y >= 0, x + y == s, x <= j * a, y <= (h - j) * a],
    ),
)
"""Rules whose ends are no completion's, and matching."""


def one_is_best(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The best completion is one, and its g(c) is at most that of this pair, at every c; its sum of minima is A1's end.

    Both are convex and piecewise linear, so it is enough to compare at the kinks of this pair's and beyond the last.
    """
    known = seen(p, q, m, extra)
    completion = best(known)
    yield from _completes(known, completion)
    yield from _below(completion, p, q)
    yield equal(sum(smaller(a, b) for a, b in completion), most_minima(known))


def _completes(known: Seen, completion: Pairs) -> Iterator[Compared]:
    ours = len(known.both) + len(known.ours)
    theirs = ours + len(known.theirs)
    yield equal((sum(a for a, _ in completion), sum(b for _, b in completion)), (1 + 0 * known.s, 1 + 0 * known.t))
    for i, (a, b) in enumerate(completion):
        if i >= ours:
            yield at_most(a, known.a)
        if len(known.both) <= i < ours or i >= theirs:
            yield at_most(b, known.b)
        yield at_least(smaller(a, b), 0)


def _below(completion: Pairs, p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    pmfs = [a for a, _ in completion], [b for _, b in completion]
    for c in (a / b for a, b in zip(p, q, strict=True) if b > 0):
        yield at_most(g(*pmfs, c), g(p, q, c))
    drawable = sum(a for a, b in zip(p, q, strict=True) if b > 0)
    yield at_least(sum(a for a, b in completion if b > 0), drawable)


def without_caps_outside(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The claim of :func:`one_is_best` with one merged token in place of those known to none, which has no cap."""
    known = seen(p, q, m, extra)
    many = best(known._replace(outside=1000 * known.outside))
    first = len(many) - 1000 * known.outside
    merged = [(a * 1000, b * 1000) for a, b in many[first : first + known.outside]]
    yield from _completes(known, [*many[:first], *merged])


def best_without_caps(known: Seen) -> Pairs:
    """The best completion had unseen tokens no caps."""
    return best(known._replace(a=1 + 0 * known.a, b=1 + 0 * known.b))


def evenly_spread(p: AnyPmf, q: AnyPmf, m: Lengths = (1, 1), extra: Extras = NO_EXTRAS) -> Iterator[Compared]:
    """The claim of :func:`one_is_best` for even tails."""
    yield from _below(list(zip(*even_tails(p, q, m, extra), strict=True)), p, q)


BEST = Claim("the best completion is one, g(c) nowhere above another's, with the sum of minima stated", one_is_best)
EVEN = Claim("even tails are best", evenly_spread)

HALF = "they are in the inner half"

OVER_FEW = "pairs on 3 tokens of denominator up to 4 and on 4 up to 3, lists of one or two tokens, others by name"

OVER = "pairs on 3 and 4 tokens of denominator up to 4, lists of one or two tokens, others by name"


# §9's limit: recursive rejection of more than one candidate is not monotone in the order of channels.


Merged = tuple[int, int]
"""Two tokens that a channel takes for one."""


def merged(pmf: AnyPmf, two: Merged) -> list[Real]:
    """The pmf with two tokens as one."""
    return [*(share for x, share in enumerate(pmf) if x not in two), pmf[two[0]] + pmf[two[1]]]


def never_lowered(value: Callable[[AnyPmf, AnyPmf, int], Real]) -> Callable[[AnyPmf, AnyPmf, int, Merged], Compared]:
    """A claim's function: merging two tokens of both pmfs, which lowers every g(c), does not lower the value."""

    def holds(p: AnyPmf, q: AnyPmf, k: int, two: Merged) -> Compared:
        return at_least(value(merged(p, two), merged(q, two), k), value(p, q, k))

    return holds


def mergers(effort: Effort) -> Iterator[Case]:
    """First with two candidates on three tokens by the denominator; one candidate has none."""
    for k in effort.pick((1, 2), (1, 2, 3)):
        for pair in cases.pairs(3, 6):
            if pair["p"][0] >= pair["p"][1] >= pair["p"][2]:
                yield from ({**pair, "k": k, "two": two} for two in combinations(range(3), 2))


def one_merger(effort: Effort) -> Iterator[Case]:
    """Four tokens, of which the second and third are alike to the channel."""
    yield {
        "p": tuple(Fraction(weight, 20) for weight in (16, 3, 1, 0)),
        "q": tuple(Fraction(weight, 20) for weight in (4, 2, 2, 12)),
        "k": 2,
        "two": (1, 2),
    }


RECURSIVE = Claim("merging two tokens never lowers P(R <= k) of recursive rejection", never_lowered(within_recursive))
POISSON = Claim("merging two tokens never lowers P(R <= k) of the Poisson race", never_lowered(within_poisson))

P9 = Entry(
    id="§9",
    title="Truncated knowledge: certified intervals from the largest probabilities",
    kind="bounds",
    plain="from the m largest probabilities of both pmfs every quantity lies in a computed interval, whatever the "
    "rest: one completion minimises g(c) for every c, hence every f-divergence, and maximises A1, A2, R1, R4 and "
    "R5; disjoint tails give the other end; H(p) is least with the tail filled up to the cap, largest with an even "
    "tail; R2, R3 beyond one candidate and R6 are enclosed",
    latex=r"\sum_C\min(p,q)\le\sum\min(p,q)\le\sum_C\min(p,q)+u+w+\min(t-u,\,s-w,\,n\min(a,b)),\quad "
    r"\exists\,(P^*,Q^*)\ \forall (P,Q)\ \forall c:\ g_{P^*Q^*}(c)\le g_{PQ}(c)\le\sum_C(cq-p)_++c(1-q(C))",
    assumptions=(
        "the lists hold the most probable tokens; those asked for by name do not lower the cap",
        "log-probabilities are right up to rounding, or their error is stated",
    ),
    calculators=tuple(f"spectheory.truncated.{name}" for name in truncated.__all__),
    evidence=(
        proof("ends that are sums: minima, hockey sticks, the race, KL", SUMS),
        proof("one completion is best for every hockey stick", ONE_COMPLETION),
        proof("what follows for f-divergences, races, k-SEQ and R4", FOLLOWS),
        proof("entropy and second log-moment, by moving mass between two tokens", MOMENTS),
        proof("what encloses R3 and R2, and matching rules", OTHER_RULES),
        exact(
            BEST,
            every_setting,
            over=OVER,
            wrong=Claim("tokens on neither list have no caps at the best completion", without_caps_outside),
        ),
        exact(
            Claim("divergences, hockey sticks and A1 of every completion are inside", inside(SYMMETRIC + RATIONAL)),
            pairs,
            over=OVER,
            wrong=Claim(f"{HALF} of their intervals", inside(SYMMETRIC + RATIONAL, 0.5)),
        ),
        exact(
            Claim("A2, R1, R4, R5 and R6's bound of every completion are inside", inside(MONOTONE)),
            few_pairs,
            over=OVER_FEW,
            wrong=Claim(f"{HALF} of their intervals", inside(MONOTONE, 0.5)),
        ),
        exact(
            Claim("R2, R3 and R6 of every completion, and laws of the rank, are inside", inside(ENCLOSED + LAWS)),
            few_pairs,
            over=OVER_FEW,
            wrong=Claim(f"{HALF} of their intervals", inside(ENCLOSED + LAWS, 0.5)),
        ),
        exact(
            Claim("what holds given the output is inside, for every output", given_inside),
            few_pairs,
            over=OVER_FEW,
            wrong=Claim("the third rank lies between its values at the ends of the first's", peaks_forgotten),
        ),
        exact(
            Claim("top-k drafts, for every k, and first choices are inside", matching_inside),
            pairs,
            over=OVER,
            wrong=Claim(f"{HALF} of the intervals of top-k drafts", partial(matching_inside, inner=0.5)),
        ),
        agreement(
            Claim("the ends are the values at the best completion and disjoint tails", at_the_ends(SYMMETRIC)),
            pairs,
            over=OVER,
            wrong=Claim(
                "the ends are those of a best completion without caps", at_the_ends(SYMMETRIC, best_without_caps)
            ),
        ),
        agreement(
            Claim("ends of A2, R1, R4, R5 and R6's bound are attained likewise", at_the_ends(MONOTONE)),
            pairs,
            over=OVER,
            wrong=Claim(
                "the ends are those of a best completion without caps", at_the_ends(MONOTONE, best_without_caps)
            ),
        ),
        agreement(
            Claim("a list's cap, unseen mass and ranges, and means of intervals", read),
            pairs,
            over=OVER,
            wrong=Claim("a token asked for by name lowers the cap", cap_of_all),
        ),
        certified(
            Claim("KL, Rényi, entropy and second log-moment of every completion are inside", inside(LOGARITHMIC)),
            pairs,
            over=OVER,
            wrong=Claim(f"{HALF} of their intervals", inside(LOGARITHMIC, 0.5)),
        ),
        certified(
            Claim("ends of entropy and moment, low ends of KL, chi-square and Rényi are attained", steep_ends),
            lambda effort: with_ends(few_pairs(effort)),
            over=OVER_FEW,
            wrong=Claim("the entropy is least with an even tail", evenly_filled),
        ),
        certified(
            Claim("the Poisson race's H(R), and the largest entropy at a mean log R", rank_entropies),
            lambda effort: with_odds(pairs(effort)),
            over=OVER,
            wrong=Claim("half the largest entropy at a mean log R", partial(rank_entropies, part=0.5)),
        ),
        searched(BEST, any_pairs, over="2 to 4 tokens", spaces=(pair_space(3),), wrong=EVEN),
        searched(
            Claim("KL, chi-square, Rényi and moments of a pair are inside", inside(RATIONAL + LOGARITHMIC)),
            any_pairs,
            over="2 to 4 tokens, thirty orders of magnitude",
            wrong=Claim(f"{HALF} of their intervals", inside(RATIONAL + LOGARITHMIC, 0.5)),
        ),
        searched(
            Claim("D1-D3 and the rules of a pair are inside", inside(SYMMETRIC + MONOTONE + ENCLOSED)),
            any_pairs,
            over="2 to 4 tokens, thirty orders of magnitude",
            wrong=Claim(f"{HALF} of their intervals", inside(SYMMETRIC + MONOTONE + ENCLOSED, 0.5)),
        ),
    ),
)

P9_MONOTONE = Entry(
    id="§9/monotone",
    title="Recursive rejection in the order of channels",
    kind="refuted",
    plain="P(R <= k) of recursive rejection (R3) is monotone in the order of channels, as that of the Poisson race "
    "is: so it lies between its values at the best completion and at disjoint tails",
    latex=r"(P,Q)\succeq(P',Q')\ \Rightarrow\ P_{R3}(R\le k)(P,Q)\le P_{R3}(R\le k)(P',Q')",
    assumptions=("candidates are i.i.d. from the draft", "a channel merges tokens and splits them in proportion"),
    evidence=(
        counterexample(RECURSIVE, mergers, true=POISSON),
        counterexample(RECURSIVE, one_merger, over="p = (.8, .15, .05, 0), q = (.2, .1, .1, .6), k = 2", true=POISSON),
    ),
)

"""C5 along texts: drafting without a pause for few targets, and drafting ahead for predicted outcomes."""

from __future__ import annotations

from proofs_check.prelude import *
from spectheory.prediction.outcomes import Outcomes
from spectheory.prediction.parallel import parallel_seconds
from spectheory.trace import TextInfo, Trace
from spectheory.verification.registry import path_rule

Shares = tuple[Fraction, ...]


# C5/text: every pass of every target, played out


def last_known(right: Sequence[bool], t_target: Fraction, t_draft: Fraction, lookahead: int, targets: int) -> Fraction:
    """When the last of len(right) + 1 tokens is known; right[i]: whether the draft of token i is.

    The drafts of a branch follow each other. Its passes, one on the branch's first prefix and one whenever `lookahead`
    drafts more are there, go to the target that is free first. A pass decides the drafts up to the one after its
    prefix. At the end of the pass that finds a wrong draft all passes on the branch stop.
    """
    free_at, began, known, run = [0 * t_target] * targets, 0 * t_target, 0 * t_target, 0
    for good in (*right, False):
        if good:
            run += 1
            continue
        for number in range(-(-run // lookahead) + 1):
            free_at.sort()
            known = max(began + number * lookahead * t_draft, free_at[0]) + t_target
            free_at[0] = known
        free_at, began, run = [min(at, known) for at in free_at], known, 0
    return known


def played_out(accepted: Shares, lookahead: int, t_target: Fraction, t_draft: Fraction, targets: int) -> Fraction:
    """The mean over all patterns of right and wrong drafts of a text whose last token is a target's."""
    patterns = product((True, False), repeat=len(accepted) - 1)
    chances = (
        (each, math.prod([a if good else 1 - a for good, a in zip(each, accepted, strict=False)])) for each in patterns
    )
    return total(chance * last_known(right, t_target, t_draft, lookahead, targets) for right, chance in chances)


def by_runs(
    whole_blocks: bool, accepted: Shares, lookahead: int, t_target: Fraction, t_draft: Fraction
) -> Iterator[Compared]:
    """The stated time of each run of right drafts, against every pass of every target played out."""
    mean = Fraction(0)
    for right in product((True, False), repeat=len(accepted) - 1):
        chance = math.prod([a if good else 1 - a for good, a in zip(right, accepted, strict=False)])
        runs = [len(run) for run in "".join("x" if good else "." for good in right).split(".")]
        drafts = [-(-run // lookahead) * lookahead if whole_blocks else run for run in runs]
        mean += chance * total(each * t_draft + t_target for each in drafts)
    yield equal(mean, played_out(accepted, lookahead, t_target, t_draft, needed(lookahead, t_target, t_draft)))


def needed(lookahead: int, t_target: Fraction, t_draft: Fraction) -> int:
    """The least whole number of targets with targets * lookahead * t_draft >= t_target."""
    return int(-(-t_target // (lookahead * t_draft)))


def seconds_of(accepted: Shares, lookahead: int, t_target: Fraction, t_draft: Fraction) -> float:
    """The library's expected seconds."""
    arrays = np.array([float(each) for each in accepted]), np.array([len(accepted)])
    return float(parallel_seconds(*arrays, float(t_target), float(t_draft), lookahead=lookahead)[0])


def along_text(
    fewer: int, accepted: Shares, lookahead: int, t_target: Fraction, t_draft: Fraction
) -> Iterator[Compared]:
    """The library against all passes played out, with the targets needed but for some."""
    targets = max(needed(lookahead, t_target, t_draft) - fewer, 1)
    exact_mean = played_out(accepted, lookahead, t_target, t_draft, targets)
    yield computed(seconds_of(accepted, lookahead, t_target, t_draft), exact_mean)


def by_mean(longer: int, accepted: Shares, lookahead: int, t_target: Fraction, t_draft: Fraction) -> Iterator[Compared]:
    """The library at the mean acceptance against all passes played out, with a lookahead longer by so much."""
    lookahead += longer
    inside = accepted[:-1]
    mean = sum(inside, Fraction(0)) / max(len(inside), 1)
    targets = needed(lookahead, t_target, t_draft)
    exact_mean = played_out(accepted, lookahead, t_target, t_draft, targets)
    yield computed(seconds_of((mean,) * len(accepted), lookahead, t_target, t_draft), exact_mean)


def texts(effort: Effort) -> Iterator[Case]:
    """Texts of up to 5 tokens with acceptances 0, 1/3 and 1, lookaheads 1 to 3, four pairs of times."""
    times = ((1, 1), (4, 2), (10, 3), (7, 1))
    for length in range(1, effort.pick(6, 8)):
        for accepted in product((Fraction(0), Fraction(1, 3), Fraction(1)), repeat=length):
            for lookahead, (t_target, t_draft) in product(range(1, 4), times):
                yield {
                    "accepted": accepted,
                    "lookahead": lookahead,
                    "t_target": Fraction(t_target),
                    "t_draft": Fraction(t_draft),
                }


def of_one(effort: Effort) -> Iterator[Case]:
    """The same texts with a lookahead of 1."""
    return (case for case in texts(effort) if case["lookahead"] == 1)


RUNS: tuple[Step, ...] = (
    same(
        "a draft right with probability a and found out after d, else after t: each token adds a d + (1 - a) t in the "
        "mean, so that a text takes t + n (x d + (1 - x) t) by the mean x of its acceptances, two of which are a and b",
        lambda a, b, d, t: (a * d + (1 - a) * t + b * d + (1 - b) * t, 2 * ((a + b) / 2 * d + (1 - (a + b) / 2) * t)),
    ),
    valid(
        "with lookahead m the passes of a branch start m d apart: with r targets and r m d >= t none waits",
        lambda start, r, m, t, d: at_most(start + t, start + r * m * d),
        lambda start, r, m, t, d: [d > 0, m >= 1, r * m * d >= t],
    ),
)
"""The mean alone matters with a lookahead of 1, and how many targets are enough."""

C5_TEXT = Entry(
    id="C5/text",
    title="Speculation parallelism along a text, with few targets",
    kind="identity",
    plain="after tau right drafts since the last wrong one, the next wrong one is found ceil(tau/l) l t_draft + "
    "t_target after the last, with lookahead l and t_target/(l t_draft) targets or more; given the text its drafts are "
    "right independently, so expected seconds follow by a recursion along it. With l = 1 the mean "
    "acceptance alone matters",
    latex=r"\lceil\tau/\ell\rceil\,\ell\,t_{draft}+t_{target}",
    source=("timor2025",),
    assumptions=(
        "given the text, each draft is right with a probability of its own, independent from token to token",
        "passes take constant times; at least t_target/(l t_draft) targets, a whole number of them",
    ),
    calculators=("spectheory.prediction.parallel.parallel_seconds",),
    without={"search": "the texts of a grid are enumerated in fractions"},
    evidence=(
        proof("by the mean alone, and the number of targets", RUNS),
        exact(
            Claim("the times of runs of right drafts, every pass of every target played out", partial(by_runs, True)),
            texts,
            over="texts of up to 5 tokens, acceptances 0, 1/3 and 1, lookaheads 1 to 3",
            wrong=Claim("a pass may begin with fewer drafts than the lookahead", partial(by_runs, False)),
        ),
        agreement(
            Claim("the library's seconds, every pass of every target played out", partial(along_text, 0)),
            texts,
            over="texts of up to 5 tokens, acceptances 0, 1/3 and 1, lookaheads 1 to 3",
            wrong=Claim("one target fewer is enough", partial(along_text, 1)),
        ),
        agreement(
            Claim("with a lookahead of 1 the mean acceptance gives the same seconds", partial(by_mean, 0)),
            of_one,
            over="the same texts, lookahead 1",
            wrong=Claim("and so it does with a longer lookahead, however acceptances cluster", partial(by_mean, 1)),
        ),
    ),
)


# C5/ahead: the whole algorithm, with the tokens that are predicted


def order(q: Pmf) -> list[int]:
    """The tokens, the draft's most probable first."""
    return sorted(range(len(q)), key=lambda token: (-q[token], token))


def guesses(q: Pmf, number: int, refused: int | None) -> list[int]:
    """The most probable tokens of the draft, without a refused one."""
    return [token for token in order(q) if token != refused][:number]


def argmax_of(model: Model) -> Model:
    """A draft that proposes its first choice for certain."""
    return lambda prefix: tuple(Fraction(token == order(model(prefix))[0]) for token in range(len(model(prefix))))


def decoded(
    target: Model, draft: Model, proposed: Model, k: int, length: int, number: int
) -> dict[Prefix, tuple[Fraction, Fraction]]:
    """By text its probability, and that times the expected calls that ended as predicted."""
    running: dict[Prefix, tuple[Fraction, Fraction]] = {(): (Fraction(1), Fraction(0))}
    law = dict[Prefix, tuple[Fraction, Fraction]]()
    while running:
        later = dict[Prefix, tuple[Fraction, Fraction]]()
        for prefix, (weight, hits) in running.items():
            for path, last, refused, share in written(target, proposed, prefix, k):
                text = (*prefix, *path, last)
                inside = len(text) < length
                hit = inside and last in guesses(draft(prefix + path), number, refused)
                into, key = (later, text) if inside else (law, text[:length])
                before = into.get(key, (Fraction(0), Fraction(0)))
                into[key] = before[0] + weight * share, before[1] + hits * share + weight * share * hit
        running = later
    return law


def written(
    target: Model, proposed: Model, prefix: Prefix, k: int
) -> Iterator[tuple[Prefix, int, int | None, Fraction]]:
    """Calls with the accepted tokens themselves."""
    for path, alive in draft_paths(proposed, prefix, k):
        rest = alive
        for i, token in enumerate(path):
            p, q = target(prefix + path[:i]), proposed(prefix + path[:i])
            accept = min(Fraction(1), p[token] / q[token])
            if accept < 1:
                residual = normalised(tuple(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)))
                yield from ((path[:i], last, token, rest * (1 - accept) * x) for last, x in enumerate(residual) if x)
            rest *= accept
        yield from ((path, last, None, rest * x) for last, x in enumerate(target(prefix + path)) if x)


def hits_of(rule: str, target: Model, draft: Model, text: Prefix, k: int, number: int) -> tuple[float, float]:
    """The library's fewest and most hits of a text."""
    places = range(len(text))
    ranks = [order(draft(text[:i])).index(text[i]) + 1 for i in places]
    columns = {
        "token": np.array(text),
        "log_target": np.array([math.log(target(text[:i])[text[i]]) for i in places]),
        "log_draft": np.array([math.log(max(draft(text[:i])[text[i]], Fraction(1, 10**9))) for i in places]),
        "draft_rank": np.array(ranks),
    }
    law = Outcomes.of(Trace(columns, (TextInfo("t", len(text)),)), path_rule(rule), k)
    low, high = law.hits((number,) * (k + 1))
    return float(low[0]), float(high[0])


def ends(accepted: Shares, k: int) -> Iterator[tuple[int, bool, Fraction]]:
    """Where calls end inside a text by the path theorem: the place of the next token, whether a draft was refused."""
    length = len(accepted)
    visits = [Fraction(n == 0) for n in range(length)]
    for start in range(length):
        reached = visits[start]
        for place in range(start, min(start + k + 1, length - 1)):
            ended = reached if place == start + k else reached * (1 - accepted[place])
            yield place, place < start + k, ended
            visits[place + 1] += ended
            reached -= ended


def by_places(p: Model, q: Model, text: Prefix, k: int, number: int) -> tuple[Fraction, Fraction, Fraction]:
    """Hits at least, exactly, and at most: a refused draft's law is that of (q - p)+, whatever is recovered."""
    shares = tuple(min(Fraction(1), q(text[:i])[token] / p(text[:i])[token]) for i, token in enumerate(text))
    low = mean = high = Fraction(0)
    for place, refused, weight in ends(shares, k):
        pmf, rank = q(text[:place]), order(q(text[:place])).index(text[place]) + 1
        low += weight * (rank <= number)
        high += weight * (rank <= number + refused)
        above = tuple(max(b - a, Fraction(0)) for a, b in zip(p(text[:place]), pmf, strict=True))
        among = total(above[token] for token in order(pmf)[:number])
        mean += weight * (rank <= number)
        if refused and rank == number + 1 and weight:
            mean += weight * among / total(above)
    return low, mean, high


def places(shift: int, target: Table, draft: Table, k: int, length: int, number: int) -> Iterator[Compared]:
    """The whole algorithm against the sum over places, on every text; `shift` guesses more are a wrong reading."""
    p, q = target.__getitem__, draft.__getitem__
    for text, (weight, hits) in decoded(p, q, q, k, length, number).items():
        low, mean, high = by_places(p, q, text, k, number + shift)
        yield equal(hits, weight * mean)
        yield at_most(low, mean)
        yield at_most(mean, high)


def library(shift: int, target: Table, draft: Table, k: int, length: int, number: int) -> Iterator[Compared]:
    """The library's fewest and most hits of every text against the sums over places."""
    p, q = target.__getitem__, draft.__getitem__
    for text in product(range(3), repeat=length):
        low, high = hits_of("token", p, q, text, k, number + shift)
        ends_of = by_places(p, q, text, k, number)
        yield computed(low, ends_of[0])
        yield computed(high, ends_of[2])


def first_choices(shift: int, target: Table, draft: Table, k: int, length: int, number: int) -> Iterator[Compared]:
    """The library's hits of drafts of first choices against the whole algorithm, on every text."""
    p, q = target.__getitem__, draft.__getitem__
    for text, (weight, hits) in decoded(p, q, argmax_of(q), k, length, number).items():
        for each in hits_of("argmax", p, q, text, k, number + shift):
            yield computed(each, hits / weight)


def models(effort: Effort) -> Iterator[Case]:
    """Random models on 3 tokens without any stationarity, texts of 3 tokens, k of 1 and 2, 1 and 2 guesses."""
    rng = random.Random(effort.seed)
    for _ in range(effort.pick(12, 60)):
        pair = {name: positive_model(rng) for name in ("target", "draft")}
        yield from with_each([{**pair, "length": 3}], k=(1, 2), number=(1, 2))


def positive_model(rng: random.Random) -> Table:
    """A pmf of positive entries after every prefix of fewer than 6 tokens."""
    return {prefix: pmf_of([1 + rng.randrange(6) for _ in range(3)]) for prefix in prefixes(3, 6)}


CYCLE: tuple[Step, ...] = (
    same(
        "drafts leave at 0 and reach the target at L; the outcome is back at v + 2L; on a hit the next drafts leave "
        "then, or at p if that is later, and otherwise d later: calls C of which H begin with drafts that were ready, "
        "all other drafts taking d, add up to C (v + 2L) + (C - H) d + H max(p - v - 2L, 0), here with p later",
        lambda C, H, v, L, d, p: (
            H * p + (C - H) * (v + 2 * L + d),
            C * (v + 2 * L) + (C - H) * d + H * (p - v - 2 * L),
        ),
    ),
    valid(
        "a token of rank r is among the g best without a refused one y if r <= g, or if r = g + 1 and y is before it: "
        "its place without y is at least r - 1 and at most r",
        lambda r, before: [at_least(r - before, r - 1), at_most(r - before, r)],
        lambda r, before: [before >= 0, before <= 1],
    ),
)
"""The time of a call, and what a refused draft does to the order."""

C5_AHEAD = Entry(
    id="C5/ahead",
    title="Drafting ahead for predicted outcomes",
    kind="bounds",
    plain="given the text, the expected calls that end with the text's token among the g most probable ones of the "
    "draft, a refused draft left out, lie between those of rank at most g, and those of rank at most g + 1 where a "
    "draft was refused; with drafts of first choices they are the latter",
    latex=r"\sum_m e(m)\,1[r_m\le g]\le\text{hits}\le\sum_m e_{rej}(m)\,1[r_m\le g+1]+e_{full}(m)\,1[r_m\le g]",
    source=("kumar2026",),
    assumptions=("the draft's pmfs are functions of the text alone", "the last call of a text predicts nothing"),
    calculators=("spectheory.prediction.elsewhere.elsewhere",),
    without={"search": "the bounds hold text by text; every text of random models is enumerated instead"},
    evidence=(
        proof("the time of a call, and the place of a token without a refused one", CYCLE),
        exact(
            Claim("token verification: the whole algorithm on every text lies between", partial(places, 0)),
            models,
            over="random models on 3 tokens, texts of 3 tokens, k = 1 and 2, 1 and 2 guesses",
            wrong=Claim("and so it does with a guess more", partial(places, 1)),
        ),
        agreement(
            Claim("the library's fewest and most hits", partial(library, 0)),
            models,
            over="the same models",
            wrong=Claim("and they are those of a guess more", partial(library, 1)),
        ),
        agreement(
            Claim(
                "first choices: the library is exact for the whole algorithm, on every text", partial(first_choices, 0)
            ),
            models,
            over="the same models",
            wrong=Claim("and so it is with a guess more", partial(first_choices, 1)),
        ),
    ),
)

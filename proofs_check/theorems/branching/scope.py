"""B4, B5: whom the branching bounds bind, drafts that sample, and what a bound on E[X] says of time."""

from __future__ import annotations

from proofs_check.library.cases import grid
from proofs_check.library.strategies import models
from proofs_check.prelude import *
from proofs_check.theorems.branching.branching_forms import *
from proofs_check.theorems.branching.random_pmf_trees import best, best_of_one, grown, moments
from spectheory.limits import branching_speedup

LENGTH = 3
"""Tokens of the texts that are run."""


def accepted(chosen: frozenset[Prefix], text: Prefix) -> int:
    """Tokens of a text that a set of prefixes predicts: one after the other, until a prefix is missing."""
    return next((n for n in range(len(text)) if text[: n + 1] not in chosen), len(text))


def no_set_is_better(model: Table, capacity: int, less: int = 0) -> Iterator[Compared]:
    """E[X] of every set of P prefixes, run on every text, against the best tree's; of `less` prefixes fewer."""
    none = tuple(Fraction(0) for _ in model[()])
    runs = product(range(len(model[()])), repeat=LENGTH)
    texts = [(text, probability(model.__getitem__, (), text)) for text in runs]
    prefixes = [text[:n] for text, _ in texts for n in range(1, LENGTH + 1)]
    most = best(lambda prefix: model.get(prefix, none), capacity - less)
    for chosen in combinations(sorted(set(prefixes)), capacity):
        value = total(chance * accepted(frozenset(chosen), text) for text, chance in texts)
        yield at_most(value, most)


def model_cases(effort: Effort) -> Iterator[Case]:
    """Every set of P = 1 to 3 prefixes on every text of 3 tokens."""
    rng = random.Random(effort.seed)
    for number in range(effort.pick(12, 90)):
        yield {"model": random_model(rng, 2, LENGTH), "capacity": 1 + number % 3}


def drawn_models() -> st.SearchStrategy[Case]:
    """Targets on 2 tokens, every set of 1 or 2 prefixes."""
    return st.fixed_dictionaries({"model": models(2, LENGTH), "capacity": st.integers(1, 2)})


DRAFTS = Claim("no set of P prefixes chosen without the target's sampling beats the best tree", no_set_is_better)
DRAFTS_WRONG = Claim("none beats the best tree of P - 1 prefixes", lambda **case: no_set_is_better(**case, less=1))

CHOSEN_FIRST: tuple[Step, ...] = (
    valid(
        "X counts the prefixes of the text that stand in T with all those before them: for two of them (a before ab) "
        "X = a + a b <= a + b, each counted with its chance: E[X] <= sum_{v in T} pi(v), equal if T is a tree",
        lambda a, b: at_most(a + a * b, a + b),
        lambda a, b: [a * (1 - a) == 0, b * (1 - b) == 0],
    ),
    valid(
        "exchanging a prefix of T for a heavier one outside adds to the sum, so it is largest for the P heaviest, "
        "which are a tree as pi falls along a path",
        lambda total, light, heavy, p: [at_most(total, total - light + heavy), at_most(heavy * p, heavy)],
        lambda total, light, heavy, p: [light >= 0, light <= heavy, p >= 0, p <= 1],
    ),
    valid(
        "a coin of the drafter's own, independent of the text, gives a mean over sets: no larger than the largest",
        lambda s, x, y, most: at_most(s * x + (1 - s) * y, most),
        lambda s, x, y, most: [s >= 0, s <= 1, x <= most, y <= most],
    ),
)
"""For every drafter that does not see the target's sampling."""


def sampled_chain(pmf: Sequence[Real], capacity: Real, chain: Real, single: Real, sampled: bool = True) -> Compared:
    """Accepted drafts of a chain of P tokens drawn from the target (or the best tree's) against B2'."""
    mu, mu2 = moments([pmf])
    return at_most(chain if sampled else single, sharp_form(mu, mu2, capacity))


def chain_of_samples(pmf: Pmf, k: int) -> Fraction:
    """Accepted drafts of one call of token verification whose draft is the target: every draft and every coin."""
    law = token_verification(lambda _: pmf, lambda _: pmf, (), k)
    return total(accepted * share for (_, accepted), share in law.items())


def sampling_cases(_: Effort) -> Iterator[Case]:
    """First among targets on 2 tokens by their denominator and P."""
    for denominator in (2, 3, 4):
        for pmf in grid(2, denominator):
            for k in (1, 2, 3):
                if max(pmf) < 1:
                    chain, tree = chain_of_samples(pmf, k), best_of_one(pmf, k)
                    yield {"pmf": pmf, "capacity": Fraction(k), "chain": chain, "single": tree}


# B5: time


def decoded(pmf: Pmf, capacity: int, calls: int) -> Fraction:
    """Expected tokens of so many calls with the best tree, each with its one token beyond: every text, call by call."""
    tree = {prefix for _, prefix in grown(lambda _: pmf, capacity)}

    def next_token(state: tuple[Prefix, int, int]) -> Iterable[tuple[Any, Fraction]] | None:
        inside, done, tokens = state  # tokens of this call, calls, tokens
        longer = ((*inside, token) for token in range(len(pmf)))
        after = ((each, done, tokens + 1) if each in tree else ((), done + 1, tokens + 1) for each in longer)
        return None if done == calls else zip(after, pmf, strict=True)

    return total(tokens * share for (_, _, tokens), share in end_of(((), 0, 0), next_token).items())


def speedup(
    pmf: Pmf, capacity: int, step: Fraction, verification: Fraction, draft: Fraction, bonus: int = 1
) -> Iterator[Compared]:
    """Tokens over time of three calls, over those of plain decoding; `bonus` is the control's."""
    calls, value = 3, best_of_one(pmf, capacity)
    rate = decoded(pmf, capacity, calls) / (calls * (verification + draft))
    yield equal(rate * step, (value + bonus) * step / (verification + draft))
    yield at_most(rate * step, (value + bonus) * step / verification)


def timed_cases(effort: Effort) -> Iterator[Case]:
    """Targets with P and times."""
    rng = random.Random(effort.seed)
    for number in range(effort.pick(24, 200)):
        step, verification, draft = (Fraction(rng.randint(1, 40), 7) for _ in range(3))
        yield {
            "pmf": random_pmf(rng, 2 + number % 2, 4),
            "capacity": 1 + number % 3,
            "step": step,
            "verification": verification,
            "draft": draft * (number % 4),
        }


def drawn_times() -> st.SearchStrategy[Case]:
    """Times from 1/1000 to 1000."""
    times = st.fractions("1/1000", 1000).map(Fraction)
    pmf = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    return st.fixed_dictionaries(
        {"pmf": st.just(pmf), "capacity": st.integers(1, 3), "step": times, "verification": times, "draft": times}
    )


def speedup_library(
    pmf: Pmf, capacity: int, step: Fraction, verification: Fraction, draft: Fraction, bonus: int = 1
) -> Compared:
    """The library's bound at the best tree's E[X]; `bonus` is the control's."""
    value = best_of_one(pmf, capacity)
    factor = branching_speedup(*as_floats(value, step, verification, draft))
    return computed(factor, (value + bonus) * step / (verification + draft))


SPEEDUP = Claim(
    "tokens over time of three calls, over plain decoding's, are (E[X] + 1) t(1)/(t(P+1) + t_draft)", speedup
)
SPEEDUP_WRONG = Claim("they are E[X] t(1)/(t(P+1) + t_draft)", lambda **case: speedup(**case, bonus=0))

TIMES: tuple[Step, ...] = (
    valid(
        "n calls take n (v + d) and give n (x + 1) tokens in the mean, which plain decoding makes in n (x + 1) s: "
        "the ratio of times is (x + 1) s/(v + d), at most (b + 1) s/(v + d) for a bound b on x",
        lambda n, x, b, s, v, d: [
            equal(n * (x + 1) * s / (n * (v + d)), (x + 1) * s / (v + d)),
            at_most((x + 1) * s / (v + d), (b + 1) * s / (v + d)),
        ],
        lambda n, x, b, s, v, d: [n > 0, x >= 0, x <= b, s > 0, v > 0, d >= 0],
    ),
    valid(
        "verification is no faster than a step, so it is at most x + 1",
        lambda x, s, v, d: at_most((x + 1) * s / (v + d), x + 1),
        lambda x, s, v, d: [x >= 0, s > 0, v >= s, d >= 0],
    ),
)
"""B5 for every number of calls."""

B4 = Entry(
    id="B4",
    title="Scope of the branching bounds",
    kind="upper bound",
    plain="E[X] <= sum of the P heaviest pi(v), for every set of P prefixes and every drafter, randomised or not, "
    "that does not see the target's sampling",
    latex=r"E[X] \le \max_{|T| = P} \sum_{v \in T} \pi(v)",
    source=("pankratov2026",),
    assumptions=("given the text so far, drafts are independent of the target's sampling of what follows",),
    evidence=(
        proof("a drafted prefix counts with its probability; the heaviest are best; coins average", CHOSEN_FIRST),
        exact(DRAFTS, model_cases, wrong=DRAFTS_WRONG),
        searched(DRAFTS, drawn_models, wrong=DRAFTS_WRONG),
    ),
    without={"certified": "no logarithm enters"},
)

B4_SAMPLING = Entry(
    id="B4/sampling",
    title="A branching bound for drafters that sample",
    kind="refuted",
    plain="a chain of P drafts sampled from Q = P has E[X] <= B2'; token verification accepts all P of them",
    latex=r"E[X] \le K + \frac{\log(1 + \mu(P - K))}{\mu} \text{ for a sampled chain}",
    assumptions=("token verification with draft = target",),
    evidence=(
        counterexample(
            Claim("a chain sampled from the target has E[X] <= B2'", sampled_chain),
            sampling_cases,
            true=Claim("the best tree has E[X] <= B2'", lambda **case: sampled_chain(**case, sampled=False)),
            kind="certified",
        ),
    ),
    without={"exact": "moments are logarithms; the accepted drafts are enumerated in fractions"},
)

B5 = Entry(
    id="B5",
    title="Speed-up of a drafter that does not sample",
    kind="upper bound",
    plain="speed-up = (E[X] + 1) t_target(1)/(t_target(P+1) + t_draft) at most, with any bound on E[X]",
    latex=r"\text{speed-up} \le \frac{(E[X] + 1)\, t_{target}(1)}{t_{target}(P + 1) + t_{draft}}",
    source=("pankratov2026",),
    assumptions=(
        "drafting and verification follow each other, and a call takes the same time whatever it accepts",
        "E[X] is taken over the positions where calls start",
    ),
    calculators=("spectheory.limits.branching_speedup",),
    evidence=(
        proof("tokens over time", TIMES),
        exact(SPEEDUP, timed_cases, over="every text of three calls, 2 or 3 tokens, P up to 3", wrong=SPEEDUP_WRONG),
        agreement(
            Claim("the library's speed-up", speedup_library),
            timed_cases,
            over="2 or 3 tokens, P up to 3, random times",
            wrong=Claim(
                "the library's speed-up, without the recovered or bonus token",
                lambda **case: speedup_library(**case, bonus=0),
            ),
        ),
        searched(SPEEDUP, drawn_times, wrong=SPEEDUP_WRONG),
    ),
)

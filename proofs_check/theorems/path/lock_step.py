"""§12: lock-step batches wait for their slowest text; what they need, and what they do not."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts
from proofs_check.agreement.path_cases import CHAINS, with_edges
from proofs_check.prelude import *
from proofs_check.theorems.path.call_counts import numbers
from proofs_check.twins.path_theorem import all_calls_law
from spectheory.drafting import Chain
from spectheory.prediction.lock_step import rounds_of_batch, rounds_of_draws, slowest_of_distinct, unfinished
from spectheory.prediction.lock_step import slowest as slowest_of_trace
from spectheory.prediction.shape_calls import survival_of
from spectheory.verification import RULES

# §12's lock-step batches in any arithmetic, from the laws of their texts' calls: closed forms and definitions.


Law = Sequence[Real]
"""P(calls = t), t = 1, 2, ..."""


def mean(values: Iterable[Real]) -> Real:
    """Their mean."""
    listed = list(values)
    return sum(listed) / len(listed)


def ended(law: Law, t: int) -> Real:
    """P(calls <= t)."""
    return sum(law[:t], 0 * law[0])


def calls(law: Law) -> Real:
    """The mean number of calls of one text."""
    return sum(t * share for t, share in enumerate(law, start=1))


def slowest(laws: Sequence[Law]) -> Real:
    """E[max] by the closed form, the sum of 1 - prod F."""
    return sum(1 - math.prod(ended(law, t) for law in laws) for t in range(len(laws[0])))


def of_draws(laws: Sequence[Law], batch: int) -> Real:
    """E[max] of a batch drawn with replacement, the sum of 1 - (mean F)^B."""
    return sum(1 - mean(ended(law, t) for law in laws) ** batch for t in range(len(laws[0])))


def of_sets(laws: Sequence[Law], batch: int) -> Real:
    """E[max] of a batch of different texts, every set of them alike."""
    return mean(slowest(chosen) for chosen in combinations(laws, batch))


def rounds(laws: Sequence[Law]) -> list[Real]:
    """Expected rounds with m live texts, m = 0..B, by all outcomes of all texts."""
    longest = len(laws[0])
    totals = [0 * laws[0][0]] * (len(laws) + 1)
    for counts in product(range(1, longest + 1), repeat=len(laws)):
        share = math.prod(law[count - 1] for law, count in zip(laws, counts, strict=True))
        for t in range(longest):
            totals[sum(count > t for count in counts)] += share
    return totals


STEPS: tuple[Step, ...] = (
    in_words(
        "E[max] is the sum of P(max > t) over t >= 0: with a, b, c for P(max = 1), 2, 3 each stands in so many terms",
        lambda a, b, c: (a + 2 * b + 3 * c, (a + b + c) + (b + c) + c),
    ),
    in_words(
        "given the texts their calls are independent (§7), and max <= t is all of them: P(max > t) = 1 - F G",
        lambda F, G: (1 - F * G, 1 - F * G),
    ),
    valid(
        "each term is at least that of each text and at most their sum: so is E[max]",
        lambda F, G: [at_least(1 - F * G, 1 - F), at_most(1 - F * G, (1 - F) + (1 - G))],
        lambda F, G: shares(F, G),
    ),
    same(
        "a text that is live with probability S adds S to the mean of live texts: rounds times live texts are calls",
        lambda S, live: (S * (live + 1) + (1 - S) * live, live + S),
    ),
    same(
        "a text drawn from two has ended by t with their mean, and two draws both with its square, the mean over draws",
        lambda F, G: (((F + G) / 2) ** 2, (F * F + F * G + G * F + G * G) / 4),
    ),
    valid(
        "different texts: the mean over sets of the product of F is a + b(F + G) + c F G in two of them, c >= 0, and "
        "does not fall if both take their mean",
        lambda a, b, c, F, G: at_most(a + b * (F + G) + c * F * G, a + b * (F + G) + c * ((F + G) / 2) ** 2),
        lambda a, b, c, F, G: [a >= 0, b >= 0, c >= 0, *shares(F, G)],
    ),
    valid(
        "and rises if they differ and c > 0: so it is largest, under the same sum, where all are equal (Maclaurin); "
        "there it is (mean F)^B, and drawing with replacement needs no more rounds",
        lambda c, F, G: at_least(c * (((F + G) / 2) ** 2 - F * G), c * (F - G) * (F - G) / 4),
        lambda c, F, G: [c >= 0, *shares(F, G)],
    ),
)
"""E[max], its bounds, live texts, and batches drawn at random."""

RULES_HERE = ("token", "block", "race")
MOST = 3
"""Texts of the largest batch that is enumerated."""


def laws_of(name: str, target: Table, draft: Table, k: int, length: int) -> Iterator[tuple[Law, Law]]:
    """Of each text the law of its calls, by whole decodings and by §7."""
    twin, q = CHAINS[name], draft.__getitem__
    source = twin.target(target.__getitem__)
    whole = Decoding(twin.algorithm, k, length).law(source, q)
    for text in text_law(source, length):
        survival = twin.survival(target.__getitem__, q, text)
        both_laws = [numbers(given_text(whole, text)), numbers(all_calls_law(survival, k, length))]
        decoded, stated = ([law.get(t, Fraction(0)) for t in range(1, length + 1)] for law in both_laws)
        yield decoded, stated


def decoded(of: Any, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Whole decodings of every batch of two texts: rounds by all outcomes against a formula of §7's laws."""
    for name in RULES_HERE:
        laws = list(laws_of(name, target, draft, k, length))[:4]
        for one, other in combinations_with_replacement(laws, 2):
            yield equal(sum(rounds([one[0], other[0]])[1:]), of([one[1], other[1]]))


def single(laws: Sequence[Law]) -> Real:
    """The mean of single texts."""
    return mean(map(calls, laws))


def random_batches(exchanged: bool, laws: Sequence[Law], batch: int) -> Iterator[Compared]:
    """Batches drawn at random: the closed form against the mean over all draws, and beside different texts."""
    draws = [rounds([laws[i] for i in chosen]) for chosen in product(range(len(laws)), repeat=batch)]
    yield equal(of_draws(laws, batch), mean(sum(each[1:]) for each in draws))
    live = mean(sum(m * each[m] for m in range(batch + 1)) for each in draws)
    yield equal(live, batch * single(laws))
    if batch <= len(laws):
        pair = of_draws(laws, batch), of_sets(laws, batch)
        yield at_most(*(pair[::-1] if exchanged else pair))


def ordered(laws: Sequence[Law], batch: int) -> Iterator[Compared]:
    """The slowest text is no faster than any, nor slower than all after one another; with replacement it is faster."""
    most = slowest(laws)
    for law in laws:
        yield at_least(most, calls(law))
    yield at_most(most, sum(map(calls, laws)))
    yield at_most(of_draws(laws, batch), of_sets(laws, batch))
    yield at_least(of_draws(laws, batch), single(laws))


def library_rounds(live: bool, laws: Sequence[Law], batch: int) -> Iterator[Compared]:
    """The library's rounds of a batch, of draws and of different texts."""
    left = np.array([[float(1 - sum(law[:t])) for law in laws] for t in range(len(laws[0]))])
    for value, of_live in zip(rounds_of_batch(left)[1:], rounds(laws)[1:], strict=True):
        yield computed(value, of_live if live else slowest(laws) / len(laws))
    draws = [rounds([laws[i] for i in chosen]) for chosen in product(range(len(laws)), repeat=batch)]
    for m, value in enumerate(rounds_of_draws(left, batch)[1:], start=1):
        yield computed(value, mean(each[m] for each in draws))
    yield computed(slowest_of_distinct(left, min(batch, len(laws))), of_sets(laws, min(batch, len(laws))))


def traced(of: Any, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's laws and batches of a trace of all texts."""
    trace = Texts(target, draft, length).trace()
    for name in RULES_HERE:
        laws = [stated for _, stated in laws_of(name, target, draft, k, length)]
        left = unfinished(survival_of(RULES[name], Chain(k), trace.columns)[0], trace.lengths)
        for of_text, law in zip(left.T, laws, strict=True):
            for t, value in enumerate(of_text):
                yield computed(value, 1 - sum(law[:t]))
        for batch in (1, 2, 5):
            yield computed(slowest_of_trace(trace, RULES[name], k, batch).best, of(laws, batch))


all_texts = with_edges(
    "Edges; then texts of 3 tokens out of 2 and of 2 out of 3.", ((2, 3, 1), (2, 3, 2), (3, 2, 2)), 2
)


def some_laws(effort: Effort) -> Iterator[Case]:
    """Random laws of 1 to 3 calls, of up to 3 texts; batches of up to 3."""
    rng = random.Random(f"batches {effort.seed}")
    for _ in range(effort.pick(6, 30)):
        for texts, batch in product(range(1, MOST + 1), repeat=2):
            weights = [[rng.randint(0, 4) for _ in range(MOST)] for _ in range(texts)]
            laws = [list(pmf_of(each)) for each in weights if sum(each)]
            if laws:
                yield {"laws": laws, "batch": batch}


def any_laws() -> Any:
    """Laws of up to 4 calls, up to 4 texts."""

    def law(longest: int) -> Any:
        weights = st.lists(st.integers(0, 20), min_size=longest, max_size=longest).filter(any)
        return weights.map(lambda row: list(pmf_of(row)))

    def case(size: tuple[int, int]) -> Any:
        laws = st.lists(law(size[1]), min_size=size[0], max_size=size[0])
        return st.fixed_dictionaries({"laws": laws, "batch": st.integers(1, size[0])})

    return st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(case)


def halves(_: Effort) -> Iterator[Case]:
    """Batches of B equal texts of N tokens, one draft a call, accepted with probability a: the smallest first."""
    for length, batch, d in product(range(1, 4), range(1, 4), range(1, 4)):
        for a in range(d + 1):
            accepted = Fraction(a, d)
            law = numbers(all_calls_law(partial(lambda a, _, i: a**i, accepted), 1, length))
            laws = [[law.get(t, Fraction(0)) for t in range(1, length + 1)]] * batch
            yield {"laws": laws, "length": length, "batch": batch, "accepted": accepted}


P12_LOCK_STEP = Entry(
    id="§12-lock-step",
    title="Rounds of a lock-step batch",
    kind="identity",
    plain="given the texts, a batch that makes a call of every live text per round needs E[max] = sum_t (1 - prod "
    "F_b(t)) rounds, F_b(t) = P(text b needs at most t calls): at least every text's mean, at most their sum; B "
    "texts drawn with replacement need sum_t (1 - (mean F)^B), B different ones at least as many",
    latex=r"\mathbb E\max_b C_b = \sum_{t\ge0}\Big(1-\prod_b F_b(t)\Big) \ge \max_b \mathbb E C_b,\qquad "
    r"\sum_t \big(1-\bar F(t)^B\big) \le \sum_t\Big(1-\tbinom nB^{-1}\sum_{|S|=B}\prod_{b\in S}F_b(t)\Big)",
    assumptions=("§7's for each text", "texts are verified with independent randomness"),
    evidence=(
        proof("the largest of independent numbers, live texts, and batches drawn at random", STEPS),
        exact(
            Claim("a batch needs sum_t (1 - prod F_b(t)) rounds, F_b by the laws of §7", partial(decoded, slowest)),
            all_texts,
            over="whole decodings of all pairs of the first four texts of random models (token, block, race)",
            wrong=Claim("a batch needs the mean of its single texts", partial(decoded, single)),
        ),
        exact(
            Claim(
                "drawn with replacement it needs sum_t (1 - (mean F)^B) rounds, with B times the mean calls in all; "
                "different texts need no fewer",
                partial(random_batches, False),
            ),
            some_laws,
            over="all draws and sets of up to 3 texts with random laws of up to 3 calls",
            wrong=Claim(
                "different texts need no more rounds than draws with replacement", partial(random_batches, True)
            ),
        ),
        agreement(
            Claim(
                "the library's rounds by live texts, of a batch, of draws and of sets", partial(library_rounds, True)
            ),
            some_laws,
            over="up to 3 texts with random laws",
            wrong=Claim("every number of live texts has as many rounds", partial(library_rounds, False)),
        ),
        agreement(
            Claim("the library's laws of calls, and batches drawn from a trace", partial(traced, of_draws)),
            all_texts,
            over="traces of all texts of random models",
            wrong=Claim("such batches need the mean calls of a text", partial(traced, lambda laws, _: single(laws))),
        ),
        searched(
            Claim(
                "E[max] is at least every text's mean and at most their sum; drawn with replacement it is at least "
                "the mean calls and at most that of different texts",
                ordered,
            ),
            any_laws,
            wrong=Claim(
                "E[max] is at most the largest mean", lambda laws, batch: at_most(slowest(laws), max(map(calls, laws)))
            ),
        ),
        simulated(
            "batches of 1, 4 and 16 texts of 20 tokens by token verification, 3 drafts a call",
            [("lock-step", {"chains": "yin2024", "length": 20, "k": 3, "batch": batch}) for batch in (1, 4, 16)],
            stated("§12-lock-step"),
            wrong=("the mean calls of a text", stated("§12-lock-step", batch=lambda _: 1)),
            trials=(20_000, 200_000),
        ),
    ),
    calculators=public(
        "prediction.lock_step", "unfinished rounds_of_batch rounds_of_draws slowest_of_distinct slowest"
    ),
)

P12_LOCK_STEP_MEAN = Entry(
    id="§12-lock-step/mean",
    title="A batch as the largest mean",
    kind="refuted",
    plain="a lock-step batch needs as many rounds as the text with the most expected calls (E[max] is at least "
    "that; two texts that each need one or two calls with equal probability: 1.75, not 1.5)",
    latex=r"\mathbb E\max_b C_b = \max_b \mathbb E C_b",
    assumptions=("one draft a call, accepted with the same probability everywhere",),
    evidence=(
        counterexample(
            Claim("the batch needs the largest mean", lambda laws, **_: equal(slowest(laws), max(map(calls, laws)))),
            halves,
            over="equal texts: first by tokens, texts of the batch, and denominator of the acceptance",
            true=Claim(
                "the batch needs at least the largest mean",
                lambda laws, **_: at_least(slowest(laws), max(map(calls, laws))),
            ),
        ),
    ),
)

P12_LOCK_STEP_EQUAL_LENGTHS = Entry(
    id="§12-lock-step/equal-lengths",
    title="Lock-step loses nothing where texts are equally long",
    kind="refuted",
    plain="texts of one length do not wait for each other: lock-step needs as many rounds as each text by itself "
    "(true of plain decoding alone; with speculation the numbers of calls vary also between equal texts)",
    latex=r"N_b = N\ \forall b \implies \mathbb E\max_b C_b = \mathbb E C",
    assumptions=("texts of the same tokens", "one draft a call, accepted with probability a"),
    evidence=(
        counterexample(
            Claim("as many rounds as a text by itself", lambda laws, **_: equal(slowest(laws), calls(laws[0]))),
            halves,
            over="first by tokens, texts of the batch, and denominator of the acceptance",
            true=Claim(
                "between those of a text by itself and its tokens, which plain decoding needs",
                lambda laws, length, **_: [at_least(slowest(laws), calls(laws[0])), at_most(slowest(laws), length)],
            ),
        ),
    ),
)

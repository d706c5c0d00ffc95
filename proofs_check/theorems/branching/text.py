"""B6: the branching bound on real text, without any independence."""

from __future__ import annotations

from proofs_check.library.strategies import models
from proofs_check.prelude import *
from proofs_check.theorems.branching.branching_forms import *
from proofs_check.theorems.branching.random_pmf_trees import Ensemble, best, heaviest, many_steps
from proofs_check.theorems.branching.steps import ANY_TARGET, DUALITY
from spectheory.drafting import Chain
from spectheory.limits import branching_bound_from_text
from spectheory.limits.text import best_threshold, surprisal_walks, threshold_terms
from spectheory.prediction import predict
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.text_limit import TextLimit, one_call_bound
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification

Chances = Sequence[Fraction]
"""The probabilities of the tokens of a text, each given those before."""

Texts = Sequence[Chances]

ANY_TEXT: tuple[Step, ...] = (
    ANY_TARGET,
    DUALITY[0],
    valid(
        "(w - c)+ = w (1 - c/w)+: sum_{v in T} pi(v) <= sum_n E(1 - e^-(t - S_n))+ + P e^-t",
        lambda w, c: equal(positive_part(w - c), w * positive_part(1 - c / w)),
        lambda w, c: [w > 0, c >= 0],
    ),
    valid(
        "pi falls along a path, so the P heaviest prefixes are a tree, at most P deep, and n <= P is enough",
        lambda w, p: at_most(w * p, w),
        lambda w, p: [w >= 0, p >= 0, p <= 1],
    ),
    valid(
        "starts: both sides averaged over the prefixes at which calls start",
        lambda s, x, y, bx, by: at_most(s * x + (1 - s) * y, s * bx + (1 - s) * by),
        lambda s, x, y, bx, by: [s >= 0, s <= 1, x <= bx, y <= by],
    ),
)
"""B6 for any target, any start, any t."""

# In fractions, over every text


def threshold_sum(chances: Chances, c: Real) -> Real:
    """Sum over n of (1 - c/W_n)+ along a text."""
    return total(positive_part(1 - c / weight) for weight in running(chances))


def running(chances: Chances) -> list[Fraction]:
    """W_1, W_2, ... of a text."""
    return list(accumulate(chances, lambda weight, chance: weight * chance))


def texts_after(model: Table, start: Prefix, length: int) -> list[tuple[list[Fraction], Fraction]]:
    """The token probabilities of every text of that length after a start, with the text's probability."""
    texts = []
    for text in product(range(len(model[()])), repeat=length):
        chances = [model[start + text[:n]][token] for n, token in enumerate(text)]
        if all(chances):
            texts.append((chances, running(chances)[-1]))
    return texts


def after(model: Table, start: Prefix, prefix: Prefix) -> Pmf:
    """The pmf after a start and a prefix; nothing follows where the table ends."""
    return model.get(start + prefix, tuple(Fraction(0) for _ in model[()]))


def from_texts(model: Table, capacity: int, fitted: bool = False) -> Iterator[Compared]:
    """Best trees after one token against B6 at every threshold that matters, or at one `fitted` to each text."""
    starts = [((token,), share) for token, share in enumerate(model[()]) if share > 0]
    known = [(c, share * chance) for start, share in starts for c, chance in texts_after(model, start, capacity)]
    value = total(share * best(partial(after, model, start), capacity) for start, share in starts)
    if fitted:
        least = [min(threshold_sum(text, c) + capacity * c for c in running(text)) for text, _ in known]
        yield at_most(value, sum(share * low for (_, share), low in zip(known, least, strict=True)))
        return
    thresholds = {weight for text, _ in known for weight in running(text)} | {Fraction(1)}
    for c in thresholds:
        yield at_most(value, sum(share * threshold_sum(text, c) for text, share in known) + capacity * c)


def model_cases(effort: Effort) -> Iterator[Case]:
    """A pmf of its own after every prefix, every text, every t."""
    rng = random.Random(effort.seed)
    for number in range(effort.pick(30, 300)):
        yield {"model": random_model(rng, 2 + number % 2, 4), "capacity": 1 + number % 3}


def drawn_models() -> st.SearchStrategy[Case]:
    """Targets on 2 tokens, P up to 2."""
    return st.fixed_dictionaries({"model": models(2, 3), "capacity": st.integers(1, 2)})


def iid_least(pmfs: Ensemble, capacity: Fraction, value: Fraction) -> Iterator[Compared]:
    """B6 at its best t for i.i.d. pmfs, between E[X] and B3'."""
    laws = [many_steps(pmfs, n) for n in range(1, int(capacity) + 1)]
    values = [
        sum(share * positive_part(1 - c / weight) for law in laws for weight, share in law.items()) + capacity * c
        for c in {weight for law in laws for weight in law} | {Fraction(1)}
    ]
    yield at_most(value, min(values))
    yield at_most(min(values), heaviest(pmfs, capacity))


def iid_cases(effort: Effort) -> Iterator[Case]:
    """One or two pmfs, P up to 4."""
    for pmfs in small_ensembles():
        for capacity in range(1, effort.pick(5, 7)):
            yield with_value(pmfs, capacity)


TEXT = Claim("E[X] <= E sum_{i<=P} (1 - e^-(t-S_i))+ + P e^-t for every t", from_texts)
TEXT_WRONG = Claim("with t fitted to each text", lambda **case: from_texts(**case, fitted=True))
IID = Claim("for i.i.d. pmfs E[X] <= B6 <= B3', at the best t", iid_least, (UNCERTAIN, MODERATE))
IID_WRONG = Claim(
    "for i.i.d. pmfs E[X] is at most B3' of P - 1",
    lambda pmfs, capacity, value: at_most(value, heaviest(pmfs, capacity - 1) if capacity > 1 else Fraction(0)),
    (UNCERTAIN, MODERATE),
)


def surprisals(texts: Texts) -> list[NDArray[np.float64]]:
    """-log p of every token, in double precision."""
    return [-np.log(np.array([float(chance) for chance in text])) for text in texts]


def starts_of(texts: Texts, capacity: int, short: int = 0) -> list[Chances]:
    """What follows each start with P tokens left, P of them; with `short` fewer left, for the control."""
    return [text[n : n + capacity] for text in texts for n in range(len(text) - capacity + 1 + short)]


def from_text(starts: Sequence[Chances], capacity: int, c: Fraction) -> Fraction:
    """B6 at c = e^-t, the mean over starts."""
    return total(threshold_sum(start, c) for start in starts) / len(starts) + capacity * c


def fitted_threshold(starts: Sequence[Chances], capacity: int) -> Fraction:
    """The c at which B6 is least: the first value, downwards, above which P prefixes are expected."""
    weights = sorted((weight for start in starts for weight in running(start)), reverse=True)
    number = Fraction(0)
    for weight in weights:
        number += 1 / weight / len(starts)
        if number >= capacity:
            return weight
    raise AssertionError("too little text")


def on_text(texts: Texts, capacity: int, c: Fraction, short: int = 0) -> Iterator[Compared]:
    """The library's B6 from text, its terms, and its best threshold; `short` is the control's."""
    starts = starts_of(texts, capacity, short)
    t = -math.log(c)
    given = surprisals(texts)
    yield computed(branching_bound_from_text(given, capacity, t), smaller(from_text(starts, capacity, c), capacity))
    walks, whole = surprisal_walks(np.concatenate(given), np.array([len(text) for text in texts]), capacity)
    yield computed(threshold_terms(walks[whole], t).sum(), sum(threshold_sum(start, c) for start in starts))
    least = math.exp(-best_threshold(walks[whole], capacity))
    yield computed(least, fitted_threshold(starts, capacity))


def text_cases(effort: Effort) -> Iterator[Case]:
    """Four texts of 4 to 12 tokens, P up to 4."""
    rng = random.Random(effort.seed)
    for number in range(effort.pick(40, 400)):
        texts = tuple(tuple(Fraction(rng.randint(5, 999), 1009) for _ in range(rng.randint(4, 12))) for _ in range(4))
        yield {"texts": texts, "capacity": 1 + number % 4, "c": Fraction(rng.randint(1, 99), 101)}


def trace_of(texts: Texts, draft: float, moments_of: tuple[float, float] = (1.0, 1.0)) -> Trace:
    """A trace of these texts; every draft has the same probability."""
    columns = {
        "log_target": -np.concatenate(surprisals(texts)),
        "log_draft": np.full(sum(map(len, texts)), math.log(draft)),
        "target_entropy": np.full(sum(map(len, texts)), moments_of[0]),
        "target_second_moment": np.full(sum(map(len, texts)), moments_of[1]),
    }
    return Trace(columns, tuple(TextInfo(str(n), len(text)) for n, text in enumerate(texts)))


def along_traces(texts: Texts, capacity: int, c: Fraction, crossed: bool = True) -> Iterator[Compared]:
    """B6 of a trace, each half of the prompts with the threshold of the other, and the one-call bound at q = c."""
    trace = trace_of(texts, float(c))
    prompts = Prompts(trace.texts)
    limit = TextLimit(prompts, trace, [capacity]).at(capacity)
    assert limit
    halves = [starts_of(texts[side::2], capacity) for side in (0, 1)]
    chosen = [fitted_threshold(half, capacity) for half in (halves[::-1] if crossed else halves)]
    whole = sum(len(half) * from_text(half, capacity, t) for half, t in zip(halves, chosen, strict=True))
    starts = starts_of(texts, capacity)
    yield computed(limit.best, smaller(whole / len(starts), capacity) + 1)
    terms = [smaller(c**n / weight, Fraction(1)) for start in starts for n, weight in enumerate(running(start), 1)]
    yield computed(one_call_bound(prompts, trace, [capacity])[capacity].best, sum(terms) / len(starts) + 1)


def reading(mu: Real, mu2: Real, capacity: Real, bonus: int = 1) -> Compared:
    """The i.i.d. reading of a trace: B2' of its mean moments, and the token beyond."""
    given = as_floats(mu, mu2, capacity)
    trace = trace_of([(Fraction(1, 2),) * 8] * 2, 0.5, (given[0], given[1]))
    form = predict(trace, TokenVerification(), Chain(int(given[2]))).limits.iid_branching
    assert form is not None
    return computed(form, sharp_form(mu, mu2, capacity) + bonus)


B6 = Entry(
    id="B6",
    title="Branching bound from text",
    kind="upper bound",
    plain="E[X] <= mean over starts of sum_{i<=P} (1 - e^-(t-S_i))+ + P e^-t, for every t fixed beforehand, S_i "
    "the surprisal of the i tokens after the start; for i.i.d. pmfs at most B3' at the best t",
    latex=r"E[X] \le E \sum_{i \le P} \big(1 - e^{-(t - S_i)}\big)_+ + P e^{-t}",
    assumptions=(
        "the text is sampled from the target; there is no other condition on it",
        "starts are distributed as those of the calls; t does not depend on the text it is used on",
        "the P prefixes are chosen without the target's sampling (B4)",
    ),
    calculators=(
        *public("limits", "branching_bound_from_text"),
        *public("limits.text", "surprisal_walks threshold_terms best_threshold"),
        *public("prediction.trace_limits", "Limits"),
        *public("prediction.text_limit", "TextLimit"),
        "spectheory.bounds",
    ),
    evidence=(
        proof("a text runs through a prefix with its probability; duality; the mean over starts", ANY_TEXT),
        exact(TEXT, model_cases, wrong=TEXT_WRONG),
        exact(IID, iid_cases, wrong=IID_WRONG),
        agreement(
            Claim("the library's B6, its terms and its best threshold", on_text),
            text_cases,
            wrong=Claim("with a start too near the end", lambda **case: on_text(**case, short=1)),
        ),
        agreement(
            Claim(
                "the limits of a trace: B6 cross-fitted over halves of the prompts, the one-call bound", along_traces
            ),
            text_cases,
            wrong=Claim("each half with its own threshold", lambda **case: along_traces(**case, crossed=False)),
        ),
        agreement(
            Claim("the idealised value of a trace is B2' plus one", reading),
            lambda effort: (case for case in setting_cases(effort) if case["capacity"] <= 8),
            over="mu from 0.001 to 20, mu2/mu^2 up to 90, P up to 8",
            wrong=Claim("it is B2'", lambda **case: reading(**case, bonus=0)),
        ),
        searched(TEXT, drawn_models, wrong=TEXT_WRONG),
    ),
)

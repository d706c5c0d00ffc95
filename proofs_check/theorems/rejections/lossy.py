"""Y7: what engines output that accept more than a lossless rule may, and the law of their calls given their text."""

from __future__ import annotations

from proofs_check.algorithms.enumeration import given_text, output_law, outputs
from proofs_check.algorithms.rejection_algorithms import *
from proofs_check.prelude import *
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import (
    BiasedVerification,
    LossyRule,
    RelaxedAcceptance,
    TargetThresholds,
    TokenVerification,
    TypicalAcceptance,
)

# The rules as the engines' sources have them: at a position (drafted token, its share, acceptance, recovery law).

Judged = Iterable[tuple[int, Real, Real, Pmf]]
Position = Callable[[Pmf, Pmf], Judged]


def first(pmf: Pmf) -> int:
    """The most probable token, the lowest index first."""
    return max(range(len(pmf)), key=lambda x: (pmf[x], -x))


def certain(pmf: Pmf) -> Pmf:
    """All mass on the first choice."""
    return tuple(Fraction(int(x == first(pmf))) for x in range(len(pmf)))


def ensemble(weight: Real, keeps: bool = True) -> Position:
    """transformers: a sampled draft is accepted with 1 - w + w p/q, else recovered from (p - q)+."""

    def judged(p: Pmf, q: Pmf) -> Judged:
        for x, share in enumerate(q):
            if share > 0:
                other = 1 - weight if keeps else Fraction(0)
                yield x, share, smaller(Fraction(1), other + weight * p[x] / share), normed(excess(p, q), p)

    return judged


def thresholds(single: Real, acc: Real) -> Position:
    """SGLang: a coin is at most p/acc, or p is at least the other threshold; else p without the draft."""

    def judged(p: Pmf, q: Pmf) -> Judged:
        z = first(q)
        others = tuple(share if x != z else 0 * share for x, share in enumerate(p))
        yield z, Fraction(1), Fraction(1) if p[z] >= single else smaller(Fraction(1), p[z] / acc), normed(others, p)

    return judged


def typical(epsilon: Real, delta: Real) -> Position:
    """Medusa: above the smaller of epsilon and delta exp(-H), else the target's first choice."""

    def judged(p: Pmf, q: Pmf) -> Judged:
        z = first(q)
        nats = -sum(float(share) * math.log(share) for share in p if share > 0)
        yield z, Fraction(1), Fraction(int(p[z] > min(float(epsilon), float(delta) * math.exp(-nats)))), certain(p)

    return judged


def relaxed(top: int, delta: Real) -> Position:
    """TensorRT-LLM: among the target's first tokens and not more than delta below the first, else that one."""

    def judged(p: Pmf, q: Pmf) -> Judged:
        z = first(q)
        listed = sorted(range(len(p)), key=lambda x: (-p[x], x))[:top]
        yield z, Fraction(1), Fraction(int(z in listed and p[z] >= max(p) - delta)), certain(p)

    return judged


W, SINGLE, ACC, EPSILON, DELTA, GAP = (Fraction(n, 100) for n in (37, 71, 83, 29, 41, 21))
"""Settings that no small fraction equals, so that no comparison is a tie."""
RULES: Mapping[str, tuple[Position, LossyRule]] = {
    "ensemble": (ensemble(W), BiasedVerification(1 - float(W))),
    "thresholds": (thresholds(SINGLE, ACC), TargetThresholds(float(SINGLE), float(ACC))),
    "typical": (typical(EPSILON, DELTA), TypicalAcceptance(float(EPSILON), float(DELTA))),
    "relaxed": (relaxed(2, GAP), RelaxedAcceptance(2, float(GAP))),
}


def enumerated(position: Position, p: Pmf, q: Pmf) -> tuple[Pmf, Pmf]:
    """The masses of accepted and of recovered tokens, draft by draft."""
    accepted, recovered = [Fraction(0)] * len(p), [Fraction(0)] * len(p)
    for token, share, accept, recovery in position(p, q):
        accepted[token] += share * accept
        for x, mass in enumerate(recovery):
            recovered[x] += share * (1 - accept) * mass
    return tuple(accepted), tuple(recovered)


def output(position: Position, p: Pmf, q: Pmf) -> Pmf:
    """The law of the output."""
    return tuple(a + r for a, r in zip(*enumerated(position, p, q), strict=True))


def calls(position: Position, greedy: bool) -> Rule:
    """Whole calls: drafts are judged one after the other, and the bonus token is the target's."""

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> Any:
        alive: list[tuple[Prefix, Fraction]] = [((), Fraction(1))]
        for _ in range(k):
            going = []
            for path, weight in alive:
                for token, share, accept, recovery in position(target(prefix + path), draft(prefix + path)):
                    if accept > 0:
                        going.append(((*path, token), weight * share * accept))
                    if accept < 1:
                        yield from outputs(path, recovery, weight * share * (1 - accept))
            alive = going
        for path, weight in alive:
            last = target(prefix + path)
            yield from outputs(path, certain(last) if greedy else last, weight)

    return call


# Claims


def _laws(p: Pmf, q: Pmf, w: Real, s: Real, a: Real, exchanged: bool = False) -> Iterator[Compared]:
    """The mixture of weight w, TV (1-w) TV(p, q); z with its acceptance c, others in proportion, TV c - p_z."""
    mixed_by = w if exchanged else 1 - w
    law = output(ensemble(w), p, q)
    yield from (equal(x, y) for x, y in zip(law, mixture(p, q, mixed_by), strict=True))
    yield equal(distance(law, p), (1 - w) * distance(p, q))
    z, law = first(q), output(thresholds(s, a), p, q)
    chance = Fraction(1) if p[z] >= s else smaller(Fraction(1), p[z] / a)
    for x, share in enumerate(p):
        rest = (1 - chance) * share / (1 - p[z]) if x != z and p[z] < 1 else 0 * share
        yield equal(law[x], chance if x == z else rest)
    yield equal(distance(law, p), chance - p[z])


def settings(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 and 3 tokens, zeros among them, with weights and thresholds of a grid up to 1."""
    grid = [Fraction(1, 4), Fraction(2, 3), Fraction(1)]
    return with_each(cases.all_pairs(3, effort.pick(3, 5)), w=grid, s=grid, a=grid)


def _library(p: Pmf, q: Pmf, name: str, drafts: bool = False) -> Iterator[Compared]:
    """The library's acceptance, masses and output law."""
    position, rule = RULES[name]
    accepted, recovered = enumerated(position, p, q)
    masses = rule.masses(floats(p), floats(q))
    yield from map(computed, masses.accepted, q if drafts else accepted)
    yield from map(computed, masses.recovered, recovered)
    yield computed(float(rule.acceptance(floats(p), floats(q))), sum(accepted))
    yield from map(computed, rule.output_law(floats(p), floats(q)), output(position, p, q))


def named(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 and 3 tokens, zeros among them, with each rule."""
    return with_each(cases.all_pairs(3, effort.pick(4, 6)), name=RULES)


def columns_of(target: Model, draft: Model, text: Prefix) -> dict[str, NDArray[Any]]:
    """The columns of a text from both models' tables."""
    rows = []
    for n, x in enumerate(text):
        p, q = target(text[:n]), draft(text[:n])
        z = first(q)
        rank = sorted(range(len(p)), key=lambda y: (-p[y], y)).index
        nats = -sum(float(share) * math.log(share) for share in p if share > 0)
        places = int(z != x) + 1, rank(x) + 1, rank(z) + 1
        rows.append((p[x], q[x], p[z], max(p), float(distance(p, q)), nats, *places))
    logs = "log_target", "log_draft", "choice_target", "choice_top"
    others = "total_variation", "target_entropy", "draft_rank", "target_rank", "choice_rank"
    table = np.array(rows, dtype=float).T
    with np.errstate(divide="ignore"):
        return dict(zip((*logs, *others), (*np.log(table[:4]), *table[4:]), strict=True))


def _given_text(target: Table, draft: Table, name: str, k: int, lossless: bool = False) -> Iterator[Compared]:
    """Survival of the first call and expected calls, given each text that the rule writes."""
    position, rule = RULES[name]
    steps, greedy = steps_of(target), name in ("typical", "relaxed")
    p, q = model_of(target), model_of(draft)
    whole = Decoding(calls(position, greedy), k, steps, spare=1).law(p, q)
    for text in output_law(whole):
        law = given_text(whole, text)
        columns = columns_of(p, q, text)
        survival = (TokenVerification() if lossless else rule).path_survival(columns, k)
        for i in range(1, min(k, steps - 1) + 1):
            yield computed(survival[0, i - 1], total(share for counts, share in law.items() if counts[0] >= i))
        expected = calls_of_texts(survival, np.array([steps])).expected[0]
        yield computed(float(expected), total(share * len(counts) for counts, share in law.items()))


def models_and_rules(effort: Effort) -> Iterator[Case]:
    """Random models of the whole prefix, chains of one and two drafts, with each rule."""
    sized = tables(83, ((2, 3), (3, 3)), effort.pick(4, 20))
    return with_each(sized, name=RULES, k=(1, 2))


def _at_zero(p: Pmf, q: Pmf, position: Position) -> Iterator[Compared]:
    """The output is the target's first choice where that has all mass."""
    best = certain(p)
    yield from (equal(x, y) for x, y in zip(output(position, best, q), best, strict=True))


def one_hot(effort: Effort) -> Iterator[Case]:
    """Targets with one possible token, drafts on 2 and 3 tokens, thresholds and typical acceptance of a grid."""
    grid = [Fraction(1, 4), Fraction(1)]
    kept = [made(*both) for both in product(grid, repeat=2) for made in (thresholds, typical)]
    return with_each(cases.all_pairs(3, effort.pick(3, 5)), position=kept)


def _greedy(p: Pmf, q: Pmf, w: Real, d: Real, lossless: bool = False) -> Iterator[Compared]:
    """The output law of both, of the pmf of all mass on the first choice and of the plain softmax."""
    yield from _at_zero(p, q, ensemble(Fraction(1) if lossless else w))
    law = output(relaxed(1 if lossless else 2, d), p, q)
    yield from (equal(x, y) for x, y in zip(law, certain(p), strict=True))


def weights(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens by denominator, half the mass for the weight and the gap."""
    return with_each(cases.pairs(2, effort.pick(3, 5)), w=[Fraction(1, 2)], d=[Fraction(1, 2)])


PROOF = (
    same(
        "min(q, w p + (1-w) q) + w (p - q)+ is w p + (1-w) q where p > q",
        lambda p, q, w: (q + w * (p - q), w * p + (1 - w) * q),
    ),
    same(
        "and where p <= q, where nothing is recovered: so p' = w p + (1-w) q, and p' - p = (1-w)(q - p)",
        lambda p, q, w: (w * p + (1 - w) * q - p, (1 - w) * (q - p)),
    ),
    same(
        "of thresholds another token loses p - (1-c) p/(1 - p_z) = p (c - p_z)/(1 - p_z), in all c - p_z: the distance",
        lambda p, z, c: (p - (1 - c) * p / (1 - z), p * (c - z) / (1 - z)),
    ),
)

Y7 = Entry(
    id="Y7",
    title="Rules of engines that change the text",
    kind="identity",
    plain="an ensemble of weight w outputs w p + (1-w) q, TV (1-w) TV(p, q); with thresholds s and a the draft's first "
    "choice z is output with c = 1 if p_z >= s, else min(1, p_z/a), other tokens with (1-c) p/(1-p_z), TV c - p_z; "
    "typical and relaxed acceptance output z or the target's first choice. Given the text of such a rule its calls are "
    "a chain with weights a_1..a_i r_{i+1}, a_1..a_k b for a full call",
    latex=r"p' = wp + (1-w)q;\quad p'_z = c,\; p'_x = \tfrac{1-c}{1-p_z}p_x;\quad "
    r"P(\tau = i \mid text) \propto a_1\cdots a_i\, r_{i+1} Z_{i+1}",
    assumptions=(
        "one position; along a text p' holds at verified positions, and the bonus token is the target's (its first "
        "choice for typical and relaxed acceptance)",
        "0 < w, s, a <= 1; thresholds, typical and relaxed acceptance judge the draft's first choice",
        "thresholds and typical acceptance keep the target's text at temperature 0; the others do not (Y7/zero)",
    ),
    calculators=public(
        "verification", "LossyRule BiasedVerification TargetThresholds TypicalAcceptance RelaxedAcceptance"
    ),
    evidence=(
        proof("term by term", PROOF),
        exact(
            Claim("output laws and distances of ensembles and thresholds, every draft and coin enumerated", _laws),
            settings,
            wrong=Claim("the ensemble with w and 1-w exchanged", partial(_laws, exchanged=True)),
        ),
        exact(
            Claim("thresholds and typical acceptance keep a one-hot target", _at_zero),
            one_hot,
            wrong=Claim("so does an ensemble", lambda p, q, position: _at_zero(p, q, ensemble(Fraction(1, 2)))),
        ),
        agreement(
            Claim("the library's masses, acceptance and output laws of all four", _library),
            named,
            wrong=Claim("every draft accepted", partial(_library, drafts=True)),
        ),
        agreement(
            Claim("the library's survival and calls given the rule's own text, from columns", _given_text),
            models_and_rules,
            wrong=Claim("those of token verification", partial(_given_text, lossless=True)),
        ),
    ),
    without={
        "search": "the identity is settled term by term",
        "simulation": "`validate` decodes these rules with models",
    },
)

Y7_ZERO = Entry(
    id="Y7/zero",
    title="Ensembles and relaxed acceptance at temperature 0",
    kind="refuted",
    plain="every lossy rule keeps the target's text at temperature 0",
    latex=r"p \text{ one-hot} \Rightarrow p' = p",
    assumptions=("relaxed acceptance reads the plain softmax, whose first choice is the target's text",),
    evidence=(
        counterexample(
            Claim("ensembles and relaxed acceptance output the target's first choice", _greedy),
            weights,
            true=Claim("with weight 1 and among one token they do", partial(_greedy, lossless=True)),
        ),
    ),
)

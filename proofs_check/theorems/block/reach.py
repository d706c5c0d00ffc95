"""How far B7 reaches: drafts that stop by the text, and several chains, where it fails."""

from __future__ import annotations

from proofs_check.agreement.path_cases import CHAINS, random_chains
from proofs_check.prelude import *
from proofs_check.twins.block_values import *
from proofs_check.twins.path_theorem import least_calls

QUARTER, HALF, SURE = Fraction(1, 4), Fraction(1, 2), (Fraction(0), Fraction(1))

# Stops that are functions of the text


def stopping(effort: Effort) -> Iterator[Case]:
    """Equal models, then random ones of any order, zeros included; after every text whether drafting goes on."""
    runs, equal_models = prefixes(2, 6), dict.fromkeys(prefixes(2, 6), (HALF, HALF))
    by_length = {run: len(run) % 3 == 0 for run in runs}
    yield {"target": equal_models, "draft": equal_models, "k": 2, "length": 4, "live": by_length}
    rng = random.Random(f"stops {effort.seed}")
    for case in random_chains(effort, ((2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 2, 2)), 5):
        runs = prefixes(len(case["target"][()]), case["length"] + case["k"])
        yield {**case, "live": {run: rng.random() < 0.7 for run in runs}}


def stopped(by_start: bool, target: Table, draft: Table, k: int, length: int, live: Mapping[Prefix, bool]) -> Problem:
    """Drafting goes on after the texts that are live; `by_start`, in calls after odd texts, after the others."""
    given = problem(target, draft, k, length, None)
    return replace(given, goes_on=lambda text, run: live[text + run] != (by_start and len(text) % 2 == 1))


def optimal_with_stops(of: MassesOf, by_start: bool, **case: Any) -> Iterator[Compared]:
    """Block verification's value is the optimum of a linear programme over all policies, and D is 0 or more."""
    given = stopped(by_start, **case)
    value = expected_calls(given, of)
    fall = drop(given, value)
    yield at_most(abs(Fraction(fewest_calls(given)) - value(())), SOLVED)
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))


B7_STOPS = Entry(
    id="B7/stops",
    title="Drafts that stop by the text",
    kind="optimality",
    plain="let a run be live after w if it is drafted as far as its tokens are drawn. Block verification stays optimal "
    "among all policies with these stops, and D >= 0, if zx live after w implies that x is live after wz: so for every "
    "stop that is a function of the text and the drafts, wherever the call began",
    latex=r"zx \text{ live after } w \ \Rightarrow\ x \text{ live after } wz",
    assumptions=("as for B7; every call drafts as the stops say, up to k tokens",),
    evidence=(
        exact(
            Claim(
                "stops by text: the optimum of a linear programme over all policies is V to 1e-8, and D >= 0",
                partial(optimal_with_stops, block_masses, False),
            ),
            stopping,
            wrong=Claim(
                "stops that depend on the start too: the same", partial(optimal_with_stops, block_masses, True)
            ),
        ),
    ),
    without={
        "certified": "no logarithm enters",
        "symbolic": "the shift (iii) of B7 over live runs: those after w that begin with z are among those after wz, "
        "and the terms left out are 0 or more",
        "search": "the cases are enumerated, and by linear programmes",
        "simulation": "every policy is in the programme",
    },
)

# Several chains


def chains_after(lead: int, chains: int) -> Problem:
    """`lead` agreed tokens, then p = q = (1/4, 3/4); after 0 p = q = (1/2, 1/2), after 1 a certain token, half drafted;
    the last token is agreed. Calls of so many chains of two drafts.
    """

    def model(drafted: bool) -> Model:
        def pmf(text: Prefix) -> Pmf:
            if len(text) == lead:
                return (QUARTER, 3 * QUARTER)
            if len(text) == lead + 1:
                return (HALF, HALF) if text[-1] == 0 or drafted else SURE
            return SURE

        return pmf

    return replace(texts(model(False), model(True), 2, lead + 3), chains=chains)


def after(given: Problem, text: Prefix) -> Problem:
    """What is left to decode after a text."""

    def draft_from(start: Prefix) -> Model:
        draft = given.draft_from(text + start)
        return lambda run: draft(text + run)

    def target(run: Prefix) -> Pmf:
        return given.target(text + run)

    return replace(given, target=target, draft_from=draft_from, ended=lambda run: given.ended(text + run))


def free_token(chains: int) -> Iterator[Compared]:
    """A free first token costs no calls: V is at least the mean of V(z)."""
    given = chains_after(0, chains)
    later = given.following((), lambda text: Fraction(fewest_calls(after(given, text))))
    yield at_most(later, Fraction(fewest_calls(given)) + SOLVED)


def most_first(chains: int) -> Iterator[Compared]:
    """Where both drafts and the target agree, accepting both and then the best is best."""
    given = chains_after(2, chains)
    accepted = (SURE.index(1),) * 2
    rest = after(given, accepted)
    both = 1 + rest.following((), lambda text: Fraction(fewest_calls(after(rest, text))))
    yield at_most(both, Fraction(fewest_calls(given)) + SOLVED)


def as_stated(chains: int) -> Iterator[Compared]:
    """V and the mean of V(z) of the pair, and V behind two agreed tokens, with two chains."""
    given = chains_after(0, chains)
    later = given.following((), lambda text: Fraction(fewest_calls(after(given, text))))
    stated = (
        (fewest_calls(given), Fraction(73, 64)),
        (later, Fraction(76, 64)),
        (
            fewest_calls(chains_after(2, chains)),
            Fraction(137, 64),
        ),
    )
    for found, value in stated:
        yield at_most(abs(Fraction(found) - value), SOLVED)


B11 = Entry(
    id="B11/two-chains",
    title="No analogue of B7 for two chains",
    kind="refuted",
    plain="with several i.i.d. chains a free token never costs calls, and accepting the most is best (with two chains "
    "of two drafts, p = q = (1/4, 3/4), after 0 p = q = (1/2, 1/2), after 1 p = (0, 1), q = (1/2, 1/2) and an agreed "
    "last token, V = 73/64 and E V(z) = 76/64: D = -3/64; behind two agreed tokens accepting both drafts costs 35/16, "
    "accepting one 137/64, the optimum)",
    latex=r"D(w) = V(w) - E_z V(wz) \ge 0",
    assumptions=(
        "c i.i.d. chains of two drafts a call; every call is lossless and fresh; V is the least of any policy",
    ),
    evidence=(
        counterexample(
            Claim("a free token costs no calls", free_token),
            lambda _: [{"chains": 2}],
            over="two chains on the pair",
            true=Claim("with one chain it does not", lambda chains: free_token(chains - 1)),
        ),
        counterexample(
            Claim("accepting both agreed drafts is best", most_first),
            lambda _: [{"chains": 2}],
            over="two chains behind two agreed tokens",
            true=Claim("with one chain it is", lambda chains: most_first(chains - 1)),
        ),
        counterexample(
            Claim("with one chain the values are those stated", lambda chains: as_stated(chains - 1)),
            lambda _: [{"chains": 2}],
            over="the pair",
            true=Claim("with two chains they are, by linear programmes over all policies to 1e-8", as_stated),
        ),
    ),
)

# L of a draft model


def five_tokens(effort: Effort) -> Iterator[Case]:
    """Random models of any order, zeros included; texts of 5 tokens, 2 drafts."""
    return random_chains(effort, ((2, 5, 2),), 20)


def limits_in_order(sign: int, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The mean of L over texts is at most V, the fewest calls of any policy; or at least."""
    given, p = problem(target, draft, k, length, None), target.__getitem__
    survival = CHAINS["block"].survival
    law = text_law(p, length).items()
    mean = total(share * least_calls(survival(p, draft.__getitem__, text), k, length) for text, share in law)
    yield at_most(sign * mean, sign * expected_calls(given)(()))


P12_L_AT_ONCE = Entry(
    id="§12/L-at-once",
    title="The limit L, attained along all texts at once",
    kind="refuted",
    plain="one lossless fresh policy makes L(0) calls along every text, so that the mean of L is attained (each text "
    "has a policy that does; for a draft model the mean of L may lie below V, the fewest calls of any policy)",
    latex=r"E_x L(0) = \min_{\text{policies}} E[\text{calls}]",
    assumptions=("as for B7",),
    evidence=(
        counterexample(
            Claim("the mean of L is V or more", partial(limits_in_order, -1)),
            five_tokens,
            true=Claim("it is V or less", partial(limits_in_order, 1)),
        ),
    ),
)

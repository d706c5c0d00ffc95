"""Every adaptive draft length on small models (§11): the cheapest policy, and the clairvoyant bound."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts
from proofs_check.agreement.path_cases import CHAINS, greedy, random_chains
from proofs_check.agreement.stopped_cases import STOPPABLE, room
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival, accepted_law
from spectheory.prediction.clairvoyant import least_seconds
from spectheory.verification import RULES

NAMES = ("token", "block", "argmax")


@dataclass(frozen=True)
class Adaptive:
    """Models, rule, most drafts, tokens of the text, and what a draft pass and a further token of a call cost.

    The target's pass on one token costs 1.
    """

    name: str
    target: Model
    draft: Model
    k: int
    length: int
    step: Fraction
    token: Fraction

    def cost(self, drafted: int) -> Fraction:
        """Of a call with so many drafts."""
        return 1 + drafted * (self.step + self.token)


Policy = Mapping[Prefix, bool]
"""After each run of drafts whether another is drafted."""

Decided = Callable[[Adaptive, Prefix], Iterator[Policy]]
"""The policies that a call after a prefix may follow."""


def every_policy(setting: Adaptive, before: Prefix) -> Iterator[Policy]:
    """All functions of the drafts."""
    most = room(setting.k, setting.length, len(before))
    runs = [run for n in range(most) for run in product(range(len(setting.target(()))), repeat=n)]
    for choices in product((False, True), repeat=len(runs)):
        yield dict(zip(runs, choices, strict=True))


def fixed_policy(setting: Adaptive, before: Prefix) -> Iterator[Policy]:
    """Always k drafts."""
    yield {}


def cheapest(setting: Adaptive, decided: Decided) -> Fraction:
    """The least expected cost of a text, each call by the best policy after its prefix (dynamic programme)."""
    known: dict[Prefix, Fraction] = {}

    def left(before: Prefix) -> Fraction:
        if len(before) >= setting.length:
            return Fraction(0)
        if before not in known:
            known[before] = min(_cost(setting, before, policy, left) for policy in decided(setting, before))
        return known[before]

    return left(())


def _cost(setting: Adaptive, before: Prefix, policy: Policy, left: Callable[[Prefix], Fraction]) -> Fraction:
    """Expected cost from here on if this call follows the policy."""

    def goes_on(draft: Model, prefix: Prefix, path: Prefix) -> bool:
        return policy.get(path, True)

    most = room(setting.k, setting.length, len(before))
    drawn = greedy(setting.draft) if setting.name == "argmax" else setting.draft
    paths = draft_paths(drawn, before, most, goes_on)
    cost = sum((share * setting.cost(len(path)) for path, share in paths), Fraction(0))
    law = STOPPABLE[setting.name](setting.target, setting.draft, before, most, goes_on)
    return cost + sum((share * left(before + output) for (output, _), share in law.items()), Fraction(0))


def clairvoyant(setting: Adaptive, survival: Survival) -> Fraction:
    """T(0) of a text: each call knows how many drafts it could accept, and drafts no more."""
    left = [Fraction(0)] * (setting.length + setting.k + 2)
    for n in range(setting.length - 1, -1, -1):
        costs = [setting.cost(i) + left[n + i + 1] for i in range(room(setting.k, setting.length, n) + 1)]
        law = accepted_law(survival, n, len(costs) - 1, setting.length)
        left[n] = sum((share * min(costs[: i + 1]) for i, share in enumerate(law)), Fraction(0))
    return left[0]


def mean_clairvoyant(setting: Adaptive) -> Fraction:
    """Its mean over texts."""
    of = CHAINS[setting.name].survival
    return sum(
        (
            share * clairvoyant(setting, of(setting.target, setting.draft, text))
            for text, share in text_law(setting.target, setting.length).items()
        ),
        Fraction(0),
    )


def best_fixed(setting: Adaptive) -> Fraction:
    """The least cost of chains that always draft k' tokens, k' = 0..k."""
    return min(cheapest(replace(setting, k=k), fixed_policy) for k in range(setting.k + 1))


Bound = Callable[[Adaptive], Fraction]


def bounded(bound: Bound, target: Table, draft: Table, k: int, length: int, **costs: Fraction) -> Iterator[Compared]:
    """No policy costs less than the bound."""
    for name in NAMES:
        setting = Adaptive(name, target.__getitem__, draft.__getitem__, k, length, **costs)
        yield at_most(bound(setting), cheapest(setting, every_policy))


def library_seconds(
    bound: Bound, target: Table, draft: Table, k: int, length: int, **costs: Fraction
) -> Iterator[Compared]:
    """The library's bound, in the mean over all texts."""
    texts = Texts(target, draft, length)
    columns = texts.trace().columns
    shares = np.array([float(share) for share in text_law(target.__getitem__, length).values()])
    for name in NAMES:
        setting = Adaptive(name, target.__getitem__, draft.__getitem__, k, length, **costs)
        times = np.array([float(setting.cost(drafted)) for drafted in range(k + 1)])
        found = least_seconds(RULES[name].path_survival(columns, k), texts.lengths, times)
        yield computed(shares @ found, bound(setting))


def priced(effort: Effort) -> Iterator[Case]:
    """Random models with a cost of a draft pass and of a further token in a call."""
    rng = random.Random(f"costs {effort.seed}")
    for case in random_chains(effort, ((2, 3, 2), (2, 4, 2), (2, 4, 3)), 3):
        yield {**case, "step": Fraction(rng.randint(1, 12), 20), "token": Fraction(rng.randint(0, 4), 20)}

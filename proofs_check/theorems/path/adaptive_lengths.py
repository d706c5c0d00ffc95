"""§11: what adaptive draft lengths can save for one rule: the cheapest policy, and a bound along texts."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts
from proofs_check.agreement.path_cases import CHAINS, STOPPABLE, drafts_of, greedy, random_chains, room
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival, accepted_law, likelihood_ratio
from spectheory.prediction.adaptive import least_seconds
from spectheory.prediction.stopped import weights_along
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
    runs = prefixes(len(setting.target(())), most)
    for choices in product((False, True), repeat=len(runs)):
        yield dict(zip(runs, choices, strict=True))


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
    proposal = greedy(setting.draft) if setting.name == "argmax" else setting.draft
    paths = draft_paths(proposal, before, most, goes_on)
    cost = total(share * setting.cost(len(path)) for path, share in paths)
    law = STOPPABLE[setting.name](setting.target, setting.draft, before, most, goes_on)
    return cost + total(share * left(before + output) for (output, _), share in law.items())


Drafted = Callable[[Adaptive, Survival, Prefix, int, int], Fraction]
"""How many times more than i tokens are drafted from n on, for each call that would go on after the text's next i."""


def by_ratios(setting: Adaptive, survival: Survival, text: Prefix, n: int, i: int) -> Fraction:
    """The product of the ratios q/p: right in the mean over texts."""
    q = drafts_of(CHAINS[setting.name], setting.name, setting.draft)
    ratios = [likelihood_ratio(setting.target(text[:at]), q(text[:at]), text[at]) for at in range(n, n + i)]
    return Fraction(math.prod(ratios))


def by_accepted(setting: Adaptive, survival: Survival, text: Prefix, n: int, i: int) -> Fraction:
    """What the accepted drafts say: certain for every text."""
    return survival(n, i) if i else Fraction(1)


def by_wishes(setting: Adaptive, survival: Survival, text: Prefix, n: int, i: int) -> Fraction:
    """As if every draft were one of the text."""
    return Fraction(1)


def least_of_text(drafted: Drafted, setting: Adaptive, survival: Survival, text: Prefix) -> Fraction:
    """W(0) of a text: of each call the best length along the text, from the law of what it accepts."""
    left = [Fraction(0)] * (setting.length + setting.k + 2)
    for n in range(setting.length - 1, -1, -1):
        costs = []
        for most in range(room(setting.k, setting.length, n) + 1):
            law = accepted_law(survival, n, most, setting.length)
            passes = total(drafted(setting, survival, text, n, i) for i in range(most))
            costs.append(
                setting.cost(0)
                + passes * (setting.step + setting.token)
                + total(share * left[n + i + 1] for i, share in enumerate(law))
            )
        left[n] = min(costs)
    return left[0]


def mean_least(drafted: Drafted, setting: Adaptive) -> Fraction:
    """Its mean over texts."""
    of = CHAINS[setting.name].survival
    return total(
        share * least_of_text(drafted, setting, of(setting.target, setting.draft, text), text)
        for text, share in text_law(setting.target, setting.length).items()
    )


def best_fixed(setting: Adaptive) -> Fraction:
    """The least cost of chains that always draft k' tokens, k' = 0..k."""
    return min(cheapest(replace(setting, k=k), lambda *_: iter([{}])) for k in range(setting.k + 1))


Bound = Callable[[Adaptive], Fraction]


def bounded(bound: Bound, target: Table, draft: Table, k: int, length: int, **costs: Fraction) -> Iterator[Compared]:
    """No policy costs less than the bound."""
    for name in NAMES:
        setting = Adaptive(name, target.__getitem__, draft.__getitem__, k, length, **costs)
        yield at_most(bound(setting), cheapest(setting, every_policy))


def library_seconds(
    weighted: bool, bound: Bound, target: Table, draft: Table, k: int, length: int, **costs: Fraction
) -> Iterator[Compared]:
    """The library's bound, in the mean over all texts."""
    texts = Texts(target, draft, length)
    trace = texts.trace()
    shares = np.array([float(share) for share in text_law(target.__getitem__, length).values()])
    for name in NAMES:
        setting = Adaptive(name, target.__getitem__, draft.__getitem__, k, length, **costs)
        times = np.array([float(setting.cost(drafted)) for drafted in range(k + 1)])
        weights = weights_along(trace, RULES[name], k) if weighted else None
        survival = RULES[name].path_survival(trace.columns, k)
        least = least_seconds(survival, texts.lengths, times, weights=weights)
        yield computed(shares @ least, bound(setting))


def weaker(target: Table, draft: Table, k: int, length: int, **costs: Fraction) -> Iterator[Compared]:
    """The bound of each text is no higher."""
    for name in NAMES:
        setting = Adaptive(name, target.__getitem__, draft.__getitem__, k, length, **costs)
        yield at_most(mean_least(by_accepted, setting), mean_least(by_ratios, setting))


def stronger(**case: Any) -> Iterator[Compared]:
    """The bound of each text is no lower."""
    return (at_most(each.right, each.left) for each in weaker(**case))


def priced(effort: Effort) -> Iterator[Case]:
    """Random models with a cost of a draft pass and of a further token in a call."""
    rng = random.Random(f"costs {effort.seed}")
    for case in random_chains(effort, ((2, 3, 2), (2, 4, 2), (2, 4, 3)), 3):
        yield {**case, "step": Fraction(rng.randint(1, 12), 20), "token": Fraction(rng.randint(0, 4), 20)}


MODELS = "over random models of any order without stationarity, zeros included"
NO_SEARCH = "the cases are enumerated in fractions"

P11_ADAPTIVE = Entry(
    id="§11/adaptive",
    title="No adaptive length is faster",
    kind="lower bound",
    plain="let A_i be the rule's survival given the text, w_i the product of the first i ratios q/p from n on, and "
    "W(n) = t(0) + W(n+1) + min over l of sum_(i=1..l) [(t(i) - t(i-1)) w_(i-1) + A_i (W(n+i+1) - W(n+i))]: whatever "
    "decides how many of at most K tokens a call drafts, the mean cost of a text is at least E W(0). With A_(i-1) in "
    "place of w_(i-1) that holds for every text",
    latex=r"W(n) = t(0) + W(n{+}1) + \min_{l \ge 0} \sum_{i=1}^{l} \big[(t(i) - t(i{-}1))\, w_{n,i-1} + "
    r"A_{n,i}\,(W(n{+}i{+}1) - W(n{+}i))\big]",
    assumptions=(
        "one rule, drafts from one draft; whether a token is drafted is decided by drafts, pmfs, the text so far, "
        "earlier calls and coins, by no sample of the target and no coin of acceptance",
        "a call that drafts more costs no less; t(l) is what a call on l drafts takes",
        "the text is the target's sample, for the bound by ratios",
    ),
    evidence=(
        exact(
            Claim(
                "no policy costs less than the mean by ratios: the cheapest of all functions of the drafts, after "
                "every prefix, by a dynamic programme (token, block, argmax)",
                partial(bounded, partial(mean_least, by_ratios)),
            ),
            priced,
            over=f"{MODELS}; random costs of a draft pass and of a further token",
            wrong=Claim(
                "nor less than as if every draft were the text's", partial(bounded, partial(mean_least, by_wishes))
            ),
        ),
        exact(
            Claim(
                "what holds for every text is at most the mean by ratios (token, block, argmax)",
                weaker,
            ),
            priced,
            over=MODELS,
            wrong=Claim("it is at least that", stronger),
        ),
        agreement(
            Claim("the library's bound by ratios", partial(library_seconds, True, partial(mean_least, by_ratios))),
            priced,
            over=f"all texts, {MODELS}",
            wrong=Claim("it is the cost of the best fixed length", partial(library_seconds, True, best_fixed)),
        ),
        agreement(
            Claim(
                "the library's bound for every text", partial(library_seconds, False, partial(mean_least, by_accepted))
            ),
            priced,
            over=f"all texts, {MODELS}",
            wrong=Claim("it is that by ratios", partial(library_seconds, False, partial(mean_least, by_ratios))),
        ),
    ),
    calculators=("spectheory.prediction.adaptive.least_seconds", "spectheory.prediction.stopped.weights_along"),
    without={
        "symbolic": "given the text a call goes on after i of its tokens with R_i and accepts i drafts with A_i "
        "R_(i-1), whatever decides; E_q f = E_p[f q/p] counts its drafts; both are linear in R, whose extremes are the "
        "lengths l; backwards induction adds the calls",
        "simulation": "every policy is enumerated",
        "search": NO_SEARCH,
    },
)

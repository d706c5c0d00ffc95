r"""What if: a better draft, another cost ratio, more prompts; what each would change in the answer.

``spectheory predict TRACE --what-if draft-kl=-10%`` shows what :func:`what_if` returns. A better draft moves along a
path towards the target until its mean KL is lower by the share asked for.
A cost ratio is swept (C1). Prompts are counted that would give an interval of a wanted width, from their spread.

A draft may become better in many ways. Two paths lead from the draft q to the target p, both by a share s in [0, 1]:

- *mixed*: :math:`q_s = (1-s)\,q + s\,p`, a draft that is right about a share of the mass;
- *geometric*: :math:`q_s \propto q^{1-s} p^s`, the average of both models' logits.

Token and block verification read log p and log q of the text's token alone. On the mixed path these follow from the two
at s = 0 (exact). On the geometric path they need the normalisation, which is a Rényi divergence:
:math:`\log q_s = (1-s) \log q + s \log p + (1-s) D_s` and :math:`KL(p \| q_s) = (1-s)(KL(p \| q) - D_s(p \| q))`. A
trace has :math:`D_s` at :data:`~spectheory.trace.columns.RENYI_ORDERS`; between them :math:`D_s / s` is interpolated
(an estimate), with :math:`D_1 = KL`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri

from spectheory.checks import several
from spectheory.cost import ConstantRatio, CostModel
from spectheory.distributions import Floats
from spectheory.drafting import Chain, Shape
from spectheory.errors import SettingError, TraceError, argument
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.prediction.answer import Plan, Prediction
from spectheory.prediction.best_tree import ShapeRequest
from spectheory.prediction.guessed_ratio import AtRatio, Setting, _fastest_at, _fixed_settings
from spectheory.prediction.over_prompts import Prompts, _relative_spread, reach
from spectheory.prediction.plan_answer import K_MAX, named_rules, plan
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.trace.columns import RENYI_ORDERS
from spectheory.trace.record import a_trace
from spectheory.verification import PathRule
from spectheory.verification.by_start import along_calls, deepest

Path = Literal["mixed", "geometric"]
PATHS: tuple[Path, ...] = ("mixed", "geometric")
GEOMETRIC_NEEDS = ("kl", "renyi")
"""Columns that the geometric path reads besides the log-probabilities."""
_TOLERANCE = 1e-12


def _kl_along(trace: Trace, path: Path) -> Callable[[float], float]:
    """The mean KL(p || q_s) as a function of s, nats per token.

    On the mixed path it is the mean of log p - log q_s along the texts: an unbiased estimate where the target sampled
    them; of drafts by start over all starts and depths. On the geometric path each position has its own exact KL at the
    recorded orders.

    Raises a ``TraceError`` where a KL is infinite, where the texts are clearly none of the target's, and where columns
    are missing.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([(np.log([0.5, 0.5]), np.log([0.25, 0.5]))])
    >>> kl = _kl_along(trace, "mixed")
    >>> [round(kl(s), 4) for s in (0.0, 0.5, 1.0)]
    [0.3466, 0.1438, 0.0]
    """
    if path == "geometric":
        return _geometric_kl(trace)
    gaps = _gaps(trace)
    ratio = np.exp(-gaps)
    mean = _finite(float(gaps.mean()))
    if mean <= 0:
        raise TraceError(
            f"the mean of log p - log q along the texts is {mean:.3g}",
            limit="it estimates a KL, which is > 0 unless the draft is perfect",
            remedy="measure texts that the target sampled, or more of them",
        )

    def at(s: float) -> float:
        with np.errstate(divide="ignore"):
            return float(-np.log((1 - s) * ratio + s).mean()) if s < 1 else 0.0

    return at


def _share_for(kl: Callable[[float], float], reduction: float) -> float:
    """The share s of a path at which the mean KL is lower by the share `reduction` of what it is at s = 0.

    Examples
    --------
    >>> _share_for(lambda s: 2.0 * (1 - s) ** 2, 0.75)
    0.5
    """
    if reduction >= 1:
        return 1.0
    wanted = (1 - reduction) * kl(0.0)
    return float(brentq(lambda s: kl(s) - wanted, 0.0, 1.0, xtol=_TOLERANCE))


def _better_draft(trace: Trace, path: Path, s: float) -> Trace:
    """The trace that the draft at a share `s` of a path would have on the same texts, with what token and block
    verification read.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([(np.log([0.5, 0.5]), np.log([0.25, 0.5]))])
    >>> np.exp(_better_draft(trace, "mixed", 0.2).columns["log_draft"]).round(3).tolist()
    [0.3, 0.5]
    """
    target = np.asarray(trace.columns["log_target"])
    columns = {name: trace.columns[name] for name in ("token", "log_target") if name in trace.columns}
    if path == "geometric":
        draft = np.asarray(trace.columns["log_draft"])
        moved = target if s >= 1 else (1 - s) * (draft + _renyi(trace, s)) + s * target
        columns["log_draft"] = np.minimum(moved, 0.0)
    else:
        columns["log_draft"] = _mixed(target, trace.columns["log_draft"], s)
        if (depth := deepest(trace.columns)) is not None:
            starts = along_calls(trace.columns, depth, lambda at: _mixed(at["log_target"], at["log_draft"], s), fill=0)
            columns["start_log_draft"] = np.where(_inside(trace, depth), starts, -np.inf)
    return Trace(columns, trace.texts, trace.provenance)


def _mixed(target: Floats, draft: Floats, s: float) -> Floats:
    """log((1-s) q + s p)."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.logaddexp(np.log1p(-s) + draft, np.log(s) + target), 0.0)


def _gaps(trace: Trace) -> Floats:
    """The gaps log p - log q of the texts' tokens, of drafts by start at every start and depth inside the text."""
    depth = deepest(trace.columns) or 1
    gaps = along_calls(trace.columns, depth, lambda at: at["log_target"] - at["log_draft"], fill=0.0)
    return np.asarray(gaps[_inside(trace, depth)], dtype=np.float64)


def _inside(trace: Trace, depth: int) -> NDArray[np.bool_]:
    """Which drafts of calls from every position lie inside the text, ``[N, depth]``."""
    left = np.concatenate([np.arange(n, 0, -1) for n in trace.lengths])
    return left[:, None] > np.arange(depth)


def _geometric_kl(trace: Trace) -> Callable[[float], float]:
    if missing := [name for name in GEOMETRIC_NEEDS if name not in trace.columns]:
        raise TraceError(
            f"the trace has no {', '.join(missing)}",
            limit="the geometric path needs them at every position",
            remedy=f"measure the pair with {argument('better_drafts', '--better-drafts')}",
        )
    if deepest(trace.columns) is not None:
        raise TraceError(
            "the draft is a head, recorded by start",
            limit="the geometric path has columns by position alone",
            remedy="use the mixed path",
        )
    kl = np.asarray(trace.columns["kl"])
    _finite(float(kl.mean()))
    return lambda s: float((1 - s) * (kl - _renyi(trace, s)).mean()) if s < 1 else 0.0


def _renyi(trace: Trace, s: float) -> Floats:
    """D_s(p || q) at every position: D_s / s is interpolated in s between the recorded orders and 1."""
    orders = np.array([*RENYI_ORDERS, 1.0])
    i = int(np.clip(np.searchsorted(orders, s) - 1, 0, len(orders) - 2))
    weight = (s - orders[i]) / (orders[i + 1] - orders[i])
    known = np.column_stack([np.asarray(trace.columns["renyi"], np.float64), trace.columns["kl"]]) / orders
    return np.maximum(s * ((1 - weight) * known[:, i] + weight * known[:, i + 1]), 0.0)


def _finite(mean: float) -> float:
    if not np.isfinite(mean):
        raise TraceError(
            "the mean KL is infinite: the draft cannot draw tokens of the target",
            limit="a share of an infinite KL says nothing",
            remedy="measure at a temperature above 0, without top-k, top-p and min-p",
        )
    return mean


FORMS = "draft-kl=-10%, c=0.05..0.4 or prompts=2%"
MOST_PROMPTS = 10**9
_STEPS = 10
"""About so many values of c."""
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_GIVEN = "The texts were given: the mean of log p - log q is taken as if the target had sampled them."


@dataclass(frozen=True)
class Changes:
    """What is to be different: the share by which the KL falls, the ends of a range of c, a relative half-width."""

    draft_kl: float | None = None
    c: tuple[float, float] | None = None
    prompts: float | None = None

    @classmethod
    def read(cls, asked: str | Iterable[str]) -> Changes:
        """Changes as they are written.

        Examples
        --------
        >>> Changes.read(["draft-kl=-10%", "c=0.05..0.4", "prompts=±2%"])
        Changes(draft_kl=0.1, c=(0.05, 0.4), prompts=0.02)
        """
        words = several("what_if", [asked] if isinstance(asked, str) else asked, remedy=f"{FORMS} is one")
        changes: dict[str, Any] = {}
        for word in words:
            name, _, value = word.partition("=") if isinstance(word, str) else ("", "", "")
            name, read = _READ.get(name.strip(), ("", _unknown))
            if name in changes:
                raise SettingError(f"{word} is a second one", limit="one of each kind", remedy="leave one out")
            changes[name] = read(word, value.strip())
        if not changes:
            raise SettingError("nothing is asked for", limit=f"needs {FORMS}", remedy="name one")
        return cls(**changes)


def _unknown(word: Any, value: str) -> float:
    raise SettingError(
        f"{argument('changes', '--what-if')} is {word!r}", limit=f"must be {FORMS}", remedy="write it like these"
    )


def _reduction(word: str, value: str) -> float:
    share = _percent(word, value.replace("\u2212", "-").removeprefix("-"))
    if value[:1] not in ("-", "\u2212") or not 0 < share <= 1:
        raise SettingError(
            f"{argument('changes', '--what-if')} is {word!r}",
            limit="a better draft has less KL: from -100%, which is the target itself, to below 0%",
            remedy="draft-kl=-10% is one",
        )
    return share


def _range(word: str, value: str) -> tuple[float, float]:
    low, _, high = value.partition("..")
    try:
        ends = ConstantRatio(float(low)).c, ConstantRatio(float(high)).c
    except ValueError:
        ends = (0.0, 0.0)
    if ends[0] >= ends[1]:
        raise SettingError(
            f"{argument('changes', '--what-if')} is {word!r}",
            limit="two numbers >= 0, the smaller first",
            remedy=f"c=0.05..0.4 is one; one c is given as {argument('the cost', '--c')}",
        )
    return ends


def _half_width(word: str, value: str) -> float:
    share = _percent(word, value.removeprefix("±").removeprefix("+-").removeprefix("+/-"))
    if not 1e-4 <= share <= 1:
        raise SettingError(
            f"{argument('changes', '--what-if')} is {word!r}",
            limit="a half-width from 0.01% to 100%",
            remedy="prompts=2% asks how many prompts give ±2%",
        )
    return share


def _percent(word: str, value: str) -> float:
    try:
        return float(value.removesuffix("%")) / 100 if value.endswith("%") else math.nan
    except ValueError:
        return math.nan


_READ: Mapping[str, tuple[str, Any]] = {
    "draft-kl": ("draft_kl", _reduction),
    "c": ("c", _range),
    "prompts": ("prompts", _half_width),
}


@dataclass(frozen=True)
class CostSweep:
    """The fastest setting at each c, and `pays_below`, the c at which the last setting that pays stops paying (C1).

    `pays_below` is infinite where drafts need no pass, and 0 where no draft is accepted.
    """

    rows: tuple[AtRatio, ...]
    pays_below: float


@dataclass(frozen=True)
class PromptsNeeded:
    """Prompts that would give tokens per call of a setting within a relative half-width (95%).

    `prompts` are those of the trace and `half_width` is what they give. `needed` is an estimate: the relative variance
    over prompts is taken as it was measured, and its range is the 95% range of that variance for normal values.
    """

    rule: str
    shape: Shape
    tokens_per_call: Interval
    prompts: int
    half_width: float
    wanted: float
    needed: Interval


@dataclass(frozen=True)
class BetterDraft:
    """The best setting of a draft at a share `s` of a path, with its mean KL, nats per token."""

    path: Path
    s: float
    kl: float
    best: Prediction


@dataclass(frozen=True)
class WhatIf:
    """What each change gives.

    `now` is the best setting of the trace as it is, `kl` its mean KL along the texts; both are None of an engine's
    counts. `remarks` say what the trace does not know, a sentence each.
    """

    changes: Changes
    now: Prediction | None = None
    kl: float | None = None
    costs: CostSweep | None = None
    prompts: PromptsNeeded | None = None
    drafts: tuple[BetterDraft, ...] = ()
    remarks: tuple[str, ...] = ()


def what_if(
    trace: Trace,
    changes: str | Iterable[str],
    cost: CostModel | None = None,
    *,
    rules: PathRule | str | Iterable[PathRule | str] | None = None,
    shapes: Sequence[ShapeRequest | str] | None = None,
    k_max: int = K_MAX,
    prefill_emits_token: bool = False,
    passes_alone: bool = False,
) -> WhatIf:
    r"""What a better draft, another c or more prompts would change; the other arguments are those of
    :func:`~spectheory.prediction.plan`.

    `changes` are written as on the command line:

    - ``draft-kl=-10%``: the best setting of a draft whose mean :math:`KL(p \| q_s)` is lower by this share, on two
      paths towards the target: *mixed*, :math:`q_s = (1-s) q + s p`, and *geometric*, :math:`q_s \propto q^{1-s} p^s`,
      which needs a trace measured with ``--better-drafts``. For the texts of the trace, so an estimate where s is found
      along them, and exact at that s on the mixed path (§7). For token and block verification with chains.
    - ``c=0.05..0.4``: the fastest setting at each cost ratio, and the c up to which any pays (C1).
    - ``prompts=2%``: prompts for a 95% interval of tokens per call of this relative half-width, for the best setting
      (an estimate).

    `rules` are token verification unless named; chains of 1 to `k_max` are tried unless `shapes` are.

    Raises
    ------
    SettingError
        A change that is written otherwise, rules that a better draft has no columns for.
    TraceError
        A KL that is infinite, or a trace that lacks what a rule reads.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.5, -1.0] * 20), ([-1.0] * 40, [-1.1] * 40)])
    >>> answer = what_if(trace, ["draft-kl=-50%", "c=0..0.2", "prompts=2%"], ConstantRatio(0.1))
    >>> answer.now.shape.k, [(each.path, each.best.shape.k) for each in answer.drafts]
    (7, [('mixed', 9)])
    >>> round(answer.costs.pays_below, 2), answer.prompts.prompts
    (0.89, 2)
    """
    a_trace(trace)
    asked = Changes.read(changes)
    named = named_rules(rules, [trace])
    if named is None and not trace.recorded:
        named = named_rules("token")
    options: dict[str, Any] = {
        "shapes": shapes,
        "k_max": k_max,
        "trees": False,
        "prefill_emits_token": prefill_emits_token,
        "passes_alone": passes_alone,
    }
    if asked.draft_kl is not None:
        trace.require_scores("a better draft")
        _require_scored(named or ())
    now = plan(trace, cost, rules=named, **options)
    answer = WhatIf(asked, now.best)
    if asked.c is not None:
        answer = replace(answer, costs=_cost_sweep(_fixed_settings(now), *asked.c))
    if asked.prompts is not None:
        answer = replace(answer, prompts=_prompts_for(trace, now.best, asked.prompts, prefill_emits_token))
    if asked.draft_kl is not None:
        answer = _with_drafts(answer, trace, cost, now, named or (), asked.draft_kl, options)
    return answer


def what_if_counted(rows: Iterable[Any], changes: str | Iterable[str]) -> WhatIf:
    """The same of chains whose tokens per call are known without texts: `rows` with `k` and `tokens_per_call`.

    Only c can be another one.

    Examples
    --------
    >>> from spectheory.prediction import from_acceptance
    >>> round(what_if_counted(from_acceptance(0.8, k_max=4).rows, "c=0.05..0.4").costs.pays_below, 3)
    0.667
    """
    asked = Changes.read(changes)
    if asked.draft_kl is not None or asked.prompts is not None:
        raise SettingError(
            f"{argument('changes', '--what-if')} asks for another draft or for prompts",
            limit="counts and rates have no texts: of them c alone can change",
            remedy="measure the pair, or ask for c=0.05..0.4",
        )
    assert asked.c is not None
    chains = [("", Chain(row.k), row.tokens_per_call) for row in rows]
    return WhatIf(asked, costs=_cost_sweep(chains, *asked.c))


# Costs


def _cost_sweep(settings: Sequence[Setting], low: float, high: float) -> CostSweep:
    """The fastest of some settings at about ten values of c from `low` to `high` (C1)."""
    rows = tuple(_fastest_at(c, settings) for c in _values(low, high))
    return CostSweep(rows, max(_pays_below(shape, tokens) for _, shape, tokens in settings))


def _pays_below(shape: Shape, tokens: Interval) -> float:
    """The c at which a setting has speed-up 1."""
    gain = (tokens.low if tokens.kind == "bound" else tokens.best) - 1
    return gain / len(shape.passes) if shape.passes else math.inf


def _values(low: float, high: float) -> list[float]:
    """Both ends, and round numbers between them."""
    raw = (high - low) / _STEPS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(nice * power for nice in _NICE if nice * power >= raw * (1 - 1e-9))
    inner = [round(i * step, 12) for i in range(math.floor(low / step) + 1, math.ceil(high / step))]
    return [low, *(c for c in inner if low < c < high), high]


# Prompts


def _prompts_for(trace: Trace, best: Prediction, wanted: float, prefill: bool) -> PromptsNeeded:
    """How many prompts the best setting of a plan needs."""
    prompts = Prompts(trace.texts)
    if prompts.count < 2:
        raise SettingError(
            "the trace has one prompt", limit="the spread over prompts needs 2 or more", remedy="measure more"
        )
    if best.certified:
        raise SettingError(
            f"{best.rule.label} is bounded by lists of log-probabilities",
            limit="more prompts do not narrow certain ranges",
            remedy=f"name a rule that the trace settles, as {argument('rules', '--rule')} token",
        )
    (shape_calls,) = calls_by_shape(trace, best.rule, [best.wanted], prefill_emits_token=prefill)
    variance, freedom = _relative_spread(prompts.sum(trace.lengths), prompts.sum(shape_calls.calls.expected))
    low, mid, high = (_needed(prompts.count, variance * factor, freedom, wanted) for factor in _spread(freedom))
    half = math.expm1(reach(freedom) * math.sqrt(variance))
    return PromptsNeeded(
        best.rule.name,
        best.shape,
        best.tokens_per_call,
        prompts.count,
        half,
        wanted,
        Interval(low, mid, high, "estimate"),
    )


def _spread(freedom: float) -> tuple[float, float, float]:
    """Factors of a variance: the ends of its 95% range for normal values, with 1 in the middle."""
    tail = (1 - CONFIDENCE) / 2
    return freedom / float(chdtri(freedom, tail)), 1.0, freedom / float(chdtri(freedom, 1 - tail))


def _needed(prompts: int, variance: float, freedom: float, wanted: float) -> int:
    """Prompts n with Student's t half-width of at most `wanted`, relative, where so many gave this variance of the
    logarithm and these degrees of freedom; both scale with n.

    Examples
    --------
    >>> _needed(20, 0.02**2, 19.0, 0.02), _needed(20, 0.02**2, 19.0, 0.5)
    (81, 3)
    """
    half = math.log1p(wanted)

    def enough(n: int) -> bool:
        return reach(max((freedom + 1) * n / prompts - 1, 1.0)) * math.sqrt(variance * prompts / n) <= half

    top = next(n for i in count(1) if enough(n := min(2**i, MOST_PROMPTS)) or n == MOST_PROMPTS)
    bottom = max(top // 2, 1)
    while top - bottom > 1:
        middle = (bottom + top) // 2
        bottom, top = (bottom, middle) if enough(middle) else (middle, top)
    return max(top, 2)


# Better drafts


def _require_scored(rules: Sequence[PathRule]) -> None:
    """Refuse rules that read more than the log-probabilities of the texts' tokens."""
    for rule in rules:
        if not {*rule.needs} <= {"log_target", "log_draft"}:
            raise SettingError(
                f"{rule.label} is asked for with a better draft",
                limit="of a better draft the log-probabilities along the texts are known, and no pmf",
                remedy="use token or block",
            )


def _with_drafts(
    answer: WhatIf,
    trace: Trace,
    cost: CostModel | None,
    now: Plan,
    rules: Sequence[PathRule],
    reduction: float,
    options: Mapping[str, Any],
) -> WhatIf:
    """The answer with the best setting of a better draft on each path that the trace knows."""
    whole, known, remarks = trace.in_memory(), dict[Path, Callable[[float], float]](), list[str]()
    if trace.provenance.get("origin") == GIVEN_TEXT:
        remarks.append(_GIVEN)
    for path in PATHS:
        try:
            known[path] = _kl_along(whole, path)
        except TraceError as error:
            if path == "mixed":
                raise
            remarks.append(f"The {path} path is left out: {error}")
    kl_now, drafts = [kl(0.0) for kl in known.values()][-1], list[BetterDraft]()  # last: each position's own
    for path, kl in known.items():
        s = _share_for(kl, reduction)
        best = plan(_better_draft(whole, path, s), cost, rules=rules, **options).best
        drafts.append(BetterDraft(path, s, kl_now * kl(s) / kl(0.0), best))
    return replace(answer, kl=kl_now, drafts=tuple(drafts), remarks=tuple(remarks))

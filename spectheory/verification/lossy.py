"""Y7: rules of engines that change the text. They accept more than a lossless rule may, so the output is another law.

At a verified position token x is output with the mass of an accepted draft and that of a recovered one, p' = a + r. The
token after a fully accepted call is drawn from the target, or is its first choice, so the law of a text depends on
where its calls started: along a text of the target acceptance is an estimate, given the rule's own text its calls have
an exact law.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from array_api_compat import array_namespace

from spectheory.checks import real, whole
from spectheory.distributions import Array, validate_pair
from spectheory.divergences import entropy, total_variation
from spectheory.errors import SettingError
from spectheory.verification.base import (
    MOST_RANKS,
    Accepted,
    Columns,
    Drafts,
    Floats,
    Output,
    PathRule,
    at_least_one,
    checked_columns,
    exact_mean,
    single_candidate,
)
from spectheory.verification.by_start import along_calls


class _Masses(NamedTuple):
    """Of one token or of all: the masses with which it is accepted and recovered, and that of the bonus token."""

    accepted: Any
    recovered: Any
    bonus: Any


class LossyRule(PathRule):
    """A rule whose output is not the target's, as it is written: ``NAME:setting=number,...``.

    `beside` names the lossless rule that its calls are compared with: along a text of the target they start where its
    calls do. One that is `greedy` replaces greedy decoding, and reads the plain softmax of the target. `at_zero` says
    why others refuse temperature 0. One that `leaves` may accept tokens that a cut target cannot output.
    """

    output: ClassVar[Output] = "biased"
    beside: ClassVar[str]
    greedy: ClassVar[bool] = False
    leaves: ClassVar[bool] = False
    at_zero: ClassVar[str] = "at temperature 0 it keeps the target's text: it is the rule greedy"

    @classmethod
    def read(cls, settings: str) -> Self:
        """The rule of some settings, ``setting=number`` or numbers in their order."""
        return cls(*cls.numbers(settings))

    @classmethod
    def numbers(cls, settings: str) -> list[float]:
        """The numbers of its settings as they are written, in the order of their names."""
        names, given = cls.names(), dict[str, float]()
        parts = settings.split(",")
        for name, part in zip(names, parts, strict=False):
            setting, equals, number = part.rpartition("=")
            with suppress(ValueError):
                given[setting if equals else name] = int(number) if number.isdigit() else float(number)
        if set(given) != set(names) or len(parts) != len(names):
            raise SettingError(
                f"the rule is written {cls.name}{settings and f':{settings}'}",
                limit=f"it has the settings {', '.join(names)}",
                remedy=f"write {cls.name}:{','.join(f'{name}=NUMBER' for name in names)}",
            )
        return [given[name] for name in names]

    @classmethod
    def names(cls) -> list[str]:
        """The names of its settings."""
        return [each.name for each in fields(cls)]  # type: ignore[arg-type]  # all are dataclasses

    @property
    def settings(self) -> Mapping[str, float]:
        """Its numbers by name."""
        return {name: getattr(self, name) for name in self.names()}

    def __post_init__(self) -> None:
        several = len(self.settings) > 1
        written = ",".join(f"{name}={value:g}" if several else f"{value:g}" for name, value in self.settings.items())
        object.__setattr__(self, "name", f"{type(self).name}:{written}")

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"{self.name}, which changes the text,"

    @abstractmethod
    def masses(self, target: Any, draft: Any) -> _Masses:
        """The masses of every token at a position, three times ``[..., V]`` (Y7, exact)."""

    @abstractmethod
    def masses_at(self, columns: Columns) -> _Masses:
        """Those of a text's tokens, up to a factor for each position, three times ``[N]``."""

    @abstractmethod
    def weighted_survival(self, columns: Columns, k: int) -> Floats:
        """Survival ``[N, k]`` of a call along a text of the *target*: an estimate, a lower one where it `leaves`."""

    def weighted_survival_above(self, columns: Columns, k: int) -> Floats:
        """The same from the other side where it `leaves`: an upper estimate."""
        return self.weighted_survival(columns, k)

    @abstractmethod
    def changed(self, columns: Columns) -> Floats:
        """TV(p', p) at each position of a text of the target: the least share of verified tokens that change."""

    @abstractmethod
    def nats(self, columns: Columns) -> Floats:
        """KL(p' || p) at each position, or an unbiased estimate of it, nats; of a `greedy` rule the log-probability
        that it gives up against the first choice.
        """

    def output_law(self, target: Any, draft: Any) -> Array:
        """The law p' of the output at a verified position, ``[..., V]`` (Y7, exact)."""
        masses = self.masses(target, draft)
        return masses.accepted + masses.recovered

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Probability that the draft is accepted, ``[..., V]`` to ``[...]`` (Y7, exact)."""
        single_candidate(self, k)
        accepted = self.masses(target, draft).accepted
        return array_namespace(accepted).sum(accepted, axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given that the rule output x, a/(a + r), ``[..., V]`` (Y7, exact)."""
        accepted, recovered, _ = self.masses(target, draft)
        xp = array_namespace(accepted)
        total = accepted + recovered
        return xp.where(total > 0, accepted / xp.where(total > 0, total, xp.ones_like(total)), xp.zeros_like(total))

    def mean_acceptance(
        self, target: Floats, draft: Floats, k: int, rng: np.random.Generator | None = None
    ) -> Accepted:
        """Mean acceptance over pairs ``[n, V]``, with what it costs."""
        distance = float(np.mean(total_variation(self.output_law(target, draft), target)))
        return Accepted(exact_mean(self.acceptance(target, draft, k)), note=f"changes the text: TV {distance:.4g}")

    def path_survival(self, columns: Columns, k: int, *, ended: bool = False) -> Floats:
        r"""Survival ``[N, k]`` of calls along a text that *this rule* output, given the whole text (Y7, exact).

        A call that accepts i drafts and recovers has the weight :math:`a_1\cdots a_i r_{i+1} Z`, a full one
        :math:`a_1\cdots a_k b Z`, with Z the sum of the weights of what follows. `ended` says that the text ended by
        itself, so that its last token may be a draft. Where no call can start, entries are 0.
        """
        checked_columns(columns, *self.needs)
        accepted, recovered, bonus = self.masses_at(columns)
        size, k = len(accepted), at_least_one("k", k)
        survival, after = np.zeros((size, k)), np.ones(size + 1)
        for n in range(size - 1, -1, -1):
            drafts = min(k, size - 1 - n)
            run = np.concatenate([[1.0], np.cumprod(accepted[n : n + drafts])])
            last = accepted[-1] + recovered[-1] if ended and size - 1 - n < k else bonus[n + drafts]
            weights = run * np.append(recovered[n : n + drafts], last) * after[n + 1 : n + drafts + 2]
            total = weights.sum()
            after[n] = total
            if total > 0:
                survival[n, :drafts] = np.cumsum(weights[::-1])[::-1][1:] / total
                after[n : n + k + 1] /= total  # only ratios matter, and products of hundreds would underflow
        return survival

    def check_temperature(self, temperature: float) -> None:
        """Refuse a temperature at which the rule is another one."""
        if self.greedy != (temperature == 0):
            raise SettingError(
                f"{self.name} is asked for at temperature {temperature:g}",
                limit="it replaces greedy decoding" if self.greedy else self.at_zero,
                remedy="use temperature 0" if self.greedy else "use a temperature above 0",
            )


class _OfFirstChoice(LossyRule):
    """A rule for the draft's first choice z, which decides by p(z) alone, its place, its gap and H(p).

    A rejected draft is replaced by a token of p without z, or where the rule `recovers_greedily` by the target's first
    choice, which then also is the bonus token.
    """

    drafts: ClassVar[Drafts] = "chosen"
    needs: ClassVar[tuple[str, ...]] = (
        "log_target",
        "draft_rank",
        "choice_target",
        "choice_top",
        "choice_rank",
        "target_rank",
    )
    beside: ClassVar[str] = "argmax"
    recovers_greedily: ClassVar[bool] = True

    @property
    def missing(self) -> tuple[str, str]:
        """Why a trace may lack the columns, and the remedy."""
        return "it needs p of the draft's first choice at each position", "measure the pair again with this version"

    @abstractmethod
    def accepts(self, mass: Any, top: Any, rank: Any, nats: Any) -> Any:
        """Probability that z is accepted: p(z), the largest p, the place of z in p, H(p)."""

    def masses(self, target: Any, draft: Any) -> _Masses:
        """The masses of every token at a position, three times ``[..., V]`` (Y7, exact)."""
        p, q, xp = validate_pair(target, draft)
        p, q = p + 0 * q, q + 0 * p
        ids = xp.arange(p.shape[-1], device=p.device)
        drafted = ids == xp.argmax(q, axis=-1, keepdims=True)
        mass = xp.sum(xp.where(drafted, p, 0 * p), axis=-1, keepdims=True)
        first = xp.argmax(xp.astype(drafted, p.dtype), axis=-1, keepdims=True)
        ahead = (p > mass) | ((p == mass) & (ids < first))
        rank = 1 + xp.sum(xp.astype(ahead, p.dtype), axis=-1, keepdims=True)
        top = xp.max(p, axis=-1, keepdims=True)
        chance = xp.asarray(self.accepts(mass, top, rank, entropy(p)[..., None]), dtype=p.dtype)
        if self.recovers_greedily:
            best = xp.astype(ids == xp.argmax(p, axis=-1, keepdims=True), p.dtype)
            recovery, bonus = best, best
        else:
            others = xp.where(drafted, 0 * p, p)
            rest = xp.sum(others, axis=-1, keepdims=True)
            recovery, bonus = xp.where(rest > 0, others / xp.where(rest > 0, rest, 1 + 0 * rest), 0 * p), p
        return _Masses(xp.astype(drafted, p.dtype) * chance, (1 - chance) * recovery, bonus)

    def _chance(self, columns: Columns) -> Floats:
        """Probability ``[N]`` that the first choice of a position is accepted."""
        mass, top = np.exp(_log(columns, "choice_target")), np.exp(_log(columns, "choice_top"))
        nats = columns["target_entropy"] if "target_entropy" in self.needs else np.zeros_like(mass)
        return np.asarray(self.accepts(mass, top, columns["choice_rank"], nats), dtype=np.float64)

    def _log_output(self, columns: Columns) -> Floats:
        """Log p ``[N]`` of what a rule writes that writes first choices."""
        return np.where(self._chance(columns) > 0, _log(columns, "choice_target"), _log(columns, "choice_top"))

    def masses_at(self, columns: Columns) -> _Masses:
        """Those of a text's tokens, three times ``[N]``."""
        drafted, chance = columns["draft_rank"] == 1, self._chance(columns)
        if self.recovers_greedily:
            bonus = (columns["target_rank"] == 1).astype(np.float64)
            recovered = bonus
        else:
            bonus, rest = np.exp(_log(columns, "log_target")), -np.expm1(_log(columns, "choice_target"))
            recovered = np.where(drafted, 0.0, np.divide(bonus, rest, out=np.zeros_like(rest), where=rest > 0))
        return _Masses(np.where(drafted, chance, 0.0), (1 - chance) * recovered, bonus)

    def weighted_survival(self, columns: Columns, k: int) -> Floats:
        r"""Survival ``[N, k]`` of a call along a text of the *target*: the estimate :math:`w_1\cdots w_i`.

        Where it recovers by drawing :math:`w = 1[x = z]\,\alpha/p(z)`, which is unbiased. A rule that writes first
        choices leaves the texts of the target at once, and likelihood ratios say nothing of its own: there
        :math:`w = \alpha`, as if its texts were as hard as those of the target.
        """
        checked_columns(columns, *self.needs)
        return np.multiply.accumulate(along_calls(columns, k, self._weight, fill=0.0), axis=1)

    def _weight(self, columns: Columns) -> Floats:
        """The factor w at each position, ``[N]``."""
        chance = self._chance(columns)
        if self.recovers_greedily:
            return chance
        return np.asarray(np.where(columns["draft_rank"] == 1, chance, 0.0) / np.exp(_log(columns, "log_target")))

    def changed(self, columns: Columns) -> Floats:
        """TV(p', p) at each position, ``[N]`` (exact)."""
        if self.recovers_greedily:
            return np.asarray(-np.expm1(self._log_output(columns)))
        return np.asarray(self._chance(columns) - np.exp(_log(columns, "choice_target")))

    def nats(self, columns: Columns) -> Floats:
        """KL(p' || p) at each position, ``[N]`` (exact)."""
        if self.recovers_greedily:
            return np.asarray(-self._log_output(columns))
        chance, log = self._chance(columns), _log(columns, "choice_target")
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0 = 0
            accepted = np.where(chance > 0, chance * (np.log(chance) - log), 0.0)
            others = np.where(chance < 1, (1 - chance) * (np.log1p(-chance) - np.log1p(-np.exp(log))), 0.0)
        return np.asarray(np.maximum(accepted + others, 0.0))


def _log(columns: Columns, name: str) -> Floats:
    return np.asarray(columns[name], dtype=np.float64)


@dataclass(frozen=True)
class TargetThresholds(_OfFirstChoice):
    r"""SGLang's two thresholds: accept the draft's first choice z with probability :math:`\min(1, p_z/acc)`, and for
    certain where :math:`p_z \ge single`; recover from p without z (Y7).

    Both are in (0, 1]; at 1 it is the lossless rule argmax. The output has z with the mass of acceptance, other tokens
    in proportion to p, and the bonus token is the target's.

    Examples
    --------
    >>> TargetThresholds(single=1.0, acc=0.5).output_law([0.5, 0.3, 0.2], [0.1, 0.8, 0.1]).round(3).tolist()
    [0.286, 0.6, 0.114]
    """

    single: float
    acc: float

    name: ClassVar[str] = "thresholds"
    statement: ClassVar[str] = "Y7"
    recovers_greedily: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            real(
                f"the threshold {name}", value, lambda t: 0 < t <= 1, limit="must be in (0, 1]", remedy="1 is lossless"
            )
        super().__post_init__()

    def accepts(self, mass: Any, top: Any, rank: Any, nats: Any) -> Any:
        """Probability that z is accepted."""
        xp = array_namespace(mass)
        return xp.where(mass >= self.single, 1 + 0 * mass, xp.minimum(mass / self.acc, 1 + 0 * mass))


@dataclass(frozen=True)
class TypicalAcceptance(_OfFirstChoice):
    r"""Medusa's typical acceptance: accept the draft's first choice z where :math:`p_z > \min(\epsilon, \delta
    e^{-H(p)})`, else output the target's first choice, which is the bonus token too (Y7).

    Both are in (0, 1]. Nothing is drawn: given the prompt the text is certain, whatever the temperature.

    Examples
    --------
    >>> TypicalAcceptance(epsilon=0.3, delta=0.5).output_law([0.5, 0.3, 0.2], [0.1, 0.8, 0.1]).tolist()
    [0.0, 1.0, 0.0]
    """

    epsilon: float
    delta: float

    name: ClassVar[str] = "typical"
    statement: ClassVar[str] = "Y7"
    needs: ClassVar[tuple[str, ...]] = (*_OfFirstChoice.needs, "target_entropy")

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            real(name, value, lambda t: 0 < t <= 1, limit="must be in (0, 1]", remedy="0.09 and 0.3 are usual")
        super().__post_init__()

    def accepts(self, mass: Any, top: Any, rank: Any, nats: Any) -> Any:
        """1 where z is accepted, else 0."""
        xp = array_namespace(mass)
        threshold = xp.minimum(self.epsilon + 0 * mass, self.delta * xp.exp(-nats))
        return xp.astype(mass > threshold, mass.dtype)


@dataclass(frozen=True)
class RelaxedAcceptance(_OfFirstChoice):
    r"""TensorRT-LLM's relaxed acceptance: accept the draft's first choice z where it is among the `top` most probable
    tokens of the target and :math:`p_z \ge \max p - \delta`, else output the target's first choice (Y7).

    It replaces greedy decoding: p is the plain softmax, nothing is drawn, and `nats` is the log-probability that an
    accepted token gives up against the first choice. `delta` is in [0, 1].

    Examples
    --------
    >>> RelaxedAcceptance(top=2, delta=0.2).output_law([0.5, 0.3, 0.2], [0.1, 0.8, 0.1]).tolist()
    [0.0, 1.0, 0.0]
    """

    top: int
    delta: float

    name: ClassVar[str] = "relaxed"
    statement: ClassVar[str] = "Y7"
    greedy: ClassVar[bool] = True
    beside: ClassVar[str] = "greedy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "top", whole("top", self.top, most=MOST_RANKS, remedy="10 is usual"))
        real("delta", self.delta, lambda t: 0 <= t <= 1, limit="must be in [0, 1]", remedy="0.6 is usual")
        super().__post_init__()

    def accepts(self, mass: Any, top: Any, rank: Any, nats: Any) -> Any:
        """1 where z is accepted, else 0."""
        return array_namespace(mass).astype((rank <= self.top) & (mass >= top - self.delta), mass.dtype)

    def changed(self, columns: Columns) -> Floats:
        """1 where z is accepted and not the target's first choice, ``[N]`` (exact)."""
        return np.asarray(np.where(columns["choice_rank"] > 1, self._chance(columns), 0.0))

    def nats(self, columns: Columns) -> Floats:
        """Log max p - log p(z) where z is accepted, ``[N]`` (exact)."""
        return np.asarray(_log(columns, "choice_top") - self._log_output(columns))

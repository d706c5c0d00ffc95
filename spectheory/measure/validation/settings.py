"""What is validated: rules with shapes, decoded by us or by transformers, and what a draft head can be asked (§10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spectheory.drafting import KAry, Shape, StoppingRule
from spectheory.drafting.stopping import TokenBelow
from spectheory.errors import SettingError
from spectheory.measure.assisted import NO_HEADS
from spectheory.measure.decoders.methods import Method, check_temperature
from spectheory.measure.forward import too_deep
from spectheory.measure.pair import Model
from spectheory.prediction.shape_calls import drafted
from spectheory.reports.validation import FILTERS_JUDGE, JUDGE, JUDGES, STRINGS
from spectheory.trace import BY_START, COLUMNS, START_RANKS
from spectheory.verification import GrownMatch, PathRule, RankRule, TokenVerification
from spectheory.verification.by_start import PREFIX
from spectheory.verification.registry import VALIDATED_RULES, VALIDATED_TREE_RULES, path_rule


@dataclass(frozen=True)
class _HeadLimits:
    """A draft head by name, and the most drafts of a call (None: no limit)."""

    name: str
    deepest: int | None
    parallel: bool

    @classmethod
    def of(cls, draft: Model) -> _HeadLimits | None:
        """The limits of a draft; None if it is no head."""
        head = draft.head
        return None if head is None else cls(draft.name, head.deepest, head.parallel)

    def refusal(self, rule: str, shape: Shape) -> SettingError | None:
        """Why a rule with a shape cannot be decoded, or not be expected, with this head."""
        if rule in JUDGES:
            return SettingError(
                f"{rule} is asked for with the draft head {self.name!r}",
                limit=NO_HEADS,
                remedy="name other rules",
            )
        law = path_rule(rule, lossy=True)
        if not law.lossless:
            return SettingError(
                f"{rule} is asked for with the draft head {self.name!r}",
                limit="what it pays at a position depends on where the call starts, which is not recorded",
                remedy="use a draft model",
            )
        if not law.uses_draft:
            return None
        if self.deepest is not None and shape.depth > self.deepest:
            return too_deep(f"{rule} is asked for {shape}", self.name, self.deepest)
        if not isinstance(law, RankRule) or shape.is_chain or not shape.fixed:
            return None
        column = PREFIX + law.recorded_in
        if column in BY_START and not (COLUMNS[column].law and shape.max_rank > START_RANKS):
            return None
        return SettingError(
            f"{rule} is asked for {shape} with the draft head {self.name!r}",
            limit=f"ranks are recorded by start to {START_RANKS}, and those of topk without a limit",
            remedy="use a narrower shape",
        )

    def usual(self, rules: Iterable[str], shape: Shape) -> tuple[str, ...]:
        """Of the rules that are tried where none is named those that this head takes."""
        return tuple(rule for rule in rules if self.refusal(rule, shape) is None)

    def within(self, depth: int) -> int:
        """A depth, but no more than the head drafts."""
        return depth if self.deepest is None else min(depth, self.deepest)

    def left_out(self, rules: Iterable[str]) -> tuple[str, ...]:
        """What the usual rules lack with this head, in sentences; nothing where rules were named."""
        return () if any(rules) else (f"{JUDGE} is left out: {NO_HEADS}.",)


PLAIN = "plain"
"""Decoding without drafts."""
KS = (1, 3, 5)
"""Lengths of chains."""
TREE = KAry((2, 2, 1))
CHAIN_RULES = (*(rule.name for rule in VALIDATED_RULES), JUDGE)
TREE_RULES = tuple(rule.name for rule in VALIDATED_TREE_RULES)
"""Rules that are tried where none is named."""


@dataclass(frozen=True)
class Setting:
    """A rule and the shape of a call's drafts; without a shape plain decoding.

    `rule` is a rule of our decoders; ``assisted`` (transformers with our temperature and filters, which tests
    verification alone); ``assisted-filters`` (with its own temperature, top-k, top-p and min-p, which tests filters
    too); or ``strings`` (its string matching, which is counted alone). `judged` says whether transformers decodes,
    `parallel` whether one pass of the draft gives all drafts.
    """

    rule: str
    shape: Shape | None = None
    judged: bool = False
    parallel: bool = False

    def __post_init__(self) -> None:
        if self.judged and self.shape is not None and not self.shape.is_chain:
            raise SettingError(
                f"{self.rule} is asked for {self.shape}", limit="it judges one chain of drafts", remedy="use a chain"
            )
        if self.judged and not isinstance(self.stop, TokenBelow | None):
            raise SettingError(
                f"{self.rule} is asked for {self.shape}",
                limit="transformers stops by the probability of the drafted token alone",
                remedy=f"use token<{TokenBelow.remedy.split()[0]} or the like",
            )
        if not self.judged:
            _ = self.method

    @property
    def name(self) -> str:
        """Rule and shape; results are kept under this name."""
        return self.rule if self.shape is None else f"{self.rule}, {self.shape}"

    @property
    def method(self) -> Method:
        """The method of our decoders; not used if transformers decodes."""
        return Method(self.rule, self.shape)

    @property
    def own_filters(self) -> bool:
        """Whether transformers decodes with its own temperature and filters."""
        return self.judged and self.rule.startswith(FILTERS_JUDGE)

    @property
    def strings(self) -> bool:
        """Whether transformers matches strings of a draft with another tokenizer."""
        return self.judged and self.rule.startswith(STRINGS)

    @property
    def stop(self) -> StoppingRule | None:
        """The rule that ends its chains, if one does."""
        return self.shape.stop if self.shape else None

    @property
    def baseline(self) -> Setting:
        """The denominator of its speed-up: our plain decoder, or transformers' for its own."""
        return Setting(f"{self.rule} {PLAIN}", judged=True) if self.judged else PLAINLY

    @property
    def drafts(self) -> Shape:
        """What a call drafts, with its draft passes; not defined for plain decoding."""
        assert self.shape is not None
        return drafted(self.path_rule, self.shape, parallel=self.parallel)

    @property
    def path_rule(self) -> PathRule:
        """The rule that predicts its calls (§7); not defined for plain decoding.

        The recursion needs only the law of the accepted drafts at each start. Copied drafts have one: they are a
        function of the text before the start.
        """
        return TokenVerification() if self.judged else path_rule(self.rule, lossy=True)

    @property
    def key(self) -> int:
        """A hash of the name, from which its randomness is derived."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big")


PLAINLY = Setting(PLAIN)
"""Our plain decoder."""


def _settings_for(
    rules: Sequence[str], shapes: Sequence[Shape], temperature: float, head: _HeadLimits | None = None
) -> list[Setting]:
    """Every rule (by default the usual ones) with every shape it takes; one that goes with none is refused."""
    for rule in rules:
        if rule not in JUDGES:
            check_temperature(path_rule(rule, lossy=True), temperature)
    if STRINGS in rules and temperature:
        raise SettingError(
            f"{STRINGS} is asked for at temperature {temperature:g}",
            limit="transformers matches strings where nothing is sampled",
            remedy="use --temperature 0",
        )
    for shape in shapes:
        if shape.stop:
            shape.stop.check_temperature(temperature)
    pairs = [(rule, shape) for shape in dict.fromkeys(shapes) for rule in dict.fromkeys(rules or _usual(shape, head))]
    fitting = [pair for pair in pairs if _refusal(*pair, head) is None]
    for rule, shape in pairs:
        if rule not in {r for r, _ in fitting} or shape not in {s for _, s in fitting}:
            raise _refusal(rule, shape, head) or AssertionError
    return [_setting(*pair, head) for pair in fitting]


def _usual(shape: Shape, head: _HeadLimits | None) -> tuple[str, ...]:
    """Rules that are tried with a shape where none is named."""
    if not shape.fixed:
        return (GrownMatch.name,)
    usual = CHAIN_RULES if shape.is_chain else TREE_RULES
    if shape.stop:
        judged = isinstance(shape.stop, TokenBelow)
        usual = tuple(rule for rule in usual if (judged if rule in JUDGES else path_rule(rule, lossy=True).uses_draft))
    return usual if head is None else head.usual(usual, shape)


def _setting(rule: str, shape: Shape, head: _HeadLimits | None) -> Setting:
    return Setting(rule, shape, judged=rule in JUDGES, parallel=head is not None and head.parallel)


def _refusal(rule: str, shape: Shape, head: _HeadLimits | None) -> SettingError | None:
    """Why a rule does not go with a shape."""
    try:
        _setting(rule, shape, head)
    except SettingError as error:
        return error
    return None if head is None else head.refusal(rule, shape)

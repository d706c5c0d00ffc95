"""What is validated: rules with shapes, decoded by us, and the outside judge."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.drafting import Chain, KAry, Shape
from spectheory.errors import SettingError
from spectheory.measure.decoders import Method
from spectheory.prediction.shape_calls import drafted
from spectheory.reports.validation_terms import FILTERS_JUDGE, JUDGE, JUDGES
from spectheory.verification import PathRule, TokenVerification
from spectheory.verification.registry import VALIDATED_RULES, VALIDATED_TREE_RULES, path_rule

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
    """A rule and a shape; without a shape plain decoding.

    Parameters
    ----------
    rule : str
        A rule that our decoders know, ``assisted`` (temperature and filters are ours, so verification alone is judged),
        or ``assisted-filters`` (transformers' own temperature, top-k, top-p and min-p: filters are judged too).
    shape : Shape, optional
        What a call drafts.
    judged : bool
        Whether transformers decodes.

    Raises
    ------
    SettingError
        If there is no such rule, or it does not take the shape.
    """

    rule: str
    shape: Shape | None = None
    judged: bool = False

    def __post_init__(self) -> None:
        if self.judged and self.shape is not None and not isinstance(self.shape, Chain):
            raise SettingError(
                f"{self.rule} is asked for {self.shape}", limit="it judges one chain of drafts", remedy="use a chain"
            )
        if not self.judged:
            _ = self.method

    @property
    def name(self) -> str:
        """Rule and shape, what its results are kept under."""
        return self.rule if self.shape is None else f"{self.rule}, {self.shape}"

    @property
    def method(self) -> Method:
        """How our decoders are told; of no use for the judge."""
        return Method(self.rule, self.shape)

    @property
    def own_filters(self) -> bool:
        """Whether transformers decodes with its own temperature and filters."""
        return self.judged and self.rule.startswith(FILTERS_JUDGE)

    @property
    def baseline(self) -> Setting:
        """What its speed-up is relative to: our plain decoder, or that of transformers for its own."""
        return Setting(f"{self.rule} {PLAIN}", judged=True) if self.judged else PLAINLY

    @property
    def drafts(self) -> Shape:
        """What a call drafts, with the draft passes it takes; plain decoding has nothing of the kind."""
        assert self.shape is not None
        return drafted(self.path_rule, self.shape)

    @property
    def path_rule(self) -> PathRule:
        """The rule that predicts its calls (§7); plain decoding has none.

        The recursion needs the law of the accepted drafts at each start alone. Drafts that are copied from the text
        depend on where a call starts, and have such a law: at each start they are a function of the text before.
        """
        return TokenVerification() if self.judged else path_rule(self.rule)

    @property
    def key(self) -> int:
        """A number of its own, whatever stands beside it: what its randomness is derived from."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big")


PLAINLY = Setting(PLAIN)
"""Our plain decoder."""


def settings_for(rules: Sequence[str], shapes: Sequence[Shape], temperature: float) -> list[Setting]:
    """Every rule with every shape it takes; where no rule is named those that are usual for the shape.

    Raises
    ------
    SettingError
        If a rule is unknown or takes none of the shapes, a shape has no rule, or ``greedy`` has a temperature.
    """
    known = [path_rule(rule) for rule in rules if rule not in JUDGES]
    first_choice = next((rule.name for rule in known if rule.output == "first choice"), None)
    if first_choice and temperature > 0:
        raise SettingError(
            f"{first_choice} is asked for at temperature {temperature:g}",
            limit="a greedy target has temperature 0",
            remedy="use temperature 0 alone, or argmax",
        )
    pairs = [
        (rule, shape)
        for shape in dict.fromkeys(shapes)
        for rule in dict.fromkeys(rules or (CHAIN_RULES if isinstance(shape, Chain) else TREE_RULES))
    ]
    fitting = [pair for pair in pairs if _refusal(*pair) is None]
    for rule, shape in pairs:
        if rule not in {r for r, _ in fitting} or shape not in {s for _, s in fitting}:
            raise _refusal(rule, shape) or AssertionError
    return [_setting(*pair) for pair in fitting]


def _setting(rule: str, shape: Shape) -> Setting:
    return Setting(rule, shape, judged=rule in JUDGES)


def _refusal(rule: str, shape: Shape) -> SettingError | None:
    """Why a rule does not go with a shape."""
    try:
        _setting(rule, shape)
    except SettingError as error:
        return error
    return None

"""Every rule by name: the built-in ones, a line each, and those of users; which of them are usual."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from spectheory.checks import instance, several
from spectheory.errors import SettingError, argument
from spectheory.extensions import installed, is_address, load
from spectheory.ngrams import NGRAMS, read_ngrams
from spectheory.verification.base import PathRule, RankRule, Rule
from spectheory.verification.biased import BiasedVerification
from spectheory.verification.block import BlockVerification
from spectheory.verification.copied_first import THEN, CopiedFirst
from spectheory.verification.grown import GrownMatch
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.lookup import LookupMatch
from spectheory.verification.lossy import LossyRule, RelaxedAcceptance, TargetThresholds, TypicalAcceptance
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch, TopKMatch
from spectheory.verification.ngram import NgramMatch
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.race import RaceVerification
from spectheory.verification.recursive import RecursiveRejection
from spectheory.verification.token import TokenVerification

R = TypeVar("R", bound=Rule)

ALL = "all"
"""How every rule is asked for."""
GROUP = "spectheory.rules"
"""Entry points of packages that bring rules."""

BUILT_IN: tuple[Rule, ...] = (
    TokenVerification(),
    BlockVerification(),
    RaceVerification(),
    PoissonRace(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    IndependentMatch(),
    ArgmaxDraft(),
    GreedyMatch(),
    TopKMatch(),
    KSeq(),
    GumbelList(),
    LookupMatch(),
    GrownMatch(),
)
"""A new rule's file is listed here and nowhere else."""

LOSSY: dict[str, type[LossyRule]] = {
    rule.name: rule for rule in (BiasedVerification, TargetThresholds, TypicalAcceptance, RelaxedAcceptance)
}
"""Rules that change the text, by name; each is written with its numbers."""

PATH_RULES: dict[str, PathRule] = {rule.name: rule for rule in BUILT_IN if isinstance(rule, PathRule)}
"""Built-in rules with a path form, by name: those that a trace predicts."""

RULES: dict[str, PathRule] = {name: rule for name, rule in PATH_RULES.items() if rule.uses_draft and not rule.grows}
"""Those of them that are about two pmfs at each position."""

DEFAULT_RULES: tuple[PathRule, ...] = (
    TokenVerification(),
    BlockVerification(),
    RaceVerification(),
    LookupMatch(),
)
"""Predicted with chains where no rule is named."""

DEFAULT_TREE_RULES: tuple[tuple[RankRule, ...], ...] = (
    (RaceVerification(),),
    (RecursiveRejection(replacement=False), RecursiveRejection()),
    (TopKMatch(),),
)
"""Predicted with trees where no rule is named: of each kind the first that the trace records."""

VALIDATED_RULES: tuple[PathRule, ...] = (*DEFAULT_RULES[:3], ArgmaxDraft(), LookupMatch())
"""Decoded with chains where no rule is named."""

VALIDATED_TREE_RULES: tuple[RankRule, ...] = tuple(kind[0] for kind in DEFAULT_TREE_RULES)
"""Decoded with other shapes where no rule is named."""


COUNTED = "strings"
"""transformers' string matching of drafts with another tokenizer (SLEM), which is decoded and counted alone."""


def all_rules() -> dict[str, Rule]:
    """The built-in rules, and those that installed packages register as entry points ``spectheory.rules``, by name.

    What cannot be loaded, or has the name of a built-in rule, is left out: :func:`left_out` says why.
    """
    built_in = {rule.name: rule for rule in BUILT_IN}
    return {**{rule.name: rule for rule in _installed().values() if isinstance(rule, Rule)}, **built_in}


def left_out() -> list[str]:
    """Why rules of installed packages are left out, a sentence for each."""
    taken = {rule.name for rule in BUILT_IN}
    reasons = []
    for name, rule in _installed().items():
        if isinstance(rule, SettingError):
            reasons.append(f"the rule {name!r} of an installed package is left out: {rule}")
        elif rule.name in taken:
            reasons.append(f"the rule {name!r} of an installed package is left out: {rule.name!r} is a built-in rule")
    return reasons


def _installed() -> dict[str, Rule | SettingError]:
    return installed(GROUP, Rule)


def names(rules: Iterable[Rule], kind: type = PathRule) -> str:
    """The names of the rules of a kind, as a list in words."""
    return ", ".join(rule.name for rule in rules if isinstance(rule, kind))


def find_rule(name: Rule | str) -> Rule:
    """A rule itself, by its name, or by a class written as ``module:Class`` that has no built-in rule's name.

    An n-gram draft is a rule with its settings, as ``suffix:max=8``; ``lookup>token`` copies first.

    Examples
    --------
    >>> find_rule("relaxed:top=10,delta=0.6"), find_rule("ensemble:0.75")
    (RelaxedAcceptance(top=10, delta=0.6), BiasedVerification(share=0.25))
    """
    if not isinstance(name, str):
        return instance("rule", name, Rule, remedy="spectheory.verification.PoissonRace() is one")
    if name in PATH_RULES:
        return PATH_RULES[name]
    if THEN in name:
        copied, other = (find_rule(part) for part in name.split(THEN, 1))
        return CopiedFirst(copied, other)  # type: ignore[arg-type]  # checked there
    kind, _, settings = name.casefold().partition(":")
    if kind in NGRAMS:
        draft, *others = read_ngrams([name])
        if others:
            what = f"the rule {name!r} is {1 + len(others)} drafts"
            raise SettingError(what, limit="one at a time", remedy="name each")
        return NgramMatch(draft)
    if kind in LOSSY:
        return LOSSY[kind].read(settings)
    if not is_address(name):
        known = all_rules()
        written = name if name in known else name.casefold()
        if written == COUNTED:
            raise SettingError(
                f"rule {name!r} is string matching, which is not predicted",
                limit="what it accepts depends on where earlier calls cut the text into tokens",
                remedy=f"count it: validate the rule {COUNTED} at temperature 0",
            )
        if written not in known:
            raise SettingError(
                f"rule {name!r} is unknown",
                limit=f"there are {names(known.values())}; {', '.join(LOSSY)} change the text",
                remedy="name one, or a class of your own as module:Class",
            )
        return known[written]
    rule = load(name, Rule)  # type: ignore[type-abstract]
    if rule.name in {built.name for built in BUILT_IN}:
        raise SettingError(f"{name} is called {rule.name!r}", limit="a built-in rule has this name", remedy="rename it")
    return rule


def ranked_names() -> str:
    """The names of the rules with ranks, which take any shape."""
    return names(all_rules().values(), RankRule)


def path_rule(name: PathRule | str, *, lossy: bool = False) -> PathRule:
    """The same, for a rule with a path form; one that changes the text only where the caller takes it."""
    rule = find_rule(name)
    if not rule.lossless and not lossy:
        raise SettingError(
            f"the rule {rule.name!r} is asked for",
            limit="it changes the text, which is no sample of the target",
            remedy=f"ask {argument('spectheory.plan', '`spectheory predict TRACE`')} or `spectheory validate` about it",
        )
    if not isinstance(rule, PathRule):
        raise SettingError(
            f"rule {rule.name!r} has no path form",
            limit=f"texts are predicted by {names(all_rules().values())}",
            remedy=f"name one, or ask {argument('spectheory.rules', '`spectheory rules`')} about two pmfs",
        )
    return rule


def read_rules(
    asked: R | str | Iterable[R | str], read: Callable[[R | str], R], every: Callable[[], Iterable[R]]
) -> list[R]:
    """Rules as they are asked for: one, its name, or a list of these; ``all`` stands for `every` rule.

    Examples
    --------
    >>> [rule.name for rule in read_rules(["race", "all", "race"], path_rule, RULES.values)][:3]
    ['race', 'token', 'block']
    """
    listed = [asked] if isinstance(asked, str | Rule) else several("rules", asked, remedy="name rules, or all")
    rules = [rule for each in listed for rule in (every() if isinstance(each, str) and each == ALL else [read(each)])]
    return [rule for i, rule in enumerate(rules) if rule not in rules[:i]]

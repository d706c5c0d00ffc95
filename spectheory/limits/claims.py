"""What every limit claims: its name, what it is about, and under which assumption. The one table that reports read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Literal

Side = Literal["limit", "reading", "value"]
_LETTERS = 16
"""Of a line of a column's name."""


@dataclass(frozen=True)
class _Scope:
    """An assumption in words, and what holds under it: a limit, an idealised value (``reading``), or the value."""

    side: Side
    says: str


ON_TEXT = _Scope(
    "limit",
    "Upper bounds from target-sampled text, estimated (95%), averaged over all starting positions; consecutive calls "
    "may exceed them",
)
ON_DECODINGS = _Scope(
    "limit",
    "Upper bounds over whole decodings, in expectation over target-sampled text; exact for the texts of the trace, 95% "
    "over prompts",
)
IDEALISED = _Scope("reading", "Idealised values under i.i.d.; real text may exceed them")
IID_PMFS = _Scope(
    "limit", "Upper bounds for drafts that do not sample (B4), if conditional pmfs are i.i.d. across prefixes"
)
IID_RANKS = _Scope("limit", "Upper bound for every tree of P nodes, if ranks are i.i.d. along the text")
LEADING_TERM = _Scope("reading", "No bound at P = 1, a loose one beyond")
BOUNDED = _Scope("value", "The value that the bounds limit")
EXACT_RANKS = _Scope("value", "Exact for ranks i.i.d. along the text")


@dataclass(frozen=True)
class LimitClaim:
    """What a limit is called, its theorem or formula, what it is about, and its scope; `key` names it in JSON.

    `words` are for readers who do not know the theorems.

    Examples
    --------
    >>> TEXT.heading, IID_CHANNEL.heading
    ('B6 ≤', 'T1')
    """

    key: str
    name: str
    what: str
    scope: _Scope
    words: str = ""

    @property
    def plain_heading(self) -> str:
        """The words as the name of a column, in short lines; the heading where there are none."""
        return fill(self.words, _LETTERS) if self.words else self.heading

    @property
    def heading(self) -> str:
        """The name of a column; upper bounds are marked."""
        return f"{self.name} ≤" if self.scope.side == "limit" else self.name

    def idealised(self, **changes: str) -> LimitClaim:
        """The same formula on real text, whose independence it assumes."""
        return replace(self, scope=IDEALISED, **changes)


IID_FORMULA = LimitClaim(
    "iid_tokens_per_call",
    "C1",
    "chains whose acceptances have the first draft's rate, leviathan2023",
    IDEALISED,
    "if acceptances were i.i.d.",
)
_WHOLE = "any lossless rule with fresh continuation that judges one chain drawn from the draft"
_LOSSLESS = "upper limit for any lossless rule with this"
WHOLE_DECODING = LimitClaim("decoding", "B7", _WHOLE, ON_DECODINGS, f"{_LOSSLESS} draft")
BY_START = LimitClaim(
    "decoding_by_start", "L", f"{_WHOLE}, whose pmfs depend on the call's start", ON_DECODINGS, f"{_LOSSLESS} head"
)
ONE_CALL = LimitClaim("one_call", "1 call", "any lossless verification of a chain drawn from the draft", ON_TEXT)


def several_chains(chains: int) -> LimitClaim:
    """The bound on one call with several chains."""
    what = f"any lossless verification of {chains} i.i.d. chains of P drafts each"
    return LimitClaim(f"chains_{chains}", f"{chains} chains", what, ON_TEXT)


_UNSAMPLED = "drafts that do not sample"
TEXT = LimitClaim("text", "B6", f"{_UNSAMPLED}, as trees of as many nodes", ON_TEXT, f"upper limit for {_UNSAMPLED}")
IID_BRANCHING = LimitClaim(
    "iid_branching", "B2'", "what B6 would be with i.i.d. pmfs of the target", IDEALISED, f"{_UNSAMPLED}, if i.i.d."
)
IID_CHANNEL = LimitClaim("iid_channel", "T1", "trees of as many nodes with i.i.d. ranks", IDEALISED, "trees, if i.i.d.")

ON_TRACES = (WHOLE_DECODING, BY_START, TEXT, IID_BRANCHING, IID_CHANNEL)
"""The limits of a trace; keys are fields of :class:`~spectheory.prediction.trace_limits.Limits`."""

BRANCHING_FORMS = {
    key: LimitClaim(key, key, what, LEADING_TERM if key == "published" else IID_PMFS)
    for key, what in {
        "published": "B1 of pankratov2026, leading term alone",
        "lorden": "B2 at t = log P",
        "best_t": "B2 at its best t",
        "sharp": "B2', the tightest form of the two moments",
        "numeric": "B3', from the whole law of a step",
    }.items()
}
"""The branching bounds where conditional pmfs are i.i.d., by key."""

_RANK_TREES = (
    LimitClaim("chain", "chain", "P drafts one after the other", EXACT_RANKS),
    LimitClaim("optimal_tree", "optimal tree", "the P heaviest nodes, Tunstall's tree, S2", EXACT_RANKS),
    LimitClaim("channel", "T1", "kobus2025, Theorem 4.1", IID_RANKS, "upper limit for trees, if ranks are i.i.d."),
)
RANK_TREES = {claim.key: claim for claim in _RANK_TREES}
"""Rank trees where ranks are i.i.d., by key."""


def footnotes(claims: Iterable[LimitClaim]) -> list[str]:
    """A sentence for each scope: the limits that have it, and what they are about.

    Examples
    --------
    >>> footnotes([IID_BRANCHING])
    ["Idealised values under i.i.d.; real text may exceed them: B2' (what B6 would be with i.i.d. pmfs of the target)."]
    """
    scopes: dict[_Scope, dict[str, list[str]]] = {}
    for claim in claims:
        scopes.setdefault(claim.scope, {}).setdefault(claim.what, []).append(claim.name)
    lines = {scope: [f"{', '.join(names)} ({what})" for what, names in of.items()] for scope, of in scopes.items()}
    return [f"{scope.says}: {', '.join(parts)}." for scope, parts in lines.items()]

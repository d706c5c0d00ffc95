"""The columns of a trace in one table: meaning, unit, type, shape and range of each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectheory.ngrams.base import LONGEST_COPY
from spectheory.verification.by_start import PREFIX
from spectheory.verification.lookup import LOOKUP_NGRAM

Kind = Literal["number", "integer", "truth value"]

RECORDED_RANKS = 8
"""Rank laws are recorded for ranks 1 to this."""
DISTINCT_RANKS = 4
"""That of recursive rejection over distinct candidates, which is estimated, to this."""
UNO_SHARES = (0.0, 0.25, 0.5, 0.75)
"""Shares of over-acceptance at which the loss of recovering from the target itself is recorded (Y5)."""
RENYI_ORDERS = (0.1, 0.3, 0.6)
"""Orders s at which the divergence of the target from the draft is recorded for better drafts."""

START_RANKS = 4
"""Rank laws by start and depth are recorded for ranks 1 to this."""
MOST_DEPTH = 64
"""Deepest draft that is recorded by start."""

ROUNDING = 1e-5
"""Slack of statistics summed in single precision: ten times the largest error of a sum over a vocabulary."""
LARGEST_VOCABULARY = 2**32
"""No vocabulary has more tokens: it bounds ids and ranks, and by its logarithm the entropies."""
_ALL_BITS = 24
"""Significant bits of single precision."""
_LOG_BITS = 19
"""Of log q: the ratio q/p is off by a factor 1 + 2e-6 |log q|, as sums over a vocabulary in single precision are."""
_LAW_BITS = 16
"""Of probabilities that enter expected calls as they are: errors of 8e-6 with both signs, which average out."""
_FEW_BITS = 12
"""Of what a threshold is compared with (§11): another decision needs a number within 2e-4 of it."""
_MOST_NATS = math.log(LARGEST_VOCABULARY)
_DTYPES: dict[Kind, str] = {"number": "f", "integer": "iu", "truth value": "b"}


@dataclass(frozen=True)
class Column:
    """What a column holds: an array ``[N]``, or ``[N, r]`` with `widths` as the range of r.

    With `by_start` it has an entry, or a row, for each start and depth: ``[N, K]`` or ``[N, K, r]`` (§10); numbers then
    keep `bits` significant bits on disk, which is an error of 2^-bits of the number.

    `meaning` says what it says of a token, `kind` is the type of an entry in any precision, `unit` is empty for counts
    and probabilities. Entries are in `low`..`high`, up to `rounding`; `finite` refuses infinite ones; the rows of a
    `law` sum to at most 1.

    Examples
    --------
    >>> print(COLUMNS["total_variation"])
    TV(p, q) (D1); a number in [0, 1]
    >>> print(COLUMNS["log_draft"])
    log q of the token (-inf where the draft cannot draw it); a number <= 0 or -inf; nats
    """

    meaning: str
    kind: Kind = "number"
    unit: str = ""
    low: float = 0.0
    high: float = math.inf
    finite: bool = True
    rounding: float = 0.0
    widths: tuple[int, int] | None = None
    law: bool = False
    by_start: bool = False
    bits: int = _ALL_BITS

    def __str__(self) -> str:
        """Meaning, type, shape, range and unit."""
        return "; ".join(filter(None, (self.meaning, self.type, self.unit)))

    @property
    def type(self) -> str:
        """Type, range and shape of a row in words."""
        words = f"{'an' if self.kind == 'integer' else 'a'} {self.kind}{self._range}"
        if self.widths is not None:
            least, most = self.widths
            words = f"{most if least == most else f'{least} to {most}'} entries, each {words}"
        return f"for each of 1 to {MOST_DEPTH} depths {words}" if self.by_start else words

    @property
    def _range(self) -> str:
        if self.kind == "truth value":
            return ""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f" in [{self.low:.10g}, {self.high:.10g}]"
        end = f" >= {self.low:g}" if math.isfinite(self.low) else f" <= {self.high:g}"
        infinite = "inf" if math.isfinite(self.low) else "-inf"
        return f"{end}, finite" if self.finite else f"{end} or {infinite}"

    def fits(self, values: NDArray[Any]) -> bool:
        """Whether an array has the column's type and shape."""
        least, most = self.widths or (0, 0)
        deep = values.ndim >= 2 and 1 <= values.shape[1] <= MOST_DEPTH if self.by_start else True
        wide = self.widths is None or (values.ndim >= 1 and least <= values.shape[-1] <= most)
        shaped = values.ndim == 1 + self.by_start + (self.widths is not None) and deep and wide
        return values.dtype.kind in _DTYPES[self.kind] and shaped

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which entries are NaN or outside the range, of an array that fits."""
        if self.kind == "truth value":
            return np.zeros(values.shape, dtype=bool)
        fine = (values >= self.low - self.rounding) & (values <= self.high + self.rounding)
        return ~(fine & np.isfinite(values)) if self.finite else ~fine


def _nats(meaning: str, *, low: float = 0.0, high: float = _MOST_NATS, finite: bool = True) -> Column:
    return Column(meaning, unit="nats", low=low, high=high, finite=finite)


def _share(meaning: str) -> Column:
    return Column(meaning, high=1.0, rounding=ROUNDING)


def _rank(meaning: str) -> Column:
    return Column(meaning, "integer", low=1, high=LARGEST_VOCABULARY)


def _law(meaning: str, ranks: int) -> Column:
    return Column(meaning, high=1.0, rounding=ROUNDING, widths=(1, ranks), law=True)


def _by_start(column: Column, bits: int) -> Column:
    return replace(column, by_start=True, bits=bits)


COLUMNS: dict[str, Column] = {
    "token": Column("id of the output token", "integer", high=LARGEST_VOCABULARY - 1),
    "log_target": _nats("log p of the token", low=-math.inf, high=0.0),
    "log_draft": _nats(
        "log q of the token (-inf where the draft cannot draw it)", low=-math.inf, high=0.0, finite=False
    ),
    "total_variation": _share("TV(p, q) (D1)"),
    "kl": _nats("KL(p || q) (D1)", high=math.inf, finite=False),
    "target_entropy": _nats("H(p) (D1)"),
    "target_second_moment": Column("M2(p) (D1)", unit="nats squared"),
    "draft_entropy": _nats("H(q) (D1)"),
    "draft_top": _share("largest probability q; at temperature 0 that of the plain softmax (§11)"),
    "harmonic_similarity": _share("S_HM(p, q) (D2)"),
    "race_acceptance": _share("acceptance rate of the race (A2)"),
    "race_g": Column("g(p_x/q_x) at the token x (D3, A2); inf where q_x = 0", finite=False),
    "draft_rank": _rank("place of the token in the draft's order, 1 the most probable"),
    "target_rank": _rank("place of the token in the target's order, 1 the most probable"),
    "greedy_agreement": Column("whether the most probable tokens agree", "truth value"),
    "choice_target": _nats(
        "log p of the draft's most probable token; at temperature 0 of the plain softmax (Y7)",
        low=-math.inf,
        high=0.0,
        finite=False,
    ),
    "choice_top": _nats("log of the largest p; at temperature 0 of the plain softmax (Y7)", low=-_MOST_NATS, high=0.0),
    "choice_rank": _rank(
        "place of the draft's most probable token in the target's order; behind all p > 0 where p = 0"
    ),
    "rejection_rank": _law(
        "P(R = r | token) of recursive rejection with i.i.d. drafts, r = 1, 2, ... (R3)", RECORDED_RANKS
    ),
    "race_rank": _law("P(R = r | token) of the race over distinct tokens, r = 1, 2, ... (R2)", RECORDED_RANKS),
    "distinct_rank": _law(
        "estimate of P(R = r | token) of recursive rejection over distinct candidates, r = 1, 2, ...; unbiased (R3)",
        DISTINCT_RANKS,
    ),
    "uno_loss": Column(
        f"bias when recovering from the target itself, at over-acceptance {UNO_SHARES} (Y5)",
        high=1.0,
        rounding=ROUNDING,
        widths=(len(UNO_SHARES), len(UNO_SHARES)),
    ),
    "renyi": Column(
        f"Renyi divergence D_s(p || q) at s = {RENYI_ORDERS}, for better drafts (§7)",
        unit="nats",
        finite=False,
        widths=(len(RENYI_ORDERS), len(RENYI_ORDERS)),
    ),
    "start_log_draft": _by_start(
        _nats("log q of the text's token, by start and depth (§10)", low=-math.inf, high=0.0, finite=False), _LOG_BITS
    ),
    "start_draft_rank": _by_start(
        _rank("place of the text's token in the draft's order, by start and depth (§10)"), _ALL_BITS
    ),
    "start_draft_entropy": _by_start(_nats("H(q), by start and depth (D1, §10)"), _FEW_BITS),
    "start_draft_top": _by_start(
        _share("largest probability q, at temperature 0 of the plain softmax, by start and depth (§10, §11)"), _FEW_BITS
    ),
    "start_confidence": _by_start(
        _share("probability of being accepted that a head gives its draft, by start and depth (§10, §11)"), _FEW_BITS
    ),
    "start_greedy_agreement": _by_start(
        Column("whether the most probable tokens agree, by start and depth (§10)", "truth value"), _ALL_BITS
    ),
    "start_total_variation": _by_start(_share("TV(p, q), by start and depth (D1, §10)"), _LAW_BITS),
    "start_race_g": _by_start(
        Column("g(p_x/q_x) at the text's token x, by start and depth; inf where q_x = 0 (A2, §10)", finite=False),
        _LAW_BITS,
    ),
    "start_rejection_rank": _by_start(
        _law("P(R = r | token) of recursive rejection with i.i.d. drafts, by start and depth (R3, §10)", START_RANKS),
        _LAW_BITS,
    ),
    "start_race_rank": _by_start(
        _law("P(R = r | token) of the race over distinct tokens, by start and depth (R2, §10)", START_RANKS), _LAW_BITS
    ),
    "start_draft_gap": _by_start(
        Column("largest logit of the draft less that of the token, by start and depth", unit="nats", finite=False),
        _LOG_BITS,
    ),
    "start_draft_margin": _by_start(
        Column("largest logit of the draft less the second largest, by start and depth", unit="nats", finite=False),
        _LOG_BITS,
    ),
    "start_draft_scale": _by_start(
        Column("largest absolute logit of the draft, by start and depth", unit="nats"), _LOG_BITS
    ),
    "start_distinct_rank": _by_start(
        _law(
            "estimate of P(R = r | token) of recursive rejection over distinct candidates, by start and depth; "
            "unbiased (R3, §10)",
            DISTINCT_RANKS,
        ),
        _LAW_BITS,
    ),
    "grown_match": Column(
        "depth to which the text lies in the tree that the draft grows at this start (§10)",
        "integer",
        high=MOST_DEPTH,
    ),
    "ngram_match": Column(
        "leading tokens of what each n-gram draft copies here that the text repeats (§10)",
        "integer",
        high=LONGEST_COPY,
        widths=(1, 16),
    ),
    "ngram_drafted": Column(
        "tokens that each n-gram draft copies here (§10)", "integer", high=LONGEST_COPY, widths=(1, 16)
    ),
    "recorded_match": Column(
        "drafts that a call from this start accepts, as recorded, for each draft of the log (§10)",
        "integer",
        high=LONGEST_COPY,
        widths=(1, 16),
    ),
    "lookup_match": Column(
        "leading tokens of what prompt lookup drafts here that the text repeats; suffixes of up to "
        f"{LOOKUP_NGRAM} tokens, latest occurrence (§7)",
        "integer",
        high=LONGEST_COPY,
    ),
    "lookup_drafted": Column("tokens that prompt lookup drafts here (§7)", "integer", high=LONGEST_COPY),
    "target_above": _share("probability p of the tokens more probable than the token (§13)"),
    "target_tied": _share("probability p of the tokens as probable as the token, its own included (§13)"),
    "target_top": _share("largest probability p (§13)"),
    "target_gap": Column("largest logit of the target less that of the token", unit="nats", finite=False),
    "target_margin": Column("largest logit of the target less the second largest", unit="nats", finite=False),
    "target_scale": Column("largest absolute logit of the target", unit="nats"),
    "draft_gap": Column("largest logit of the draft less that of the token", unit="nats", finite=False),
    "draft_margin": Column("largest logit of the draft less the second largest", unit="nats", finite=False),
    "draft_scale": Column("largest absolute logit of the draft", unit="nats"),
}
"""What each column holds. A column ``[N]`` has an entry per token, a column ``[N, r]`` a row."""

REQUIRED = ("log_target", "log_draft")

JUDGED = (
    *("target_above", "target_tied", "target_top", "target_gap", "target_margin", "target_scale"),
    *("draft_gap", "draft_margin", "draft_scale"),
)
"""Columns by which an engine's output is judged; a measurement leaves them out. Logits are those before temperature
and filters."""
BY_START = tuple(
    name for name, column in COLUMNS.items() if column.by_start and name.removeprefix(PREFIX) not in JUDGED
)
"""Columns of a draft whose pmfs depend on where the call starts (§10), but for those by which outputs are judged."""
COPIED = ("grown_match", "ngram_match", "ngram_drafted", "recorded_match")
"""Columns by start of drafts that are certain of their tokens; a trace has them where they were asked for."""
BETTER = ("renyi",)
"""Columns of what a better draft would give; a trace has them where they were asked for."""
MEASURED = tuple(
    name for name, column in COLUMNS.items() if not column.by_start and name not in {*JUDGED, *COPIED, *BETTER}
)
"""Columns of every measurement; together with the schema they decide whether an earlier run can be resumed."""

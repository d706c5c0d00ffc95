"""Recorded lengths (§10): the drafts of a log as rules, and how far they are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spectheory.errors import SettingError, argument
from spectheory.trace import RECORDED, Trace
from spectheory.verification import CopiedFirst, LossyRule, PathRule, RecordedMatch

FREE = ("ngram", "lookup", "suffix")
"""Begin or end the names of drafts that no model makes."""
BEST = "best of each start"
DEFAULT_K = 16


def recorded_rules(trace: Trace) -> tuple[RecordedMatch, ...]:
    """Each draft of recorded lengths, then the better one at each start if there are several.

    A draft is known up to its own longest length, as longer ones may have been cut there; the better of several up to
    the shortest of these.

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.trace import TextInfo
    >>> columns = {"recorded_match": np.array([[2, 0], [1, 1], [0, 0]])}
    >>> trace = Trace(columns, (TextInfo("1", 3),), {"recorded": ["eagle", "ngram"]})
    >>> [(rule.name, rule.most, rule.uses_draft) for rule in recorded_rules(trace)]
    [('eagle', 2, True), ('ngram', 1, False), ('best of each start', 1, True)]
    """
    if not trace.recorded:
        return ()
    names, most = drafts_of(trace), _longest(trace)
    rules = [RecordedMatch(name, (i,), most[i], free=_is_free(name)) for i, name in enumerate(names)]
    if len(names) > 1:
        places = tuple(range(len(names)))
        rules.append(RecordedMatch(BEST, places, min(most), free=all(map(_is_free, names))))
    return tuple(rules)


def _check_as_recorded(trace: Trace, rule: PathRule) -> None:
    """Refuse a rule that may accept other lengths than those of the log.

    At temperature 0 both models' pmfs have one token each. A rule that then accepts a draft if and only if it is the
    target's token accepts what was recorded, whichever rule it is; a hybrid drafts something else, and a rule that
    changes the text reads the plain softmax there, or is not defined.
    """
    tokens = np.eye(2)
    greedy = trace.sampling is not None and trace.sampling.temperature == 0
    drafts = rule.uses_draft and not rule.grows and not isinstance(rule, CopiedFirst | LossyRule)
    if not (greedy and drafts and np.array_equal(rule.acceptance(tokens[[0, 0]], tokens), [1, 0])):
        trace.require_scores(f"the rule {rule.name!r}")


def _longest(trace: Trace) -> list[int]:
    """The longest length of each draft, at least 1."""
    return [max(1, int(most)) for most in trace.columns["recorded_match"].max(axis=0)]


def drafts_of(trace: Trace) -> list[str]:
    """The names of the drafts, numbers where the provenance has none that can be shown and told apart."""
    width = trace.columns["recorded_match"].shape[1]
    names = trace.provenance.get(RECORDED)
    shown = [str(name) for name in names] if isinstance(names, list) else []
    fine = len({*shown} - {BEST}) == len(shown) == width and all(n.strip() and n.isprintable() for n in shown)
    return shown if fine else [f"draft {i + 1}" for i in range(width)]


def _is_free(name: str) -> bool:
    """Whether a draft of that name reads no model, so that it costs no pass."""
    return name.lower().replace("-", "").startswith(FREE) or name.lower().endswith(FREE)


def free_part(trace: Trace) -> Trace:
    """The trace with only those drafts that cost no pass; an error if there is none."""
    names = drafts_of(trace)
    places = [i for i, name in enumerate(names) if _is_free(name)]
    if not places:
        raise SettingError(
            f"the costs of {', '.join(names)} are unknown",
            limit="a speed-up needs what a draft's pass costs",
            remedy=f"give {argument('c')}, the cost of a draft's pass in target steps",
        )
    columns = {"recorded_match": trace.columns["recorded_match"][:, places]}
    provenance = {**trace.provenance, RECORDED: [names[i] for i in places]}
    return replace(trace, columns=columns, provenance=provenance)


def check_depth(trace: Trace, k_max: int) -> int:
    """The longest chain to predict: of recorded lengths at most what they know; more than usual is refused there."""
    if not trace.recorded:
        return k_max
    most = max(_longest(trace))
    if k_max > max(most, DEFAULT_K):
        raise SettingError(
            f"{argument('k_max')} is {k_max}",
            limit=f"lengths are recorded to {most} drafts; what longer calls accept is not known",
            remedy=f"use at most {most}, or record with longer drafts",
        )
    return min(k_max, most)

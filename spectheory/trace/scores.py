"""Log-probabilities of one model on given texts; those of a target and a draft make a trace (§7, §9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spectheory.distributions import Sampling
from spectheory.errors import TextError, TraceError
from spectheory.trace.columns import LARGEST_VOCABULARY
from spectheory.trace.record import Trace
from spectheory.trace.text_info import GIVEN_TEXT
from spectheory.trace.texts import SINGLE_PRECISION, Text, trace_of

Top = Mapping[int, float]


@dataclass(frozen=True)
class ScoredText:
    """One text, prompt included, under one model; every sequence has an entry per token or is empty.

    - `tokens`: ids, None for a first one that is unknown; `strings`: the tokens as strings. One of the two is given.
    - `log_probs`: natural logarithms of the tokens' probabilities; None where the server gave none.
    - `prompt`: leading tokens that are no output. `ended` says that the text ended by itself.
    - `tops`: the m most probable ids with their log-probabilities; `ranks`: each token's place in the model's order.
    - `sampling`: settings under which the text was drawn, if the log says so; the values are raw unless `processed`.
    - `vocabulary`: number of tokens; None if unknown: ranges hold for every size then.
    - `error`: rounding of a log-probability, nats.
    """

    id: str
    log_probs: tuple[float | None, ...]
    tokens: tuple[int | None, ...] = ()
    strings: tuple[str, ...] = ()
    prompt: int = 0
    ended: bool = False
    tops: tuple[Top | None, ...] = ()
    ranks: tuple[int | None, ...] = ()
    sampling: Mapping[str, Any] | None = None
    processed: bool = False
    vocabulary: int | None = None
    error: float = SINGLE_PRECISION

    def __post_init__(self) -> None:
        for name in ("tokens", "strings", "tops", "ranks"):
            if (have := len(getattr(self, name))) not in (0, len(self)):
                raise self.refused(f"has {have} {name} for {len(self)} log-probabilities", "needs one per token")
        if not (self.tokens or self.strings):
            raise self.refused("has no tokens", "needs ids or strings")
        outside = [
            token
            for token in self.tokens
            if token is not None and not 0 <= token < (self.vocabulary or LARGEST_VOCABULARY)
        ]
        if outside:
            limit = f"the vocabulary has {self.vocabulary or LARGEST_VOCABULARY} tokens"
            raise self.refused(f"has token {outside[0]}", limit)
        unknown = [i for i in range(self.first, len(self)) if self.log_probs[i] is None]
        if unknown or self.first >= len(self):
            what = f"has no log-probability of token {unknown[0] + 1}" if unknown else "has no scored output"
            raise self.refused(what, "only the first tokens may lack one")

    def __len__(self) -> int:
        """Number of tokens, prompt included."""
        return len(self.log_probs)

    @property
    def first(self) -> int:
        """The first position that is output and has a value."""
        unscored = next((i for i, each in enumerate(self.log_probs) if each is not None), len(self))
        return max(self.prompt, unscored)

    def refused(self, what: str, limit: str) -> TextError:
        """The error of this text."""
        return TextError(f"text {self.id!r} {what}", limit=limit, remedy="check the log for torn or mixed lines")


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of one model on texts; `source` is the format, `model` the name that the log gives.

    Examples
    --------
    >>> target = Scores((ScoredText("a", (None, -0.5, -1.0), (7, 3, 4)),))
    >>> draft = Scores((ScoredText("a", (None, -0.7, -0.9), (7, 3, 4)),))
    >>> Scores.join([target, draft]).columns["token"].tolist()
    [3, 4]
    """

    texts: tuple[ScoredText, ...]
    source: str = ""
    model: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def join(cls, parts: Sequence[Scores]) -> Trace:
        """The trace of a target and its draft on the same texts, in this order.

        Texts are matched by their order and must have the same token ids; where a log has none, the same strings, and
        the provenance says so. The output begins where either log says, else at the first token that both scored. A
        ``TextError`` says where texts differ, or which log-probabilities are not those of the text's settings.
        """
        if len(parts) != 2:
            raise TraceError(
                f"{len(parts)} logs of log-probabilities are given",
                limit="a trace needs two, each of one model on the same texts",
                remedy="pass the target's first and the draft's second",
            )
        pairs = list(_pairs(*parts))
        firsts = [max(target.first, draft.first) for target, draft in pairs]
        texts = [_text(target, draft, first) for (target, draft), first in zip(pairs, firsts, strict=True)]
        numbered = {f"text {number} ({text['id']})": text for number, text in enumerate(texts, start=1)}
        trace = trace_of(numbered, _provenance(parts, pairs, firsts))
        infos = (replace(info, prompt_tokens=first) for info, first in zip(trace.texts, firsts, strict=True))
        return replace(trace, columns={**trace.columns, **_columns(pairs, firsts)}, texts=tuple(infos))


Pair = tuple[ScoredText, ScoredText]


def _pairs(target: Scores, draft: Scores) -> Iterator[Pair]:
    """Both models' scores of each text, once they are of the same tokens."""
    if len(target.texts) != len(draft.texts):
        raise TextError(
            f"the target's log has {len(target.texts)} texts, the draft's {len(draft.texts)}",
            limit="both models score the same texts in one order",
            remedy="check that no log is cut off",
        )
    for pair in zip(target.texts, draft.texts, strict=True):
        ours, theirs = _keys(pair)
        if len(ours) != len(theirs):
            raise pair[0].refused(f"has {len(ours)} tokens in the target's log, {len(theirs)} in the draft's", SAME)
        other = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b and None not in (a, b)]
        if other:
            i = other[0]
            raise pair[0].refused(
                f"has token {ours[i]!r} at place {i + 1} in the target's log, {theirs[i]!r} in the draft's", SAME
            )
        yield pair


SAME = "both must have the same tokens, of one tokenizer"


def _keys(pair: Pair) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the texts are compared by: ids where both have them."""
    for name in ("tokens", "strings"):
        ours, theirs = (getattr(each, name) for each in pair)
        if ours and theirs:
            return ours, theirs
    raise pair[0].refused("has ids in one log and strings in the other", "needs one of them in both")


def _text(target: ScoredText, draft: ScoredText, first: int) -> Text:
    """The text's output as a line of log-probabilities."""
    text: dict[str, Any] = {"id": target.id, "ended": target.ended or draft.ended}
    text |= {"target": list(target.log_probs[first:]), "draft": list(draft.log_probs[first:])}
    settings = _settings(target, draft)
    if settings and not target.processed:
        text["sampling"] = dict(settings)
    if _lists(target, draft, first):
        sizes = [each.vocabulary for each in (target, draft) if each.vocabulary]
        if len(set(sizes)) > 1:
            raise target.refused(f"has vocabularies of {min(sizes)} and {max(sizes)} tokens", SAME)
        tops = {
            f"{name}_top": [[[token, log] for token, log in (top or {}).items()] for top in each.tops[first:]]
            for name, each in (("target", target), ("draft", draft))
        }
        text |= {"token": list(target.tokens[first:]), "vocabulary": sizes[0] if sizes else LARGEST_VOCABULARY, **tops}
        text["error"] = max(target.error, draft.error)
    return text


def _settings(target: ScoredText, draft: ScoredText) -> Mapping[str, Any] | None:
    """The settings under which the text was drawn; None if neither log says."""
    known = [each.sampling for each in (target, draft) if each.sampling is not None]
    if any(other != known[0] for other in known):
        raise target.refused(f"was drawn with {known[0]} in one log, {known[1]} in the other", "one setting per text")
    if known and target.processed != draft.processed and Sampling(**known[0]) != Sampling():
        raise target.refused("has raw values of one model, processed ones of the other", "both must be of one kind")
    return known[0] if known else None


def _lists(target: ScoredText, draft: ScoredText, first: int) -> bool:
    """Whether both have lists by id at every position of the output."""
    return all(bool(each.tokens and each.tops) and all(each.tops[first:]) for each in (target, draft))


def _columns(pairs: Sequence[Pair], firsts: Sequence[int]) -> dict[str, Any]:
    """Columns beside the two numbers: ids, places in each model's order, and whether their first choices agree."""
    spans = [(*pair, slice(first, None)) for pair, first in zip(pairs, firsts, strict=True)]
    columns: dict[str, Any] = {}
    if all(target.tokens or draft.tokens for target, draft in pairs):
        columns["token"] = [token for target, draft, out in spans for token in (target.tokens or draft.tokens)[out]]
    for which, name in enumerate(("target_rank", "draft_rank")):
        ranks = [rank for *both, out in spans for rank in both[which].ranks[out] or (None,)]
        if None not in ranks:
            columns[name] = ranks
    if all(_lists(*pair, first) for pair, first in zip(pairs, firsts, strict=True)):
        tops = [both for t, d, out in spans for both in zip(t.tops[out], d.tops[out], strict=True)]
        columns["greedy_agreement"] = [_first_choice(target) == _first_choice(draft) for target, draft in tops]
    return {name: np.array(values) for name, values in columns.items()}


def _first_choice(top: Top | None) -> int:
    """The most probable token; of tied ones the lowest id."""
    assert top
    return min(top, key=lambda token: (-top[token], token))


def _provenance(parts: Sequence[Scores], pairs: Sequence[Pair], firsts: Sequence[int]) -> dict[str, Any]:
    """Where the numbers come from, and what was assumed in joining them."""
    by_ids = all(target.tokens and draft.tokens for target, draft in pairs)
    said = all(max(target.prompt, draft.prompt) == first for (target, draft), first in zip(pairs, firsts, strict=True))
    origin: dict[str, Any] = {
        "source": f"log-probabilities ({', '.join(dict.fromkeys(part.source for part in parts))})",
        "origin": GIVEN_TEXT,
        **{who: {"name": part.model} for who, part in zip(("target", "draft"), parts, strict=True) if part.model},
        "joined by": "token ids" if by_ids else "token strings",
        "text": "the output, as the logs say" if said else "all scored tokens: the logs do not say where output begins",
    }
    settings = _settings(*pairs[0])
    if settings is not None:
        return {**origin, "settings": {"sampling": dict(settings)}}
    return {**origin, "assumed": "values are those of the settings that the text was drawn with"}

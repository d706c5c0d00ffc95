"""The record of a measured pair: statistics of texts, a row per output token, with provenance; no torch."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.errors import SpectheoryError, TextError, TraceError
from spectheory.trace import parquet
from spectheory.trace.checks import Fault, faults
from spectheory.trace.columns import COLUMNS, REQUIRED
from spectheory.trace.lists import LIST_COLUMNS, from_columns, to_columns
from spectheory.trace.stored import stored
from spectheory.truncated.top import TopLogProbs
from spectheory.verification.by_start import deepest

TRACE_FILE = "trace.parquet"
"""Name of the trace in the folder of a measurement."""

GIVEN_TEXT, SAMPLED_TEXT = "given", "sampled from the target"
"""Origins of the text of a trace; limits over target samples hold for the second alone."""
SOURCES = "sources"
"""Where the provenance keeps the folders or hub ids of the models, for settings to paste; answers leave them out."""
RECORDED, LEFT_OUT = "recorded", "requests_left_out"
"""Where the provenance of recorded lengths names their drafts, and counts requests of the log that were left out."""
READ, LAYERS = "read", "target_layers"
"""Where the provenance of an engine's output says that texts of temperature 0 were read at another temperature, and how
many layers the target has."""


@dataclass(frozen=True)
class TextInfo:
    """One text of a trace: its name, and its number of output tokens, the end-of-text token included.

    Texts that continue one `prompt` are dependent; empty: the text's own name. `ended` says that the text ended by
    itself (an end-of-text token), so that nothing follows it. `prompt_tokens` is the length of the prompt, if known.
    """

    id: str
    tokens: int
    prompt: str = ""
    category: str = ""
    ended: bool = False
    prompt_tokens: int | None = None

    def __post_init__(self) -> None:
        fine = {name: isinstance(getattr(self, name), str) for name in ("id", "prompt", "category")}
        fine["ended"] = isinstance(self.ended, bool | np.bool_)
        fine["tokens"] = type(self.tokens) is int and self.tokens >= 1
        known = self.prompt_tokens
        fine["prompt_tokens"] = known is None or (type(known) is int and known >= 0)
        if not all(fine.values()):
            name = min(fine, key=fine.__getitem__)
            raise TraceError(
                f"{name} of text {self.id!r} is {getattr(self, name)!r}",
                limit="names are strings, tokens is an integer >= 1 (no empty text), ended is a truth value, "
                "prompt_tokens an integer >= 0 or unknown",
                remedy="measure the pair again",
            )


@dataclass(frozen=True)
class Trace:
    """Per-position statistics of texts, concatenated.

    `columns` are arrays ``[N]`` or ``[N, r]`` by the names of :data:`COLUMNS`, of drafts by start with K depths as the
    second dimension (§10): log p and log q at least, or the lengths that a log recorded. The token counts of `texts`
    add up to N; `provenance` has models, sampling settings, seed, origin of the text, versions, machine. A trace of the
    most probable tokens has `lists` (target, draft) by position; ``token`` then names the text's tokens. A
    ``TraceError`` says which column is missing or does not hold what :data:`COLUMNS` says.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-0.5, -1.0], [-0.7, -0.9])])
    >>> len(trace), trace.texts[0].tokens
    (2, 2)
    """

    columns: Mapping[str, NDArray[Any]]
    texts: tuple[TextInfo, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    lists: Sequence[tuple[TopLogProbs, TopLogProbs]] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        missing = [name for name in REQUIRED if name not in self.columns]
        if missing and not self.recorded:
            raise TraceError(
                f"the trace lacks {', '.join(missing)}",
                limit="both are required, or recorded lengths",
                remedy="measure the pair again",
            )
        tokens = sum(text.tokens for text in self.texts)
        wrong = {name: np.shape(c)[:1] for name, c in self.columns.items() if np.shape(c)[:1] != (tokens,)}
        if wrong or not self.texts:
            others = {name: shape[0] if shape else "no rows" for name, shape in wrong.items()}
            shown = reprlib.repr(others) if others else "none"
            raise TraceError(
                f"{len(self.texts)} texts of {tokens} tokens in all, columns of other lengths: {shown}",
                limit="needs at least one text and one row per token",
                remedy="measure the pair again",
            )
        for fault in faults(self.columns):
            raise self._refused(fault)
        self._check_depth()
        if self.lists and self.depth is not None:
            raise TraceError(
                "the trace has lists of the most probable tokens and columns by start",
                limit="lists are by position",
                remedy="leave one of them out",
            )
        if self.lists and (len(self.lists) != tokens or "token" not in self.columns):
            raise TraceError(
                f"there are {len(self.lists)} lists for {tokens} tokens",
                limit="needs one pair, and an id, per token",
                remedy="list every position",
            )

    def _check_depth(self) -> None:
        """Columns by start are as deep as the provenance says, if it does."""
        settings = self.provenance.get("settings")
        stated = settings.get("depth") if isinstance(settings, Mapping) else None
        if self.depth is not None and stated is not None and stated != self.depth:
            raise TraceError(
                f"columns by start have {self.depth} depths",
                limit=f"the provenance says {stated!r}",
                remedy="measure the pair again",
            )

    def _refused(self, fault: Fault) -> SpectheoryError:
        """The error of a column; impossible log-probabilities are the text's fault."""
        if fault.row is None:
            return TraceError(f"{fault.column} {fault.what}", limit=fault.limit, remedy="measure the pair again")
        text, position = self.locate(fault.row)
        what = f"{fault.column} of text {text.id!r}, token {position + 1} {fault.what}"
        if fault.column not in REQUIRED:
            return TraceError(what, limit=fault.limit, remedy="measure the pair again")
        impossible = self.columns[fault.column][fault.row] == -np.inf
        return TextError(
            what,
            limit="a log-probability is <= 0, and an output token is possible under the target",
            remedy="use the sampling settings that made the text"
            if impossible
            else "pass natural logs of probabilities",
        )

    def __repr__(self) -> str:
        """Size, columns and origin in short."""
        origin = self.provenance.get("origin") or self.provenance.get("source") or "of unknown origin"
        return f"<Trace: {len(self)} tokens in {len(self.texts)} texts, {len(self.columns)} columns, text {origin}>"

    def __len__(self) -> int:
        """Number of output tokens over all texts."""
        return len(next(iter(self.columns.values())))

    @property
    def recorded(self) -> bool:
        """Whether it holds the accepted lengths of a log in place of log-probabilities (§10)."""
        return not {*REQUIRED} <= set(self.columns) and "recorded_match" in self.columns

    def require_scores(self, what: str) -> None:
        """Refuse recorded lengths where `what` is computed from log-probabilities."""
        if self.recorded:
            raise TraceError(
                f"{what} is asked for, and the trace holds accepted lengths alone",
                limit="it needs log-probabilities of target and draft",
                remedy="measure the pair; recorded lengths go with predict and plan",
            )

    @property
    def depth(self) -> int | None:
        """K, the deepest draft that is recorded by start (§10); None where drafts depend on their position alone."""
        return deepest(self.columns)

    def locate(self, row: int) -> tuple[TextInfo, int]:
        """The text that `row` belongs to and the position in it."""
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        index = int(np.searchsorted(starts, row, side="right")) - 1
        return self.texts[index], row - int(starts[index])

    @property
    def sampling(self) -> Sampling | None:
        """How tokens were drawn, as the provenance says; None where it gives no temperature."""
        settings = self.provenance.get("settings")
        found = settings.get("sampling") if isinstance(settings, Mapping) else None
        if not isinstance(found, Mapping) or found.get("temperature") is None:
            return None
        known = {each.name: found.get(each.name) for each in fields(Sampling)}
        return Sampling(**{name: value for name, value in known.items() if value is not None})

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.array([text.tokens for text in self.texts], dtype=np.int64)

    @property
    def most_tokens(self) -> NDArray[np.int64]:
        """Tokens that each text could have had: its own, or if it ended by itself the limit it was sampled with.

        Without a known limit it had room for all.
        """
        settings = self.provenance.get("settings")
        known = settings.get("tokens") if isinstance(settings, Mapping) else None
        limit = known if isinstance(known, int) else np.iinfo(np.int64).max
        return np.array([max(text.tokens, limit) if text.ended else text.tokens for text in self.texts], np.int64)

    @classmethod
    def from_log_probabilities(
        cls,
        texts: Iterable[tuple[Any, Any]],
        *,
        ids: Iterable[str] | None = None,
        ended: Iterable[bool] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Trace:
        """A trace from two numbers per token: log p and log q of the chosen tokens, two lists for each text (§7).

        Enough for token and block verification, exactly, for their limit B7, and for estimates of B6 and the one-call
        bound. Texts are numbered unless there are `ids`, and did not end by themselves unless `ended` says so.
        """
        pairs = [(np.atleast_1d(np.asarray(t, float)), np.atleast_1d(np.asarray(d, float))) for t, d in texts]
        names = [str(i + 1) for i in range(len(pairs))] if ids is None else list(ids)
        for name, (target, draft) in zip(names, pairs, strict=True):
            if target.shape != draft.shape or target.ndim != 1 or target.size == 0:
                raise TextError(
                    f"text {name!r} has {target.size} target and {draft.size} draft log-probabilities",
                    limit="needs two flat lists of one length, at least one token",
                    remedy="score the same tokens under both models",
                )
        if not pairs:
            raise TextError("there is no text", limit="needs at least one", remedy="pass one text per line")
        columns = {
            "log_target": np.concatenate([t for t, _ in pairs]),
            "log_draft": np.concatenate([d for _, d in pairs]),
        }
        ends = [False] * len(pairs) if ended is None else list(ended)
        infos = tuple(TextInfo(n, len(t), ended=e) for n, (t, _), e in zip(names, pairs, ends, strict=True))
        return cls(columns, infos, provenance or {"source": "log-probabilities"})

    def write(self, path: Path) -> None:
        """Write as one Parquet file; it appears when whole.

        Numbers by start lose their last bits (:mod:`spectheory.trace.stored`), all others keep theirs.
        """
        texts = [asdict(text) for text in self.texts]
        columns = {**{name: stored(name, values) for name, values in self.columns.items()}, **to_columns(self.lists)}
        parquet.write(path, columns, {"provenance": dict(self.provenance), "texts": texts})

    @classmethod
    def read(cls, path: Path) -> Trace:
        """Read a trace from its file, or from the folder of a measurement; every column is checked.

        What is no trace, or holds other values than :data:`COLUMNS` says, is a ``TraceError``, impossible
        log-probabilities a ``TextError``. :func:`read_any` reads other files too.
        """
        file = Path(path)
        if file.is_dir():
            file = file / TRACE_FILE
        columns, header, lists = parquet.read(file, COLUMNS, LIST_COLUMNS)
        try:
            texts = tuple(TextInfo(**text) for text in header["texts"])
            return cls(columns, texts, header["provenance"], from_columns(lists))
        except SpectheoryError as error:
            raise type(error)(f"{file}: {error.what}", limit=error.limit, remedy=error.remedy) from error
        except TypeError as error:
            raise TraceError(
                f"{file} holds texts of another kind ({error})",
                limit="needs texts as spectheory measure writes them",
                remedy="run spectheory measure again",
            ) from error

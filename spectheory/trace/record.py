"""The record of a measured pair: statistics of texts, a row per output token, with provenance; no torch."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, instances, located, several, whole
from spectheory.distributions import Sampling, as_numpy
from spectheory.errors import SpectheoryError, TextError, TraceError, load_extra
from spectheory.trace import parquet
from spectheory.trace.checks import Fault, _draft_ahead, _refuse_foreign, faults, repeated
from spectheory.trace.columns import COLUMNS, REQUIRED
from spectheory.trace.logits import _columns_of_logits
from spectheory.trace.on_disk import (
    BLOCK,
    LIST_COLUMNS,
    OnDisk,
    _from_columns,
    _rows_of,
    _to_columns,
    _whole_texts,
    stored,
)
from spectheory.trace.text_info import AHEAD, ALIKE, GIVEN_TEXT, REPEATED, SAMPLED_TEXT, TextInfo
from spectheory.truncated.top import TopLogProbs
from spectheory.verification.by_start import deepest, shape_of

TRACE_FILE = "trace.parquet"
"""Name of the trace in the folder of a measurement."""
LOWEST = -1e300
"""No log-probability comes near it, and sums of thousands of such values stay finite."""


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
        instance("provenance", self.provenance, Mapping, remedy="{} if nothing is known")
        _check_parts(self.columns, self.texts, self.lists)
        if not isinstance(self.columns, OnDisk):  # blocks check what they read
            for fault in faults(self.columns):
                raise _refused(fault, self.columns, None if fault.row is None else self.locate(fault.row))
        depth, known = deepest(self.columns), self._settings.get("depth")
        if depth is not None and known is not None and known != depth:
            raise TraceError(
                f"columns by start have {depth} depths",
                limit=f"the provenance says {known!r}",
                remedy="measure the pair again",
            )

    def __repr__(self) -> str:
        """Size, columns and origin in short."""
        origin = self.provenance.get("origin") or self.provenance.get("source") or "of unknown origin"
        return f"<Trace: {len(self)} tokens in {len(self.texts)} texts, {len(self.columns)} columns, text {origin}>"

    def __len__(self) -> int:
        """Number of output tokens over all texts."""
        return sum(text.tokens for text in self.texts)

    def blocks(self, names: Collection[str] | None = None, positions: int | None = None) -> Iterator[Trace]:
        """The texts in order as traces of about so many positions, whole texts each, with the columns of these names.

        Log-probabilities and recorded lengths are always among the columns; without `names` all are. A trace that is
        no larger, or has lists, is one block.

        Examples
        --------
        >>> trace = Trace.from_log_probabilities([([-0.5] * 3, [-0.7] * 3)] * 4)
        >>> [len(block) for block in trace.blocks(positions=6)]
        [6, 6]
        """
        size = BLOCK if positions is None else whole("positions", positions, remedy="None is a usual number")
        if names is not None:
            names = instances("names", names, str, remedy="name columns")
        if len(self) <= size or self.lists:
            yield self
            return
        kept = {*REQUIRED, "recorded_match", *(self.columns if names is None else names)} & set(self.columns)
        runs = list(_whole_texts(self.lengths, size))
        sizes = [int(self.lengths[run].sum()) for run in runs]
        rows = self.columns.rows if isinstance(self.columns, OnDisk) else partial(_rows_of, self.columns)
        for run, columns in zip(runs, rows(kept, sizes), strict=True):
            with _named(self.columns.path) if isinstance(self.columns, OnDisk) else nullcontext():
                block = Trace(columns, self.texts[run], self.provenance)
            yield block

    @property
    def recorded(self) -> bool:
        """Whether it holds the accepted lengths of a log in place of log-probabilities (§10)."""
        return _recorded(self.columns)

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
    def _settings(self) -> Mapping[str, Any]:
        """Those of the measurement, as the provenance has them."""
        settings = self.provenance.get("settings")
        return settings if isinstance(settings, Mapping) else {}

    @property
    def sampling(self) -> Sampling | None:
        """How tokens were drawn, as the provenance says; None where it gives no temperature."""
        settings = self._settings.get("sampling")
        if not isinstance(settings, Mapping) or settings.get("temperature") is None:
            return None
        known = {each.name: settings.get(each.name) for each in fields(Sampling)}
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
        known = self._settings.get("tokens")
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
        given = several("texts", texts, remedy="pass [(target, draft), ...]", error=TextError)
        if not given:
            raise TextError("there is no text", limit="needs at least one", remedy="pass one text per line")
        names, ends = _of_each(len(given), ids, ended)
        pairs = [_two_lists(name, text) for name, text in zip(names, given, strict=True)]
        columns = {
            "log_target": np.concatenate([t for t, _ in pairs]),
            "log_draft": np.concatenate([d for _, d in pairs]),
        }
        infos = tuple(TextInfo(n, len(t), ended=e) for n, (t, _), e in zip(names, pairs, ends, strict=True))
        return cls(columns, infos, {"source": "log-probabilities"} if provenance is None else provenance)._examined()

    @classmethod
    def from_logits(
        cls,
        target: Any,
        draft: Any,
        tokens: Any,
        *,
        sampling: Sampling | None = None,
        sampled: bool | None = None,
        ids: Iterable[str] | None = None,
        ended: Iterable[bool] | None = None,
    ) -> Trace:
        """A trace from both models' logits of the same tokens, arrays of numpy or torch.

        Of one text logits are ``[T, V]`` and `tokens` ``[T]``: row t holds the logits from which token t was, or would
        have been, drawn. In the output of a model that read the whole sequence it is the row of the token before. For
        several texts pass lists of these, or ``[B, T, V]`` and ``[B, T]``. `sampling` are the settings of both models,
        temperature 1 by default; `sampled` says whether the target sampled the texts with them (None: unknown): limits
        are left out of given texts, and texts that the target cannot have sampled are refused if it is said to.

        The columns are those of a measurement, computed in double precision by their definitions. Missing are drafts
        copied from the prompt, which is not given, and ``distinct_rank``, which is an estimate.

        Raises
        ------
        TextError, LogitsError, TraceError
            Shapes that do not fit, logits that give no pmf or are probabilities, a token that the target cannot output,
            sampled texts that are none (a right text with probability 2e-6 at most).

        Examples
        --------
        >>> target, draft = np.log([[0.5, 0.5], [0.9, 0.1]]), np.log([[0.25, 0.75], [0.8, 0.2]])
        >>> trace = Trace.from_logits(target, draft, [0, 1])
        >>> trace.columns["total_variation"].round(3).tolist(), trace.columns["draft_rank"].tolist()
        ([0.25, 0.1], [2, 2])
        """
        sampling = Sampling() if sampling is None else instance("sampling", sampling, Sampling, remedy="leave it out")
        if sampled is not None:
            instance("sampled", sampled, bool, remedy="leave it out where it is unknown")
        parts = [
            several(name, given, remedy="pass arrays [T, V] and [T], or lists of them", error=TextError)
            for name, given in (("target", target), ("draft", draft), ("tokens", tokens))
        ]
        if np.ndim(parts[2][0] if parts[2] else 0) == 0:
            parts = [[target], [draft], [tokens]]
        if len({len(part) for part in parts}) > 1:
            counts = ", ".join(f"{len(part)}" for part in parts)
            raise TextError(
                f"there are {counts} texts",
                limit="as many targets, drafts and lists of tokens",
                remedy="pass one of each for a text",
            )
        names, ends = _of_each(len(parts[2]), ids, ended)
        each = zip(names, parts[0], parts[1], parts[2], strict=True)
        texts = [_columns_of_logits(p, q, x, sampling, f"text {name!r}") for name, p, q, x in each]
        infos = tuple(TextInfo(n, len(t["token"]), ended=e) for n, t, e in zip(names, texts, ends, strict=True))
        origin = {} if sampled is None else {"origin": SAMPLED_TEXT if sampled else GIVEN_TEXT}
        columns = {column: np.concatenate([text[column] for text in texts]) for column in texts[0]}
        about = {"source": "logits", "settings": {"sampling": asdict(sampling)}, **origin}
        return cls(columns, infos, about)._examined()

    def _examined(self) -> Trace:
        """The trace with equal texts as those of one prompt, and what is odd about its texts in the provenance."""
        earlier = repeated(self.texts, self.columns)
        new = np.repeat([not each for each in earlier], self.lengths)
        columns = {name: values[new] for name, values in self.columns.items()}
        if self.provenance.get("origin") == SAMPLED_TEXT and "target_entropy" in columns:
            _refuse_foreign(columns)
        telling = columns["log_target"][columns["log_target"] < 0]
        alike = np.array_equal(columns["log_target"], columns["log_draft"]) and len(np.unique(telling)) > 1
        facts = {REPEATED: sum(map(bool, earlier)), AHEAD: _draft_ahead(columns), ALIKE: alike}
        if not any(facts.values()):
            return self
        texts = tuple(replace(text, prompt=first) for text, first in zip(self.texts, earlier, strict=True))
        odd = {name: value for name, value in facts.items() if value}
        return replace(self, texts=texts, provenance={**self.provenance, **odd})

    def write(self, path: str | Path) -> None:
        """Write as one Parquet file; it appears when whole.

        Numbers by start lose their last bits (:mod:`spectheory.trace.on_disk`), all others keep theirs.
        """
        columns = {**{name: stored(name, values) for name, values in self.columns.items()}, **_to_columns(self.lists)}
        parquet.write(Path(path), columns, self._header())

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with a row per position: `text` and `place` in it from 0, then the columns in nats.

        Columns ``[N, K]`` are lists of fixed size. Provenance and texts are in the metadata under ``spectheory``. The
        numbers are those of :attr:`columns`. ``polars.from_arrow`` and ``pandas`` take the table.

        Examples
        --------
        >>> trace = Trace.from_log_probabilities([([-0.5, -1.0], [-0.5, -2.0])], ids=["a"])
        >>> trace.to_arrow().to_pylist()[1]
        {'text': 'a', 'place': 1, 'log_target': -1.0, 'log_draft': -2.0}
        """
        places = np.concatenate([np.arange(tokens) for tokens in self.lengths])
        names = np.repeat([text.id for text in self.texts], self.lengths)
        return parquet.to_table({"text": names, "place": places, **self.columns}, self._header())

    def to_pandas(self) -> Any:
        """:meth:`to_arrow` as a ``pandas.DataFrame``; columns ``[N, K]`` hold an array per row."""
        load_extra("pandas", extra="pandas")
        return self.to_arrow().to_pandas()

    def _header(self) -> dict[str, Any]:
        return {"provenance": dict(self.provenance), "texts": [asdict(text) for text in self.texts]}

    @classmethod
    def read(cls, path: str | Path) -> Trace:
        """Read a trace from its file, or from the folder of a measurement; every column is checked.

        What is no trace, or holds other values than :data:`COLUMNS` says, is a ``TraceError``, impossible
        log-probabilities a ``TextError``. :func:`read_any` reads other files too.
        """
        file = _file(path)
        columns, header, lists = parquet.read(file, COLUMNS, LIST_COLUMNS)
        return cls._of(file, columns, header, _from_columns(lists))

    @classmethod
    def open(cls, path: Path) -> Trace:
        """:meth:`read`, but the columns of a large trace stay in the file.

        Predictions read those that they need, block by block, and check what they read. Any other use reads a whole
        column each time; :meth:`in_memory` reads all.
        """
        file = _file(path)
        parts = OnDisk.of(file)
        return cls.read(file) if parts is None else cls._of(file, *parts)

    def in_memory(self) -> Trace:
        """The same trace with all columns in memory, checked."""
        if not isinstance(self.columns, OnDisk):
            return self
        with _named(self.columns.path):
            return replace(self, columns=self.columns.in_memory())

    @classmethod
    def _of(
        cls,
        file: Path,
        columns: Mapping[str, NDArray[Any]],
        header: Mapping[str, Any],
        lists: Sequence[tuple[TopLogProbs, TopLogProbs]] = (),
    ) -> Trace:
        """The trace of a file's columns and header."""
        try:
            with _named(file):
                texts = tuple(TextInfo(**text) for text in header["texts"])
                return cls(columns, texts, header["provenance"], lists)
        except TypeError as error:
            raise TraceError(
                f"{file} holds texts of another kind ({error})",
                limit="needs texts as spectheory measure writes them",
                remedy="run spectheory measure again",
            ) from error


def _file(path: str | Path) -> Path:
    """The file of a trace, or of the measurement in a folder."""
    place = located(path)
    return place / TRACE_FILE if place.is_dir() else place


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Errors that name the file."""
    try:
        yield
    except SpectheoryError as error:
        raise type(error)(f"{file}: {error.what}", limit=error.limit, remedy=error.remedy) from error


def a_trace(trace: Trace) -> Trace:
    """Check that an argument is a trace."""
    return instance("trace", trace, Trace, remedy="read a file with spectheory.trace.read_any")


def _of_each(texts: int, ids: Iterable[str] | None, ended: Iterable[bool] | None) -> tuple[list[str], list[bool]]:
    """Names of the texts, numbers without any, and whether they ended by themselves."""
    names = [str(i + 1) for i in range(texts)] if ids is None else several("ids", ids, remedy="name each text")
    ends = [False] * texts if ended is None else several("ended", ended, remedy="say True or False of each")
    for what, values in (("ids", names), ("ended", ends)):
        if len(values) != texts:
            raise TextError(
                f"{what} has {len(values)} entries for {texts} texts", limit="needs one per text", remedy="leave it out"
            )
    return names, ends


def _two_lists(name: Any, text: Any) -> list[NDArray[np.float64]]:
    """Log-probabilities of one text under the target and under the draft, as arrays."""
    both = several(f"text {name!r}", text, remedy="pass [(target, draft), ...]", error=TextError)
    if len(both) != 2:
        raise TextError(
            f"text {name!r} has {len(both)} parts",
            limit="needs two lists: log p and log q of its tokens",
            remedy="pass [(target, draft), ...]",
        )
    logs = [as_numpy(one, f"log {letter} of text {name!r}", TextError) for letter, one in zip("pq", both, strict=True)]
    target, draft = map(np.atleast_1d, logs)
    for each in (target, draft):
        if (far := each[np.isfinite(each) & (each < LOWEST)]).size:
            raise TextError(
                f"text {name!r} has a log-probability {far[0]:g}",
                limit=f"must be in {LOWEST:g}..0",
                remedy="give -inf for probability zero",
            )
    if target.shape != draft.shape or target.ndim != 1 or target.size == 0:
        raise TextError(
            f"text {name!r} has {target.size} target and {draft.size} draft log-probabilities",
            limit="needs two flat lists of one length, at least one token",
            remedy="score the same tokens under both models",
        )
    return [target, draft]


Columns = Mapping[str, NDArray[Any]]
_AGAIN = "Trace.from_log_probabilities makes a trace"


def _recorded(columns: Columns) -> bool:
    """Whether there are the accepted lengths of a log in place of log-probabilities (§10)."""
    return not {*REQUIRED} <= set(columns) and "recorded_match" in columns


def _check_parts(columns: Columns, texts: Sequence[TextInfo], lists: Sequence[Any]) -> None:
    """Refuse missing columns, columns and lists that have no row per token, and lists beside columns by start."""
    instances("the names of columns", instance("columns", columns, Mapping, remedy=_AGAIN).keys(), str, remedy=_AGAIN)
    texts, lists = instances("texts", texts, TextInfo, remedy=_AGAIN), several("lists", lists, remedy=_AGAIN)
    if not hasattr(columns, "shapes"):  # not on disk
        for name, values in columns.items():
            if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
                what = f"{name} is a {type(values).__name__}"
                raise TraceError(
                    what, limit="needs a numpy array without a mask", remedy="convert it, or fill the mask"
                )
    missing = [name for name in REQUIRED if name not in columns]
    if missing and not _recorded(columns):
        raise TraceError(
            f"the trace lacks {', '.join(missing)}",
            limit="both are required, or recorded lengths",
            remedy="measure the pair again",
        )
    tokens = sum(text.tokens for text in texts)
    wrong = {name: shape for name in columns if (shape := shape_of(columns, name))[:1] != (tokens,)}
    if wrong or not texts:
        others = {name: shape[0] if shape else "no rows" for name, shape in wrong.items()}
        shown = reprlib.repr(others) if others else "none"
        raise TraceError(
            f"{len(texts)} texts of {tokens} tokens in all, columns of other lengths: {shown}",
            limit="needs at least one text and one row per token",
            remedy="measure the pair again",
        )
    if lists and deepest(columns) is not None:
        raise TraceError(
            "the trace has lists of the most probable tokens and columns by start",
            limit="lists are by position",
            remedy="leave one of them out",
        )
    if lists and (len(lists) != tokens or "token" not in columns):
        raise TraceError(
            f"there are {len(lists)} lists for {tokens} tokens",
            limit="needs one pair, and an id, per token",
            remedy="list every position",
        )


def _refused(fault: Fault, columns: Columns, place: tuple[TextInfo, int] | None) -> SpectheoryError:
    """The error of a column, whose row is at a `place` in a text; impossible log-probabilities are the text's fault."""
    if place is None:
        return TraceError(f"{fault.column} {fault.what}", limit=fault.limit, remedy="measure the pair again")
    text, position = place
    what = f"{fault.column} of text {text.id!r}, token {position + 1} {fault.what}"
    if fault.column not in REQUIRED:
        return TraceError(what, limit=fault.limit, remedy="measure the pair again")
    value = columns[fault.column][fault.row]
    remedy = "pass natural logs of probabilities; of losses change the sign"
    return TextError(
        what,
        limit="a log-probability is <= 0, and an output token is possible under the target",
        remedy="use the sampling settings that made the text" if value == -np.inf else remedy,
    )

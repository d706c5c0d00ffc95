"""The record of a measured pair: per-position statistics of texts, with provenance. Parquet on disk, no torch.

A trace holds one row per output token of each text. Two columns are always there (the log-probabilities of the
text's token under target and draft); the others need full pmfs and are absent from a trace made of log-probabilities
alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.errors import TextError, TraceError, load_extra
from spectheory.files import write_whole
from spectheory.verification.lookup import LONGEST_COPY, LOOKUP_NGRAM

SCHEMA_VERSION = 1
METADATA_KEY = b"spectheory"
RECORDED_RANKS = 8
"""Rank laws are recorded for ranks 1 to this."""
DISTINCT_RANKS = 4
"""That of recursive rejection over distinct candidates, which is estimated, to this."""
UNO_SHARES = (0.0, 0.25, 0.5, 0.75)
"""Shares of over-acceptance at which the loss of recovering from the target itself is recorded (Y5)."""

GIVEN_TEXT, SAMPLED_TEXT = "given", "sampled from the target"
"""Origins of the text of a trace; limits over target samples hold for the second alone."""
SOURCES = "sources"
"""Where the provenance keeps the folders or hub ids of the models, for settings to paste; answers leave them out."""

COLUMNS: dict[str, str] = {
    "token": "id of the output token",
    "log_target": "log p of the token, nats",
    "log_draft": "log q of the token, nats (-inf where the draft cannot draw it)",
    "total_variation": "TV(p, q) (D1)",
    "kl": "KL(p || q), nats (D1)",
    "target_entropy": "H(p), nats (D1)",
    "target_second_moment": "M2(p), nats squared (D1)",
    "draft_entropy": "H(q), nats (D1)",
    "harmonic_similarity": "S_HM(p, q) (D2)",
    "race_acceptance": "acceptance rate of the race (A2)",
    "race_g": "g(p_x/q_x) at the token x (D3, A2); inf where q_x = 0",
    "draft_rank": "place of the token in the draft's order, 1 the most probable",
    "target_rank": "place of the token in the target's order, 1 the most probable",
    "greedy_agreement": "whether the most probable tokens agree",
    "rejection_rank": f"P(R = r | token) of recursive rejection with i.i.d. drafts, r = 1..{RECORDED_RANKS} (R3)",
    "race_rank": f"P(R = r | token) of the race over distinct tokens, r = 1..{RECORDED_RANKS} (R2)",
    "distinct_rank": "estimate of P(R = r | token) of recursive rejection over distinct candidates, "
    f"r = 1..{DISTINCT_RANKS}; unbiased (R3)",
    "uno_loss": f"bias when recovering from the target itself, at over-acceptance {UNO_SHARES} (Y5)",
    "lookup_match": f"leading tokens, at most {LONGEST_COPY}, of what prompt lookup drafts here that the text repeats; "
    f"suffixes of up to {LOOKUP_NGRAM} tokens, latest occurrence (§7)",
    "lookup_drafted": f"tokens, at most {LONGEST_COPY}, that prompt lookup drafts here (§7)",
}
"""What each column means."""

REQUIRED = ("log_target", "log_draft")


@dataclass(frozen=True)
class TextInfo:
    """One text of a trace: where it came from and how many output tokens it has.

    Attributes
    ----------
    id : str
        Name of the text.
    tokens : int
        Number of output tokens, the end-of-text token included.
    prompt : str
        Name of the prompt it continues; texts of one prompt are dependent. Empty: the text's own name.
    category : str
        Category of the prompt.
    ended : bool
        Whether the text ended by itself (an end-of-text token), so that nothing follows it.
    """

    id: str
    tokens: int
    prompt: str = ""
    category: str = ""
    ended: bool = False


@dataclass(frozen=True)
class Trace:
    """Per-position statistics of texts, concatenated.

    Attributes
    ----------
    columns : mapping of str to array ``[N]`` or ``[N, r]``
        Statistics by the names of :data:`COLUMNS`.
    texts : tuple of TextInfo
        The texts in order; their token counts add up to N.
    provenance : mapping
        Models, sampling settings, seed, origin of the text, versions, machine.

    Raises
    ------
    TraceError
        If a required column is missing or the lengths disagree.
    TextError
        If a log-probability is positive or NaN, or a token is impossible under the target.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-0.5, -1.0], [-0.7, -0.9])])
    >>> len(trace), trace.texts[0].tokens
    (2, 2)
    """

    columns: Mapping[str, NDArray[Any]]
    texts: tuple[TextInfo, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [name for name in REQUIRED if name not in self.columns]
        if missing:
            raise TraceError(
                f"the trace lacks {', '.join(missing)}", limit="both are required", remedy="measure the pair again"
            )
        tokens = sum(text.tokens for text in self.texts)
        wrong = {name: len(c) for name, c in self.columns.items() if len(c) != tokens}
        if wrong or not self.texts or any(text.tokens < 1 for text in self.texts):
            raise TraceError(
                f"{len(self.texts)} texts of {tokens} tokens in all, columns of other lengths: {wrong or 'none'}",
                limit="needs at least one text, no empty text, and one row per token",
                remedy="measure the pair again",
            )
        for name in REQUIRED:
            self._check_log_probabilities(name)

    def _check_log_probabilities(self, name: str) -> None:
        values = self.columns[name]
        bad = ~(values <= 0) if name == "log_draft" else ~((values <= 0) & (values > -np.inf))
        if not bad.any():
            return
        row = int(np.argmax(bad))
        text, position = self.locate(row)
        value = float(values[row])
        raise TextError(
            f"{name} of text {text.id!r}, token {position + 1} is {value:g}",
            limit="a log-probability is <= 0, and an output token is possible under the target",
            remedy="use the sampling settings that made the text"
            if value == -np.inf
            else "pass natural logs of probabilities",
        )

    def __len__(self) -> int:
        """Number of output tokens over all texts."""
        return len(self.columns["log_target"])

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
        """A trace from two numbers per token: log p and log q of the chosen tokens (§7).

        Enough for token and block verification, exactly, and for estimates of the one-call bound and B6.

        Parameters
        ----------
        texts : iterable of (target, draft)
            Two equally long lists of log-probabilities (nats) per text.
        ids : iterable of str, optional
            Names of the texts; numbered from 1 otherwise.
        ended : iterable of bool, optional
            Whether each text ended by itself; none did otherwise.
        provenance : mapping, optional
            Where they come from.

        Raises
        ------
        TextError
            If lists differ in length, are empty, or hold impossible values (text and token are named).
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

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        pa, pq = load_extra("pyarrow", extra="base"), load_extra("pyarrow.parquet", extra="base")
        arrays = {
            name: pa.FixedSizeListArray.from_arrays(pa.array(c.reshape(-1)), c.shape[1]) if c.ndim == 2 else pa.array(c)
            for name, c in self.columns.items()
        }
        header = {
            "schema": SCHEMA_VERSION,
            "provenance": dict(self.provenance),
            "texts": [asdict(t) for t in self.texts],
        }
        table = pa.table(arrays).replace_schema_metadata({METADATA_KEY: json.dumps(header).encode()})
        write_whole(path, lambda partial: pq.write_table(table, partial))

    @classmethod
    def read(cls, path: Path) -> Trace:
        """Read a trace.

        Raises
        ------
        TraceError
            If the file is missing, truncated, no trace, or of another schema version.
        """
        pa, pq = load_extra("pyarrow", extra="base"), load_extra("pyarrow.parquet", extra="base")
        try:
            table = pq.read_table(path, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else "is truncated or no Parquet file"
            raise TraceError(
                f"{path} {reason}",
                limit="needs a trace written by spectheory",
                remedy="run spectheory measure",
            ) from error
        header = _header(table.schema.metadata, path)
        columns = {name: _to_numpy(table.column(name)) for name in table.column_names if name in COLUMNS}
        try:
            return cls(columns, header["texts"], header["provenance"])
        except (TypeError, AttributeError, KeyError) as error:
            raise TraceError(
                f"{path} holds columns or texts of the wrong kind ({error})",
                limit="needs numbers for every position, and texts as spectheory measure writes them",
                remedy="run spectheory measure again",
            ) from error


def _header(metadata: Mapping[bytes, bytes] | None, path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads((metadata or {})[METADATA_KEY])
        version = header["schema"]
        if version == SCHEMA_VERSION:
            header |= {"texts": tuple(TextInfo(**t) for t in header["texts"]), "provenance": header["provenance"]}
    except (KeyError, ValueError, TypeError) as error:
        raise TraceError(
            f"{path} is a Parquet file but no trace",
            limit="needs the header that spectheory measure writes",
            remedy="run spectheory measure",
        ) from error
    if version != SCHEMA_VERSION:
        raise TraceError(
            f"{path} has trace schema {version}",
            limit=f"this version reads schema {SCHEMA_VERSION}",
            remedy="measure again, or use the version that wrote it",
        )
    return header


def _to_numpy(column: Any) -> NDArray[Any]:
    """Chunked column as a numpy array; single precision is widened so that theory stays in float64."""
    merged = column.combine_chunks()
    if hasattr(merged.type, "list_size"):
        flat = merged.flatten().to_numpy(zero_copy_only=False)
        array = flat.reshape(-1, merged.type.list_size)
    else:
        array = merged.to_numpy(zero_copy_only=False)
    return array.astype(np.float64) if array.dtype == np.float32 else array

"""The path, revision and type of a model, as the trace records them."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.deployment.candidates import Draft
from spectheory.trace import SOURCES

UNKNOWN = "/path/to"
"""Placeholder of a path that a trace does not record."""


@dataclass(frozen=True)
class Located:
    """A model as it was loaded: `name` in the trace, folder or hub id, commit of a hub model, dtype of the weights."""

    name: str
    source: str
    revision: str | None = None
    dtype: str | None = None

    @classmethod
    def of(cls, draft: Draft, role: str) -> Located:
        """The ``target`` or the ``draft`` of a pair. Older traces record only a hub id or a folder's name."""
        name = str(draft.fact(role, "name") or role)
        revision, dtype = draft.fact(role, "revision"), draft.fact(role, "dtype")
        on_hub = "/" in name or revision is not None
        source = draft.fact(SOURCES, role) or (name if on_hub else f"{UNKNOWN}/{name}")
        return cls(name, str(source), revision, dtype)

    @property
    def known(self) -> bool:
        """Whether the trace says where it was loaded from."""
        return not self.source.startswith(f"{UNKNOWN}/")

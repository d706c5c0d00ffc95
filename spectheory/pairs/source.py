"""Where a pair is loaded from, and how: what another process or machine needs to load the same one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.pairs import resolve

if TYPE_CHECKING:
    from spectheory.measure import ModelPair


@dataclass(frozen=True)
class PairSource:
    """The names of two models, built-in ones among them, and the options of :func:`spectheory.measure.load_pair`.

    Examples
    --------
    >>> source = PairSource("builtin:target", "builtin:draft", device="cpu")
    >>> source.absolute() == source
    True
    """

    target: str
    draft: str
    dtype: str = "auto"
    device: str | None = None
    device_map: str | None = None
    target_revision: str | None = None
    draft_revision: str | None = None

    def load(self, device: str | None = None) -> ModelPair:
        """Load the pair, on `device` if that is given."""
        from spectheory.measure import load_pair

        asked = {**asdict(self), "target": resolve(self.target), "draft": resolve(self.draft)}
        return load_pair(**asked | ({"device": device} if device else {}))

    def absolute(self) -> PairSource:
        """The same with whole paths of folders, for processes that work in another folder."""
        from spectheory.measure.model_files import is_local

        target, draft = (str(Path(name).resolve()) if is_local(name) else name for name in (self.target, self.draft))
        return replace(self, target=target, draft=draft)

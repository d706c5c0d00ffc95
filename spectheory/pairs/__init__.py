"""The built-in models: a small real target, two drafts, four draft heads, and their prompts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.cost.head_config import NATIVE
from spectheory.errors import ModelError

if TYPE_CHECKING:
    from spectheory.measure import ModelPair

__all__ = ["HEADS", "MODELS", "PROMPTS", "PairSource", "resolve"]

PREFIX, _OF_MTP = "builtin:", f"{NATIVE}:"
MODELS = ("target", "draft", "distilled")
HEADS = ("eagle3", "dflash", "mtp", "dspark")
"""Draft heads over the hidden states of the target, in the format of speculators."""
_STDLIB = Path(__file__).parent / "stdlib"

PROMPTS = _STDLIB / "question.jsonl"
"""Prompts from held-out files, in the layout of Spec-Bench."""


def resolve(name: str) -> str:
    """The folder of a built-in model such as ``builtin:target``, also after ``mtp:``; other names are unchanged.

    Examples
    --------
    >>> resolve("some/model"), resolve("mtp:some/model")
    ('some/model', 'mtp:some/model')
    >>> resolve("builtin:draft").endswith("draft")
    True
    """
    if name.startswith(_OF_MTP):
        return _OF_MTP + resolve(name.removeprefix(_OF_MTP))
    if not name.startswith(PREFIX):
        return name
    model = name.removeprefix(PREFIX)
    if model not in (*MODELS, *HEADS):
        raise ModelError(
            f"built-in model {model!r} does not exist",
            limit=f"there are {', '.join((*MODELS, *HEADS))}",
            remedy=f"for example {PREFIX}target",
        )
    return str(_STDLIB / model)


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
    block: int | None = None
    outside: str | None = None

    def load(self, device: str | None = None) -> ModelPair:
        """Load the pair, on `device` if that is given."""
        from spectheory.measure import load_pair

        asked = {**asdict(self), "target": resolve(self.target), "draft": resolve(self.draft)}
        return load_pair(**asked | ({"device": device} if device else {}))

    def absolute(self) -> PairSource:
        """The same with whole paths of folders, for processes that work in another folder."""
        from spectheory.measure.model_files import is_local

        def whole(name: str) -> str:
            if name.startswith(_OF_MTP):
                return _OF_MTP + whole(name.removeprefix(_OF_MTP))
            return str(Path(name).resolve()) if name != NATIVE and is_local(name) else name

        return replace(self, target=whole(self.target), draft=whole(self.draft))

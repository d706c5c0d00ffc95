"""Position embeddings whose frequencies depend on the length of the text that is read (longrope, dynamic).

transformers takes other frequencies once a text grows beyond a length, and turns only the tokens read from then on by
them: logits would depend on the pieces in which a text is read. Up to that length nothing moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ENGINES = {
    "longrope": "vLLM and llama.cpp choose them by their context length, and give these numbers with one of at most",
    "dynamic": "vLLM and SGLang stretch them for texts of every length, and give other numbers; no text is longer than",
}
"""What engines do instead, up to a number of tokens."""


def moving(config: Any) -> tuple[str, int] | None:
    """The kind of rope whose frequencies move, and the length of text up to which they stay; None if they are fixed."""
    said = getattr(config, "rope_parameters", None) or {}
    ropes = [said, *said.values()] if isinstance(said, Mapping) else []  # some models have one for each type of layer
    kinds = {rope.get("rope_type"): rope for rope in ropes if isinstance(rope, Mapping)}
    if "longrope" in kinds:
        return "longrope", int(kinds["longrope"]["original_max_position_embeddings"])
    if "dynamic" in kinds and not kinds["dynamic"].get("alpha"):  # alpha stretches them once and for all
        return "dynamic", int(config.max_position_embeddings)
    return None


def remark_on(name: str, kind: str, tokens: int) -> str:
    """A sentence about a model that reads no longer texts."""
    return (
        f"{name!r} turns positions by rope_type {kind!r}, whose frequencies move beyond {tokens} tokens: texts are at "
        f"most that long. {_ENGINES[kind]} {tokens}"
    )

"""A configuration of transformers, whose sizes are checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as brief
from typing import Any

from spectheory.errors import SettingError

LARGEST = 10**9
"""Far above every size of a model."""
_AS_GPT2 = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
"""GPT-2's names of the same sizes, also used by gpt_bigcode, gptj and codegen."""


class Config:
    """A configuration whose sizes are checked as they are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.kind = str(values.get("model_type"))
        self.as_gpt2 = "n_embd" in values and "hidden_size" not in values
        self.multi_query = self.as_gpt2 and bool(values.get("multi_query"))

    def at(self, layer: int) -> Config:
        """The configuration with what it says of one layer alone."""
        by_layer = self.values.get("per_layer_config")
        own = by_layer.get(f"{layer:02d}") if isinstance(by_layer, Mapping) else None
        return Config({**self.values, **own}) if isinstance(own, Mapping) else self

    def name(self, key: str) -> str:
        """The configuration's own name of a size."""
        other = _AS_GPT2.get(key, key)
        return other if key not in self.values and other in self.values else key

    def __contains__(self, key: str) -> bool:
        return bool(self.values.get(self.name(key)))

    def get(self, key: str, default: Any = None) -> Any:
        """A value of any kind."""
        value = self.values.get(self.name(key))
        return default if value is None else value

    def first(self, names: Sequence[str]) -> int | None:
        """The first of several sizes that the configuration has; 0 counts as none."""
        return next((self.size(name) for name in names if name in self), None)

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number in range."""
        name = self.name(key)
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if value is None:
            named = f"{key} ({_AS_GPT2[key]})" if key in _AS_GPT2 else key
            raise SettingError(
                f"the config has no {named}",
                limit="needs the sizes of a decoder under the names of Llama or GPT-2",
                remedy="give the sizes to spectheory.cost.ModelShape",
            )
        if type(value) is not int:
            remedy = "check the config, or measure latencies"
            raise SettingError(f"{name} is {brief(value)}", limit="needs one whole number", remedy=remedy)
        if not 1 <= value <= LARGEST:
            inside = f"must be in 1..{LARGEST:g}"
            raise SettingError(f"{name} is {brief(value)}", limit=inside, remedy="check the config")
        return value

    def count(self, key: str) -> int:
        """A size that may be 0, as where it is missing."""
        return self.size(key) if key in self else 0

    def names(self, key: str, count: int) -> list[str]:
        """A list with one word for each layer; empty if there is none."""
        listed = self.values.get(key)
        if listed is None:
            return []
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed) or len(listed) < count:
            raise SettingError(
                f"{key} is {brief(listed)}", limit=f"needs a word for each of {count} layers", remedy="check the config"
            )
        return listed

    def where(self, key: str) -> list[int]:
        """A list of layers; empty if there is none."""
        listed = self.values.get(key)
        if listed is None:
            return []
        if not isinstance(listed, list) or not all(type(each) is int for each in listed):
            raise SettingError(f"{key} is {brief(listed)}", limit="needs a list of layers", remedy="check the config")
        return listed

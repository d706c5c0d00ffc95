"""C3: what a dense decoder-only model weighs, reads and computes, from its published sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectheory.errors import SettingError

_SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
}
_NOT_DENSE = ("num_local_experts", "num_experts", "n_routed_experts", "kv_lora_rank", "state_size")
_LARGEST = 10**9
"""No size of a model comes near it."""
_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
_TIED = frozenset({"cohere", "cohere2", "gemma", "gemma2", "gemma3_text", "smollm3", "starcoder2"})
_NOT_GATED = frozenset({"arcee", "gpt_neox", "nemotron", "persimmon", "phi", "starcoder2"})


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a dense decoder-only transformer with gated MLPs (SwiGLU) and grouped-query attention (C3).

    Counted are the matrices and the norms before attention, MLP and output. Left out are biases and the norms of
    queries and keys (below 1e-4 of the parameters). Mixtures of experts differ: a pass reads and computes only the
    experts that its tokens are sent to. So do latent attention, sliding windows and state-space layers.

    Parameters
    ----------
    layers, hidden, intermediate : int
        Layers, width of the residual stream, width inside the MLP.
    heads, kv_heads, head_dim : int
        Attention heads, heads of keys and values, width of a head.
    vocabulary : int
        Rows of the embedding.
    tied : bool
        Whether the output matrix is the embedding.
    gated : bool
        Whether the MLP has three matrices (gate, up, down) or two.
    bytes_per_weight, bytes_per_kv : float
        As stored: 2 for 16 bits, 1 for 8, 0.5 for 4.

    Raises
    ------
    SettingError
        If a size is not positive or beyond any model's, or heads are not shared evenly.

    Examples
    --------
    >>> model = ModelShape(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    >>> model.parameters, model.kv_bytes_per_token
    (1235814400, 32768.0)
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool = False
    gated: bool = True
    bytes_per_weight: float = 2.0
    bytes_per_kv: float = 2.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, bool) and not 0 < value <= _LARGEST:
                raise SettingError(
                    f"{name} is {value}", limit=f"must be > 0 and <= {_LARGEST:g}", remedy="take it from the config"
                )
        if self.heads % self.kv_heads:
            raise SettingError(
                f"{self.heads} attention heads share {self.kv_heads} of keys and values",
                limit="each serves as many",
                remedy="check num_attention_heads and num_key_value_heads",
            )

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], *, bytes_per_weight: float = 2.0, bytes_per_kv: float = 2.0
    ) -> ModelShape:
        """The sizes in a ``config.json`` of transformers.

        Without ``num_key_value_heads`` there are as many as attention heads, without ``head_dim`` it is hidden size
        over heads, and without ``tie_word_embeddings`` the model type decides.

        Parameters
        ----------
        config : mapping
            The configuration; of a model with vision or sound, its ``text_config``.
        bytes_per_weight, bytes_per_kv : float
            As stored when served.

        Raises
        ------
        SettingError
            If a size is missing or no whole number, or the model is no dense transformer.

        Examples
        --------
        >>> config = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256}
        >>> config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False}
        >>> ModelShape.from_config(config).parameters
        8030261248
        """
        missing = [name for name in _SIZES.values() if config.get(name) is None]
        if missing:
            raise SettingError(
                f"the config has no {', '.join(missing)}",
                limit="needs the names of a Llama-like config",
                remedy="give the sizes to ModelShape",
            )
        other = [name for name in _NOT_DENSE if config.get(name)]
        layers = config.get("layer_types") or []
        if not isinstance(layers, list) or not all(kind in _ATTENTION for kind in layers):
            other.append("layer_types")
        if other:
            raise SettingError(
                f"the config has {other[0]}={config[other[0]]}",
                limit="only dense transformers are modelled",
                remedy="measure latencies, or fit AffineTime to timings",
            )
        sizes = {name: _size(config, key) for name, key in _SIZES.items()}
        kind = config.get("model_type")
        tied = config.get("tie_word_embeddings")
        return cls(
            **sizes,
            kv_heads=_size(config, "num_key_value_heads", sizes["heads"]),
            head_dim=_size(config, "head_dim")
            if config.get("head_dim")
            else _head_dim(sizes["hidden"], sizes["heads"]),
            tied=kind in _TIED if tied is None else bool(tied),
            gated=kind not in _NOT_GATED,
            bytes_per_weight=bytes_per_weight,
            bytes_per_kv=bytes_per_kv,
        )

    @property
    def multiplied(self) -> int:
        """Weights that every token is multiplied with: attention, MLP and output matrix."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        mlp = (3 if self.gated else 2) * self.hidden * self.intermediate
        return self.layers * (attention + mlp) + self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All weights; a tied embedding counts once."""
        norms = (2 * self.layers + 1) * self.hidden
        return self.multiplied + norms + (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights, what they take in memory."""
        return self.parameters * self.bytes_per_weight

    @property
    def read_bytes(self) -> float:
        """Bytes of weights that a pass reads: all but an embedding of its own, of which it looks up a few rows."""
        return self.weight_bytes - (0 if self.tied else self.vocabulary * self.hidden * self.bytes_per_weight)

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of keys and values of one token in the cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_kv

    def operations_per_token(self, context: int) -> float:
        """Operations (multiplications and additions) for one token after `context` tokens.

        Two per multiplied weight, and per layer and attention width two for the scores and two for the values.
        """
        return 2 * self.multiplied + 4 * self.layers * self.heads * self.head_dim * context


def _size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number of the configuration, or the default where it has none."""
    value = config[key] if default is None else config.get(key) or default
    if type(value) is not int:
        raise SettingError(
            f"{key} is {value!r}", limit="needs one whole number", remedy="check the config, or measure latencies"
        )
    return value


def _head_dim(hidden: int, heads: int) -> int:
    if heads < 1 or hidden % heads:
        raise SettingError(
            f"hidden_size is {hidden} with {heads} attention heads and no head_dim",
            limit="heads of one width make up the hidden size",
            remedy="check the config, or give head_dim",
        )
    return hidden // heads

"""C3: parameters, memory traffic and operations of a dense decoder-only model, from its published sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectheory.checks import instance, real, whole
from spectheory.cost.config_file import LARGEST, shape_in
from spectheory.cost.head_config import MARK, head_shape_in
from spectheory.errors import SettingError


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a dense decoder-only transformer with gated MLPs (SwiGLU) and grouped-query attention (C3).

    The counts include the matrices and the norms before attention, MLP and output. They leave out biases and the norms
    of queries and keys (below 1e-4 of the parameters), and a table of learned positions, of which a pass reads a few
    rows (with GPT-2's biases below 1e-2). Mixtures of experts (a pass reads and computes only the chosen experts),
    latent attention, sliding windows and state-space layers are not modelled.

    `hidden` is the width of the residual stream, `intermediate` the width inside the MLP, which has three matrices if
    `gated`, otherwise two. If `tied`, the output matrix is the embedding. `bytes_per_weight` and `bytes_per_kv` are as
    stored: 2 for 16 bits, 1 for 8, 0.5 for 4. `fusion` counts further weights that a draft head multiplies a token by:
    to join hidden states of its target, and to attend to embeddings beside them; 0 is no head.

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
    fusion: int = 0

    def __post_init__(self) -> None:
        remedy = "take it from the config"
        for name, value in vars(self).items():
            if name in ("tied", "gated"):
                instance(name, value, bool, remedy=remedy)
            elif name in ("bytes_per_weight", "bytes_per_kv"):
                inside = f"must be > 0 and <= {LARGEST:g}"
                real(name, value, lambda size: 0 < size <= LARGEST, limit=inside, remedy=remedy)
            else:
                free = name == "fusion"
                whole(name, value, least=1 - free, most=None if free else LARGEST, remedy=remedy)
        if self.heads % self.kv_heads:
            raise SettingError(
                f"{self.heads} attention heads share {self.kv_heads} of keys and values",
                limit="the first must be a multiple of the second",
                remedy="check num_attention_heads and num_key_value_heads",
            )

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], *, bytes_per_weight: float = 2.0, bytes_per_kv: float = 2.0
    ) -> ModelShape:
        """The sizes in a ``config.json`` of transformers, with the names of Llama or of GPT-2 (``n_layer``, ...).

        Defaults: ``num_key_value_heads`` is the number of attention heads, ``head_dim`` is hidden size over heads, and
        the model type decides ``tie_word_embeddings``. With GPT-2's names MLPs are not gated, ``n_inner`` is four times
        the hidden size, and ``multi_query`` means one head of keys and values. For a model with vision or sound pass
        its ``text_config``. Of a draft head in the format of speculators, the sizes of its own layers; its output
        matrix counts in full, and no embedding, which is the target's.

        Examples
        --------
        >>> config = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256}
        >>> config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False}
        >>> ModelShape.from_config(config).parameters
        8030261248
        """
        instance("config", config, Mapping, remedy="read config.json with json.load")
        sizes = head_shape_in(config) if MARK in config else shape_in(config)
        return cls(**sizes, bytes_per_weight=bytes_per_weight, bytes_per_kv=bytes_per_kv)

    @property
    def multiplied(self) -> int:
        """Weights that every token is multiplied by: attention, MLP and output matrix."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        mlp = (3 if self.gated else 2) * self.hidden * self.intermediate
        return self.layers * (attention + mlp) + self.vocabulary * self.hidden + self.fusion

    @property
    def parameters(self) -> int:
        """All weights; a tied embedding counts once."""
        norms = (2 * self.layers + 1) * self.hidden
        return self.multiplied + norms + (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights in memory."""
        return self.parameters * self.bytes_per_weight

    @property
    def read_bytes(self) -> float:
        """Bytes of weights that a pass reads: all except an untied embedding, of which it reads a few rows."""
        return self.weight_bytes - (0 if self.tied else self.vocabulary * self.hidden * self.bytes_per_weight)

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of keys and values of one token in the cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_kv

    def operations_per_token(self, context: float) -> float:
        """Operations (multiplications and additions) for one token after `context` tokens.

        Two per multiplied weight, and per layer and attention width two for the scores and two for the values.
        """
        return 2 * self.multiplied + 4 * self.layers * self.heads * self.head_dim * context

"""A tiny target over a byte-level BPE tokenizer, and a draft with its weights over another one, of the other family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXT = (
    "the decoder reads the text and the draft reads the same text in tokens of its own; where a word is new to the "
    "draft it is written out and read again. a target of many layers checks what a draft of few layers wrote."
)
OUTSIDE_ONLY = "zebra"
"""A word that the target has as one token, and the draft does not have."""


def byte_level() -> Any:
    """Words begin with the sign of a space, Ġ."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=72, special_tokens=["<end>"], show_progress=False)
    tokenizer.train_from_iterator([TEXT, f"{OUTSIDE_ONLY} {OUTSIDE_ONLY} {OUTSIDE_ONLY}, {OUTSIDE_ONLY}."], trainer)
    return tokenizer


def with_signs() -> Any:
    """Words begin with another sign, ▁, and other strings are tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=["<unk>", "<end>"], show_progress=False)
    tokenizer.train_from_iterator([TEXT, "few lawyers wrote rows of flowers"], trainer)
    return tokenizer


def save_pair(folder: Path, *, seed: int = 3, noise: float = 0.05, window: int = 512) -> tuple[Path, Path]:
    """Folders of the two models; rows of common tokens are the target's, with noise."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from spectheory.measure.common_tokens import common_tokens
    from spectheory.measure.model_files import quiet

    target, draft = (
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", **more)
        for tokenizer, more in ((byte_level(), {}), (with_signs(), {"unk_token": "<unk>"}))
    )
    common = common_tokens(target, draft).to_draft
    state, models = torch.random.get_rng_state(), []
    for number, tokenizer in enumerate((target, draft)):
        torch.manual_seed(seed + number)
        config = LlamaConfig(
            vocab_size=len(tokenizer) + 3 * number,  # the draft's outputs are padded
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            intermediate_size=64,
            max_position_embeddings=window,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
            initializer_range=0.5,
        )
        models.append(LlamaForCausalLM(config))
    with torch.no_grad():
        original, weights = models[0].state_dict(), models[1].state_dict()
        rows = (common >= 0).nonzero()[:, 0]
        for name, values in weights.items():
            spread = noise * original[name].std() * torch.randn_like(values)
            if values.shape == original[name].shape:
                values.copy_(original[name] + spread)
            else:
                values[common[rows]] = original[name][rows] + spread[common[rows]]
    folders = folder / "target", folder / "draft"
    with quiet():
        for where, model, tokenizer in zip(folders, models, (target, draft), strict=True):
            model.save_pretrained(where)
            tokenizer.save_pretrained(where)
    torch.random.set_rng_state(state)
    return folders

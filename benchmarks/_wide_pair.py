"""A pair with random weights and the outputs of a large one, V = 151,936, as folders that the commands load.

The sizes are those of a target of 0.3 B and a draft of 0.17 B parameters in bfloat16: hidden 896, 12 and 2 layers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

VOCABULARY, HIDDEN, LAYERS = 151_936, 896, (12, 2)
PROMPTS = 12
SPREAD = 0.06
"""Standard deviation of the weights: with it logits scatter as a trained model's do."""


def wide_pair(folder: Path) -> tuple[Path, Path]:
    """Folders of the target and the draft, made now if they are not there."""
    found = folder / "target", folder / "draft"
    for each, layers in zip(found, LAYERS, strict=True):
        if not (each / "tokenizer.json").exists():
            _write(each, layers)
    _write_prompts(folder / "prompts.jsonl")
    return found


def _write(folder: Path, layers: int) -> None:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=14,
        num_key_value_heads=2,
        intermediate_size=4864,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        initializer_range=SPREAD,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)  # equal embeddings, so that the draft resembles the target a little
    network = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    network.save_pretrained(folder)
    words = {"<end>": 0, **{f"t{i}": i for i in range(1, VOCABULARY)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)


def _write_prompts(path: Path) -> None:
    lines = [
        json.dumps({"question_id": i, "category": "", "turns": [f"t{i + 1} t{17 * i + 2} t{29 * i + 3} t{i + 9}"]})
        for i in range(PROMPTS)
    ]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    print(*wide_pair(Path(sys.argv[1])))

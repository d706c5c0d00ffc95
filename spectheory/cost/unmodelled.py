"""C3: architectures and fields of a configuration that are refused, with the reason."""

from __future__ import annotations

_REASONS = {
    "an encoder, which no server decodes with": "bert bert-generation big_bird camembert data2vec-text electra ernie "
    "megatron-bert rembert roberta roberta-prelayernorm roc_bert roformer xlm-roberta xlm-roberta-xl xmod reformer xlm "
    "xlnet",
    "the decoder of an encoder-decoder model, which reads a second cache": "bart bigbird_pegasus blenderbot "
    "blenderbot-small marian mbart mvp pegasus plbart prophetnet trocr whisper musicgen musicgen_melody",
    "layers of cross attention to images or sound": "git mllama mllama_text_model moshi",
    "adapters of images and sound inside its layers": "phi4_multimodal",
    "an old model with sizes under names of its own": "biogpt bloom cpmant ctrl dbrx falcon gpt_neo gpt_neox_japanese "
    "mpt opt xglm",
    "a recurrence of its own kind": "recurrent_gemma rwkv xlstm bailing_hybrid inkling_text inkling2_text zaya",
    "layers that share one block of attention": "zamba zamba2",
    "layers that run several times": "hrm_text",
    "caches that are compressed by another factor in each layer": "deepseek_v4",
    "experts that are vectors of a table": "doge",
    "experts of attention": "jetmoe",
    "tokens that choose different numbers of experts": "longcat_flash",
    "streams beside the residual one, and layers of different widths": "gemma3n gemma3n_text",
    "patches of bytes": "blt",
    "a draft that reads the caches of its target": "gemma4_assistant gemma4_unified_assistant",
    "its sizes could not be checked against a model": "cohere_compass_text qwen4_exp qwen4_exp_text",
}
TYPES: dict[str, str] = {kind: reason for reason, kinds in _REASONS.items() for kind in kinds.split()}
"""By ``model_type``."""
FIELDS: dict[str, str] = {
    "is_encoder_decoder": "the decoder of an encoder-decoder model, which reads a second cache",
    "cross_attention_layers": "layers of cross attention to images or sound",
    "zero_expert_num": "tokens that choose different numbers of experts",
    "compress_ratios": "caches that are compressed by another factor in each layer",
    "altup_num_inputs": "streams beside the residual one",
    "ssm_cfg": "a recurrence of its own kind",
    "num_heads_per_layer": "layers with different numbers of heads",
    "block_configs": "layers of different widths",
    "sparse_attention_config": "attention to chosen blocks, in some layers",
}
"""By a field that is neither absent nor 0."""

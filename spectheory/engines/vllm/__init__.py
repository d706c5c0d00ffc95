"""vLLM: its logs, its settings under the rules that it runs, and how it is started."""

PAST_END = "vLLM counts accepted tokens past the end of a text."
NO_DRAFTS = "Calls without drafts (n-gram, suffix) are not counted."

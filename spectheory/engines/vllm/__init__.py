"""vLLM: its logs, its settings under the rules that it runs, and how it is started."""

NO_DRAFTS = "Calls without drafts (n-gram, suffix) are not counted."

"""TensorRT-LLM: its logs, and its settings under the rules that it runs."""

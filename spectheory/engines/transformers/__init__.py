"""Assisted generation of transformers: its settings under the rules that it runs."""

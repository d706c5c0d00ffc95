"""Ollama: its logs."""

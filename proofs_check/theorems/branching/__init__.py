"""Limits of drafts that do not sample."""

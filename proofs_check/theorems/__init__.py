"""The statements, a file for each group: every file lists its ``ENTRIES``."""

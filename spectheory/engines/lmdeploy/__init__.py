"""LMDeploy: its counters."""

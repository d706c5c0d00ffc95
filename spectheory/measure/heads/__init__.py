"""Draft heads: drafts that read the target's hidden states (§10). One file per kind."""

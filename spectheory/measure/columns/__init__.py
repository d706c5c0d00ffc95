"""Every column of a trace from two rows of logits and the token between them: a file per idea, on any device."""

"""Proofs in steps that several statements share."""

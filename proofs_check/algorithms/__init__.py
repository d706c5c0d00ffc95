"""Whole algorithms enumerated in fractions: one position, chains, trees, batches, decoding to the horizon."""

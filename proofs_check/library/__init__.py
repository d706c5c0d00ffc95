"""What evidence is drawn from: grids of fractions, Hypothesis strategies, shapes on up to 64 tokens."""

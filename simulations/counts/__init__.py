"""What simulations count: exact tallies, the quantities read from them, and their confidence intervals."""

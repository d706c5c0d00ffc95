"""What is simulated: pmfs of a position, Markov chains, n-gram models and texts of the built-in pair."""

"""What is simulated: pmfs of a position, Markov chains, n-gram models and continuations of a language model."""

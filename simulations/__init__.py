"""Monte Carlo of the algorithms as written; agreement with the closed forms is evidence."""

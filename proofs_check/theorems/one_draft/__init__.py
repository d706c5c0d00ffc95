"""One draft token: divergences and acceptance."""

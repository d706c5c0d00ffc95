"""Real engines, run on the prompts of a pair: a file per engine, and a line in :data:`ENGINES`."""

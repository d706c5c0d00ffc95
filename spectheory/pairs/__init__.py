"""The built-in pair: a small real target, two drafts, their prompts, and the recipe that made them."""

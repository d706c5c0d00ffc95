"""A statement and the numbers it is written for: claims, exact arithmetic, certified intervals, calculus, findings."""

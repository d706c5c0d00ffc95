"""An engine's output and counts against what the path theorem expects of them (§13)."""

"""Why speculation is no faster: what a call costs, what explains it, and causes, one file each (§16)."""

"""Other tools' files read as traces: one file per format."""

"""Whether a tally agrees with what theory predicts, at a stated rate of false alarms."""

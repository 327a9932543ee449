"""Products of small integers, and quantisation."""

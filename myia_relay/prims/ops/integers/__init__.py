"""Products of small integers, quantisation, and bits."""

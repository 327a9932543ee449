"""Differentiation and batching: typed graphs to typed graphs."""

"""Batching (vmap)."""

"""Passes that rewrite loops and what they carry."""

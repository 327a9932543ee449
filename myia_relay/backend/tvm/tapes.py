"""Tapes (stub of the table; see below)."""
RULES: dict = {}

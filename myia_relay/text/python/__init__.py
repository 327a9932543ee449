"""Relay text of decorated Python functions: `to_text.py`, from the typed graph that inference makes."""

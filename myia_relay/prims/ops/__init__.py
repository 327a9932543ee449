"""The primitives with their rules, by family."""

"""The primitives themselves, whole, by family."""

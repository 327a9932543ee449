"""Python values as compiled code takes them, and annotations."""

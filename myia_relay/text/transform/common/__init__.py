"""What the passes share: the form in which they work, effects, types, patterns of operators."""

"""What inference knows of a value, and which names may share it."""

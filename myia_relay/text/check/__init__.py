"""The types of a module: inferred, checked, and written back."""

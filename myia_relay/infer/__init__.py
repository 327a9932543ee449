"""Inference: from a parsed graph and the types of its arguments to one typed, closed graph per signature."""

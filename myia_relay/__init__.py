"""Compile and differentiate ordinary Python."""
